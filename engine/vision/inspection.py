"""What an image model is and whether it can be used: loads it, runs one picture."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from engine import runtime
from engine.models import catalog
from engine.request import Picture
from engine.vision.classifier import ImageClassifier
from engine.vision.load import load_image_model
from engine.vision.view import view_of


def inspect_image_model(name: str) -> dict[str, Any]:
    """Plain facts and a check. Errors: whatever makes the model unusable, in one sentence."""
    source = catalog.locate(name)
    with runtime.turns():
        model = load_image_model(name, device=runtime.device())
        checks = [_trial(model)]
    return {
        "name": name,
        "kind": source.kind,
        "folder": str(source.folder),
        "family": model.adapter.family,
        "task": "classification of pictures",
        "labels": list(model.labels),
        "parameters": sum(p.numel() for p in model.module.parameters()),
        "blocks": len(model.blocks),
        **view_of(name).as_told(),
        "revision": model.revision,
        "checks": checks,
    }


def _trial(model: ImageClassifier) -> dict[str, Any]:
    grey = np.full((*model.size, 3), 128, dtype=np.uint8)
    with torch.inference_mode():
        [prediction] = model.predictions(model.logits(model.collate([model.encode(Picture(grey))])))
    finite = all(map(math.isfinite, prediction.logits))
    told = f"grey is {prediction.label} {max(prediction.probabilities):.3f}" if finite else "its logits are not finite"
    return {"name": "a picture runs", "ok": finite, "detail": told}
