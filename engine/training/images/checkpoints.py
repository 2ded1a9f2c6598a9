"""Folders of vision transformers: as a base to go on from, and as the place of a finished model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

from engine.errors import ExegesisError
from engine.models import catalog, loading, weight_files
from engine.training.images.pictures import Normalisation

BILINEAR = 2
"""Pillow's number for it, as preprocessor files state it."""


@dataclass(frozen=True)
class Base:
    """A checkpoint to go on from: its folder, its picture size and its normalisation."""

    folder: Path
    size: int
    normalisation: Normalisation
    sha256: str


def read_base(base: str) -> Base:
    """A ViT checkpoint by embedded name, folder or hub id."""
    folder = catalog.locate(base).folder if base in catalog.embedded_image_models() else catalog.locate_base(base)
    config = catalog.read_base_config(folder)
    if config.get("model_type") != "vit":
        raise ExegesisError(f"base: {base} is of type {config.get('model_type')!r}. Give a ViT, or vit for a new one.")
    size = config.get("image_size", 224)
    if not isinstance(size, int):
        raise ExegesisError(f"base: {base} reads pictures of {size} pixels; a square size is needed here.")
    return Base(folder, size, _normalisation(folder), weight_files.weights_sha256(folder))


def load(folder: Path, labels: tuple[str, ...]) -> torch.nn.Module:
    """The checkpoint as a float32 module with one logit a label; a head of another size is new."""
    names: dict[str, Any] = {
        "label2id": {label: i for i, label in enumerate(labels)},
        "id2label": dict(enumerate(labels)),
    }
    with loading.silence_libraries():
        return transformers.ViTForImageClassification.from_pretrained(
            str(folder),
            num_labels=len(labels),
            use_safetensors=True,
            trust_remote_code=False,
            ignore_mismatched_sizes=True,
            dtype=torch.float32,
            **names,
        ).float()


def store(module: Any, out: Path, size: int, normalisation: Normalisation, half: bool) -> None:
    """Weights, config and preprocessing in the files that transformers reads."""
    with loading.silence_libraries():
        (module.half() if half else module).save_pretrained(str(out))
    processor = {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "size": {"height": size, "width": size},
        "resample": BILINEAR,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": list(normalisation.mean),
        "image_std": list(normalisation.std),
    }
    (out / catalog.PROCESSOR).write_text(json.dumps(processor, indent=2) + "\n", encoding="utf-8")


def _normalisation(folder: Path) -> Normalisation:
    file = folder / catalog.PROCESSOR
    if not file.is_file():
        raise ExegesisError(
            f"base: {folder.name} has no {catalog.PROCESSOR}, so how it reads pictures is not known. Add it."
        )
    stated = json.loads(file.read_text(encoding="utf-8"))
    return Normalisation(tuple(stated.get("image_mean", (0.5,) * 3)), tuple(stated.get("image_std", (0.5,) * 3)))
