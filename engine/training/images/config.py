"""What a training of a vision transformer is told."""

from __future__ import annotations

from dataclasses import dataclass

from engine.params import option
from engine.training.config import LoopConfig

NEW = "vit"
"""The base that stands for new weights."""


@dataclass(frozen=True)
class ImageTrainConfig(LoopConfig):
    """One training on pictures. The defaults suit small models from new weights on a few ten thousand pictures."""

    base: str = option(NEW, "vit: new weights of the shape below; or a ViT checkpoint's folder or hub id")
    dataset: str = option("scenes", "id of a picture set, or a zip, folder or .npz of pictures")
    epochs: int = option(30, "passes over the training set", low=1)
    batch_size: int = option(128, "examples a step", low=1)
    learning_rate: float = option(1e-3, "highest learning rate", low=0)
    warmup: float = option(0.05, "share of the steps with rising learning rate", low=0, high=1)
    patience: int = option(1000, "epochs without gain before it stops", low=1)
    weight_decay: float = option(0.05, "AdamW's decay of weight matrices", low=0)
    label_smoothing: float = option(0.1, "probability spread over all classes", low=0, high=0.5)
    average: float = option(0.998, "decay of the running average of weights; 0: none", low=0, high=0.99999)
    held_out: int = option(2000, "train examples kept for the choice of epoch (at most a fifth)", low=1)
    size: int = option(32, "pictures are made so many pixels wide and high", low=4, high=1024)
    patch: int = option(4, "pixels of a patch's side; divides size", low=1, high=512)
    layers: int = option(6, "blocks of a new model", low=1, high=48)
    width: int = option(128, "hidden size of a new model; a multiple of 4 and of the heads", low=4, high=4096)
    heads: int = option(4, "attention heads a block of a new model", low=1, high=64)
    mimetic: bool = option(True, "new attention starts as trained attention looks (Trockman and Kolter, 2023)")
    flip: bool = option(True, "mirror half of the training pictures")
    shift: int = option(4, "move training pictures by up to so many pixels", low=0)
    turn: float = option(0.0, "turn training pictures by up to so many degrees", low=0, high=180)
    jitter: float = option(0.2, "change brightness, contrast and saturation by up to this share", low=0, high=0.9)
    drop_patches: float = option(0.0, "leave out this share of patches of each training picture", low=0, high=0.9)
    half: bool = option(True, "store the weights in float16")

    @property
    def stored_half(self) -> bool:
        return self.half
