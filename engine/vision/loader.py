"""Loading and inspection of image classifiers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import transformers

from engine import runtime
from engine.models import catalog
from engine.models.catalog import read_base_config
from engine.models.loading import ModelCache, load_complete, loading_errors, silence_libraries
from engine.request import Picture
from engine.vision.adapters import find_adapter
from engine.vision.classifier import ImageClassifier
from engine.vision.view import check_sizes, config_errors, read_preprocessing, read_view


def load_image_model(model: str, dtype: str = "float32", device: torch.device | None = None) -> ImageClassifier:
    """Return a shared, read-only image classifier; the last few stay loaded.

    Errors: an unknown name, a pickle-only or remote-code checkpoint, another family, no classifier, no preprocessing.
    """
    return _LOADED.get(model, dtype, device)


def load(source: catalog.ModelSource, revision: str, dtype: torch.dtype, device: torch.device) -> ImageClassifier:
    """Load a checkpoint without caching it. Errors: those of `load_image_model`."""
    config = read_base_config(source.base or source.folder)
    adapter = find_adapter(config.get("model_type", ""), config.get("architectures") or [], source.id)
    preprocessing = read_preprocessing(source.folder, source.id)
    with silence_libraries(), loading_errors(source.id):
        module, _ = load_complete(getattr(transformers, adapter.architecture), source)
    module = module.to(device=device, dtype=dtype).eval().requires_grad_(False)
    with config_errors(source.id):
        labels = tuple(str(module.config.id2label[i]) for i in range(module.config.num_labels))
    model = ImageClassifier(source.id, revision, module, preprocessing, adapter, labels, dtype, device)
    check_sizes(model.id, model.preprocessing, model.size, model.channels)
    return model


_LOADED = ModelCache(load, "image")


def inspect_image_model(name: str) -> dict[str, Any]:
    """Inspect an image model on one picture. Errors: why the model is unusable, in one sentence."""
    source = catalog.locate(name)
    with runtime.turns():
        model = load_image_model(name, device=runtime.device())
        checks = [_run_trial(model)]
    return {
        "name": name,
        "kind": source.kind,
        "folder": str(source.folder),
        "family": model.adapter.family,
        "task": "classification of pictures",
        "labels": list(model.labels),
        "parameters": sum(p.numel() for p in model.module.parameters()),
        "blocks": len(model.blocks),
        **read_view(name).describe(),
        "revision": model.revision,
        "checks": checks,
    }


def _run_trial(model: ImageClassifier) -> dict[str, Any]:
    gray = np.full((*model.size, 3), 128, dtype=np.uint8)
    with torch.inference_mode():
        [prediction] = model.predictions(model.logits(model.collate([model.encode(Picture(gray))])))
    finite = all(map(math.isfinite, prediction.logits))
    detail = (
        f"gray is {prediction.label} {max(prediction.probabilities):.3f}" if finite else "its logits are not finite"
    )
    return {"name": "a picture runs", "ok": finite, "detail": detail}
