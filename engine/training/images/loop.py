"""The training loop for pictures: changed by chance in each step, the learning rate along a cosine."""

from __future__ import annotations

from typing import cast

from engine.training.images.augment import augmented
from engine.training.images.config import ImageTrainConfig
from engine.training.images.pictures import Pictures
from engine.training.loop import Loop, Tensors
from engine.training.schedule import warmup_cosine


class ImageLoop(Loop):
    """The loop with augmentation. Its chance comes from torch's generator, whose state the checkpoint holds."""

    def _rate(self) -> float:
        return warmup_cosine(self.at.step, self.total, self.config.warmup)

    def _inputs(self, indices: list[int]) -> Tensors:
        data, config = cast(Pictures, self.data), cast(ImageTrainConfig, self.config)
        pixels = augmented(data.unit(indices, self.device), config)
        return {"pixel_values": data.normalisation.apply(pixels)}
