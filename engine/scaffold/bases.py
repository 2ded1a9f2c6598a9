"""What students start from: the pre-trained base of a teacher, never the teacher itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from engine.errors import ExegesisError, UsageError
from engine.models import catalog, loading, weight_files
from engine.models.classifier import AnyClassifier
from engine.vision.classifier import ImageClassifier


def load_base(base: str, teacher: AnyClassifier) -> AnyClassifier:
    """The base as a body of the teacher's kind, in its precision and on its device, with the teacher's way of reading.

    Errors: another architecture or shape than the teacher's.
    """
    folder = catalog.locate_base(base)
    config = catalog.read_base_config(folder)
    mine: Any = teacher.module.config
    theirs = config.get("model_type")
    if theirs != mine.model_type:
        raise UsageError(f"base: {base} is of type {theirs!r}, but the teacher {teacher.id} of {mine.model_type!r}.")
    module = _module(folder, teacher).to(device=teacher.device, dtype=teacher.dtype).eval().requires_grad_(False)
    _check_shape(base, module.config, teacher)
    return replace(teacher, module=module, memo={}, id=base, revision=weight_files.weights_sha256(folder)[:16])  # type: ignore[type-var]


def _module(folder: Path, teacher: AnyClassifier) -> torch.nn.Module:
    if isinstance(teacher, ImageClassifier):
        from engine.training import image_training

        return image_training.load_vit(folder, teacher.labels)
    return loading.load_base(folder, teacher.labels, teacher.regression)


def _check_shape(base: str, config: Any, teacher: AnyClassifier) -> None:
    mine: Any = teacher.module.config
    for name in ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "image_size", "patch_size"):
        if getattr(config, name, None) != getattr(mine, name, None):
            raise ExegesisError(
                f"base: {base} has {name} {getattr(config, name, None)}, the teacher {teacher.id} "
                f"{getattr(mine, name, None)}. Students must have the teacher's architecture: name its own base."
            )
