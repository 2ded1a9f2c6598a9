"""What a pre-training is told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from engine.params import option
from engine.training.config import LoopConfig
from engine.training.pretraining.shapes import SHAPES


@dataclass(frozen=True)
class PretrainConfig(LoopConfig):
    """One pre-training from new weights, with the family's own objective. Made for models below 2 million weights."""

    program: ClassVar[str] = "pretrain"

    base: str = option("bert", "shape of the new model", choices=tuple(SHAPES))
    dataset: str = option("reviews-generated+sst2", "data sets whose train texts are read, joined by +")
    out: str = option("pretrained", "folder for weights, tokenizer, card and checkpoint")
    batch_size: int = option(64, "texts a step", low=1)
    learning_rate: float = option(2e-3, "highest learning rate", low=0)
    patience: int = option(1000, "epochs without gain before it stops", low=1)
    held_out: int = option(2000, "texts kept for the choice of epoch (at most a fifth)", low=1)
    measure: str = option("", "further data sets whose loss is measured at the end, separated by commas")
    vocabulary: int = option(2000, "pieces of the tokenizer", low=300, high=60_000)
    max_length: int = option(128, "tokens a text and places of the model; longer texts are cut", low=8, high=2048)

    @property
    def stored_half(self) -> bool:
        return True
