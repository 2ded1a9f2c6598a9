"""A linear classifier of numeric features, so that text explainers can run on the Gaussian problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int

from engine.errors import ExegesisError, unknown
from engine.lazy import torch
from engine.models.classifier import Classifier
from engine.models.text_adapter import LrpParts, TextAdapter
from engine.request import Input
from engine.result import Token

REMOVAL = "mean"
"""Features are replaced by their mean over the data. The mean is 0, so `zero` is equivalent."""

NO_PARTS = TextAdapter("linear", "", "", "", "", (), LrpParts(norms=(), activations=()))


@dataclass(frozen=True, eq=False)
class EncodedFeatures:
    """The values of one example, one position each. `number`: number of the example, on which its seeds depend."""

    kind: ClassVar[str] = "text"
    values: Float[np.ndarray, "feature"]
    number: int
    grid: None = None
    truncated: int = 0

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def ids(self) -> Int[np.ndarray, "feature"]:
        return np.arange(len(self)) + len(self) * self.number

    @cached_property
    def features(self) -> Int[np.ndarray, "feature"]:
        return np.arange(len(self))

    @cached_property
    def special(self) -> Bool[np.ndarray, "feature"]:
        return np.zeros(len(self), dtype=bool)

    @property
    def tokens(self) -> tuple[Token, ...]:
        return tuple(Token(f"x{at + 1}", 0, 0, 0, False) for at in range(len(self)))

    @property
    def key(self) -> bytes:
        return self.values.tobytes()


@dataclass(frozen=True)
class FeatureBatch:
    """A batch of examples."""

    values: Float[torch.Tensor, "batch feature"]
    visible: Bool[torch.Tensor, "batch feature"]
    lengths: Int[torch.Tensor, "batch"]
    whole: bool = True


def feature_batch(values: Float[np.ndarray, "batch feature"]) -> FeatureBatch:
    """Build a batch from values, one row per example."""
    rows = torch.from_numpy(values)
    return FeatureBatch(rows, torch.ones_like(rows, dtype=torch.bool), torch.full((len(rows),), rows.shape[1]))


@dataclass(eq=False)
class LinearClassifier(Classifier[Input, EncodedFeatures, FeatureBatch]):
    """The score w . x as a regression head in double precision, so m = f and the closed forms hold for all methods.

    Each feature is a token whose embedding has one dimension.
    """

    kind: ClassVar[str] = "text"
    weights: Float[np.ndarray, "feature"]
    id: str = "linear"
    revision: str = ""
    labels: tuple[str, ...] = ("score",)
    regression: bool = True
    notes: tuple[str, ...] = ()
    adapter: TextAdapter = NO_PARTS
    memo: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.dtype, self.device = torch.float64, torch.device("cpu")

    @cached_property
    def module(self) -> torch.nn.Module:  # type: ignore[override]
        linear = torch.nn.Linear(len(self.weights), 1, bias=False, dtype=self.dtype).requires_grad_(False)
        linear.weight.copy_(torch.from_numpy(self.weights)[None])
        linear.config = SimpleNamespace(  # type: ignore[assignment]
            hidden_size=1, num_hidden_layers=1, num_attention_heads=1
        )
        return linear

    @property
    def blocks(self) -> torch.nn.ModuleList:
        return torch.nn.ModuleList()

    def encode(self, example: Input) -> EncodedFeatures:
        raise ExegesisError("linear: reads numbers and no text. Make EncodedFeatures of them.")

    def collate(self, examples: Sequence[EncodedFeatures]) -> FeatureBatch:
        return feature_batch(np.stack([example.values for example in examples]))

    def embed(self, batch: FeatureBatch) -> Float[torch.Tensor, "batch feature 1"]:
        return batch.values[..., None]

    def removal_embedding(self, batch: FeatureBatch, operator: str) -> Float[torch.Tensor, "1 1 1"]:
        if operator not in (REMOVAL, "zero"):
            raise unknown("removal", operator, (REMOVAL, "zero"))
        return torch.zeros(1, 1, 1, dtype=self.dtype)

    def hidden(
        self, batch: FeatureBatch, embeds: Float[torch.Tensor, "batch feature 1"] | None = None
    ) -> Float[torch.Tensor, "batch feature 1"]:
        return self.embed(batch) if embeds is None else embeds

    def logits(
        self, batch: FeatureBatch, embeds: Float[torch.Tensor, "batch feature 1"] | None = None
    ) -> Float[torch.Tensor, "batch 1"]:
        return self.module(self.hidden(batch, embeds)[..., 0])
