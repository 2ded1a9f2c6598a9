"""Classifiers of every kind of input, behind one name."""

from __future__ import annotations

from typing import Any

from engine.lazy import torch
from engine.models.classifier import Classifier
from engine.models.text_classifier import EncodedText
from engine.request import DTYPES
from engine.vision.picture import EncodedPicture

AnyClassifier = Classifier[Any, Any, Any]
Coded = EncodedText | EncodedPicture
"""An input as a model reads it."""


def load_classifier(kind: str, model: str, dtype: str = DTYPES[0], device: torch.device | None = None) -> AnyClassifier:
    """The shared, read-only model for inputs of a kind, "text" or "image".

    Errors: those of `load_model` and `load_image_model`; a model that reads the other kind is refused by them.
    """
    # Here and not above: they import what loads models, which takes seconds.
    if kind == "image":
        from engine.vision.loader import load_image_model

        return load_image_model(model, dtype, device)
    from engine.models.loading import load_model

    return load_model(model, dtype, device)
