"""Cached keys and values of positions that a causal model has read, so that only later positions are computed.

A position of a causal model never attends to a later one, so its keys and values do not depend on what follows. The
attention layers of transformers pass theirs to `update`, as to a `transformers.Cache`, and attend to what it returns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Float, Int

from engine.lazy import torch, transformers

KeysValues = tuple["torch.Tensor", "torch.Tensor"]
"""Keys and values of a layer, each `[batch group position d_head]`; a group of heads shares them."""


class Past(ABC):
    """Positions that precede those of a batch.

    `starts`: number of preceding positions per row. `width`: the largest of these numbers.
    """

    starts: Int[torch.Tensor, "batch"]
    width: int

    def following(self, lengths: Int[torch.Tensor, "batch"]) -> Int[torch.Tensor, "batch seq"]:
        """Return the positions of each row after the past, given the rows' whole lengths; later ones are padding."""
        starts = self.starts
        return starts[:, None] + torch.arange(int((lengths - starts).max()), device=starts.device)

    @abstractmethod
    def update(self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: Any, **__: Any) -> KeysValues:
        """Return the keys and values of the past, followed by those of the batch."""


@dataclass(eq=False)
class GrowingPast(Past):
    """A past that grows by the batch of each pass. Rows have equal lengths, except in the last pass."""

    rows: int
    device: torch.device
    cache: Any = field(default_factory=lambda: transformers.DynamicCache())

    @property
    def width(self) -> int:  # type: ignore[override]
        return int(self.cache.get_seq_length())

    @property
    def starts(self) -> Int[torch.Tensor, "batch"]:  # type: ignore[override]
        return torch.full((self.rows,), self.width, device=self.device)

    def update(self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: Any, **__: Any) -> KeysValues:
        keys, values = self.cache.update(keys, values, layer)
        return keys, values

    @property
    def layers(self) -> list[KeysValues]:
        """Keys and values of each layer."""
        return [(layer.keys, layer.values) for layer in self.cache.layers]


@dataclass(eq=False)
class SharedPrefix(Past):
    """The first positions of texts, each read once; `texts` is the index of the text that each row continues.

    Rows get temporary copies, one layer at a time; the shared keys and values never change.
    """

    layers: Sequence[KeysValues]
    texts: Int[torch.Tensor, "batch"]
    starts: Int[torch.Tensor, "batch"]
    width: int

    def update(self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: Any, **__: Any) -> KeysValues:
        before_keys, before_values = self.layers[layer]
        return self._joined(before_keys, keys), self._joined(before_values, values)

    def _joined(
        self,
        before: Float[torch.Tensor, "text group position d_head"],
        own: Float[torch.Tensor, "batch group seq d_head"],
    ) -> Float[torch.Tensor, "batch group key d_head"]:
        prefix = before[:, :, : self.width]
        prefix = prefix.expand(len(own), -1, -1, -1) if len(before) == 1 else prefix[self.texts]
        return torch.cat([prefix, own], dim=2)
