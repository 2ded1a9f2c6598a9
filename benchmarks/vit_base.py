"""A vision transformer of the size that people use, ViT-Base/16 at 224, with random weights; and a task on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import transformers

from engine import runtime
from engine.data.image_datasets import load_images
from engine.explain import predict_encoded
from engine.request import Picture
from engine.task import Item, Task
from engine.vision.classifier import ImageClassifier
from engine.vision.loader import load_image_model

SIDE, CLASSES = 224, 1000
PREPROCESSING = {
    "do_resize": True, "size": {"height": SIDE, "width": SIDE}, "resample": 2,
    "image_mean": [0.5] * 3, "image_std": [0.5] * 3,
}  # fmt: skip


def random_vit_base(folder: Path) -> ImageClassifier:
    """12 layers x 768, 12 heads, 196 patches: saved in the folder as anybody would, and loaded from there."""
    torch.manual_seed(0)
    shape: dict[str, Any] = {"image_size": SIDE, "patch_size": 16, "num_labels": CLASSES}
    transformers.ViTForImageClassification(transformers.ViTConfig(**shape)).save_pretrained(str(folder))
    (folder / "preprocessor_config.json").write_text(json.dumps(PREPROCESSING))
    return load_image_model(str(folder), "float32", runtime.device())


def task_on(model: ImageClassifier) -> Task:
    """A photograph that scikit-image carries."""
    encoded = model.encode(Picture(load_images("photos")[0].pixels))
    prediction = predict_encoded(model, [encoded])[0]
    return Task(model, [Item(encoded, prediction, prediction.index, 0)])
