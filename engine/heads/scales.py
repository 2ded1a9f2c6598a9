"""Heads switched off or scaled, as plain values: part of a request and of its cache key."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from engine.errors import UsageError, not_allowed

LARGEST = 2.0
"""A head's output can be doubled at most: beyond that a model is far from anything that it was trained for."""
OFF = 0.0


@dataclass(frozen=True)
class HeadScales:
    """Factors of the outputs of some heads, as (layer, head, scale) counted from 0; 1 for all others.

    The order does not matter, and a scale of 1 is dropped: equal meanings compare equal.
    """

    scales: tuple[tuple[int, int, int | float], ...] = ()

    def __post_init__(self) -> None:
        rows = sorted((_number("layer", layer), _number("head", head), _scale(s)) for layer, head, s in self.scales)
        if len({row[:2] for row in rows}) < len(rows):
            raise UsageError("heads: a head is named twice. Give each (layer, head) one scale.")
        object.__setattr__(self, "scales", tuple(row for row in rows if row[2] != 1))

    @classmethod
    def from_mapping(cls, scales: Mapping[tuple[int, int], int | float]) -> HeadScales:
        """From `{(layer, head): scale}`."""
        return cls(tuple((layer, head, scale) for (layer, head), scale in scales.items()))

    @classmethod
    def off(cls, heads: Iterable[tuple[int, int]]) -> HeadScales:
        """These heads switched off."""
        return cls(tuple((layer, head, OFF) for layer, head in set(heads)))

    def __bool__(self) -> bool:
        return bool(self.scales)

    def as_plain(self) -> list[list[int | float]]:
        return [list(row) for row in self.scales]

    def keyed(self) -> dict[str, list[list[int | float]]]:
        """The named part of a cache key; empty where nothing is scaled."""
        return {"heads": self.as_plain()} if self else {}

    def grid(self, layers: int, heads: int) -> Float[np.ndarray, "layer head"]:
        """A scale for every head of a model of that size."""
        grid = np.ones((layers, heads))
        for layer, head, scale in self.scales:
            if layer >= layers:
                raise not_allowed("heads", f"layers from 0 to {layers - 1} for this model", layer)
            if head >= heads:
                raise not_allowed("heads", f"heads from 0 to {heads - 1} for this model", head)
            grid[layer, head] = scale
        return grid


PLAIN = HeadScales()
"""The model as it is."""


def _number(name: str, value: object) -> int:
    if type(value) is not int or value < 0:
        raise not_allowed(f"heads: {name}", "a whole number from 0", value)
    return value


def _scale(value: object) -> float:
    if type(value) not in (int, float) or not math.isfinite(value) or not 0 <= value <= LARGEST:  # type: ignore[arg-type, operator]
        raise not_allowed("heads: scale", f"a number from 0 (off) to {LARGEST:g}", value)
    return float(value) + 0.0  # type: ignore[arg-type]
