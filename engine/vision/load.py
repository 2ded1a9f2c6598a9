"""From a model's name to a loaded, frozen, checked image classifier."""

from __future__ import annotations

from typing import Any

import torch
import transformers

from engine.errors import ExegesisError
from engine.models import catalog
from engine.models.catalog import read_base_config
from engine.models.loading import ModelCache, loading_errors, silence_libraries
from engine.vision.adapters import ImageAdapter, adapter_for
from engine.vision.classifier import ImageClassifier
from engine.vision.preprocessing import check_sizes, read_preprocessing
from engine.vision.view import sense_of


def load_image_model(model: str, dtype: str = "float32", device: torch.device | None = None) -> ImageClassifier:
    """A shared, read-only image classifier; the last few stay loaded.

    Errors: an unknown name, a pickle-only or remote-code checkpoint, another family, no classifier, no preprocessing.
    """
    return _LOADED.get(model, dtype, device)


def load(source: catalog.ModelSource, revision: str, dtype: torch.dtype, device: torch.device) -> ImageClassifier:
    """Load a checkpoint from its folder, without keeping it. Errors: as `load_image_model`."""
    config = read_base_config(source.base or source.folder)
    adapter = adapter_for(config.get("model_type", ""), config.get("architectures") or [], source.id)
    preprocessing = read_preprocessing(source.folder, source.id)
    with silence_libraries(), loading_errors(source.id):
        module = _module(source, adapter)
    module = module.to(device=device, dtype=dtype).eval().requires_grad_(False)
    with sense_of(source.id):
        labels = tuple(str(module.config.id2label[i]) for i in range(module.config.num_labels))
    made = ImageClassifier(source.id, revision, module, preprocessing, adapter, labels, dtype, device)
    check_sizes(made.id, made.preprocessing, made.size, made.channels)
    return made


_LOADED = ModelCache(load, "image")


def _module(source: catalog.ModelSource, adapter: ImageAdapter) -> Any:
    module, report = getattr(transformers, adapter.architecture).from_pretrained(
        str(source.folder), use_safetensors=True, trust_remote_code=False, dtype=torch.float32,
        attn_implementation="sdpa", output_loading_info=True,
    )  # fmt: skip
    if report["missing_keys"]:
        missing = ", ".join(sorted(report["missing_keys"])[:3])
        raise ExegesisError(
            f"model {source.id}: its weights are incomplete ({missing} …), so its predictions would be random. "
            "Use a fine-tuned classifier, or train one with: exegesis train."
        )
    return module
