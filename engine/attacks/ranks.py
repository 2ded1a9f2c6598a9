"""What an attack does to a map, in numbers (the thesis, section 2.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from engine.lazy import torch
from engine.metrics.ranking import TIES, rank_features
from engine.task import Item


def rank_change(before: Int[np.ndarray, "feature"], after: Int[np.ndarray, "feature"], k: int) -> float:
    """The share of the first k places that another feature holds now, from 0 to 1.

    The thesis's formula counts the places that stay; its text and its example those that change, as we do.
    """
    return float((before[:k] != after[:k]).mean())


def sum_change(before: Float[np.ndarray, "feature"], after: Float[np.ndarray, "feature"], top: Sequence[int]) -> float:
    """By how much the sum of the scores fell at the features that were the top, in the unit of the map."""
    return float((before[list(top)] - after[list(top)]).sum())


def normalised_sum_change(
    before: Float[np.ndarray, "feature"], after: Float[np.ndarray, "feature"], top: Sequence[int]
) -> float | None:
    """The same of maps divided by their sum of absolute values, from -2 to 2; None where a map is all zero."""
    sizes = np.abs(before).sum(), np.abs(after).sum()
    return None if 0 in sizes else sum_change(before / sizes[0], after / sizes[1], top)


def order_of(item: Item, scores: Float[np.ndarray, "feature"]) -> Int[np.ndarray, "feature"]:
    """Features by their scores, the highest first; ties as everywhere, by chance and alike for all maps."""
    return rank_features(scores, _ties(item))


def _ties(item: Item) -> tuple[int, ...]:
    return (item.seed, *item.encoded.ids.tolist())


class Ranks:
    """The rank change of many items at once on the device, the same as item by item."""

    def __init__(self, items: Sequence[Item], before: Float[torch.Tensor, "item seq"], ks: Sequence[int]) -> None:
        self.device, width = before.device, before.shape[1]
        mixed = np.zeros((len(items), width), dtype=np.int64)
        valid = np.zeros((len(items), width), dtype=bool)
        for row, item in enumerate(items):
            features = item.encoded.features
            chance = np.random.default_rng([TIES, *_ties(item)]).permutation(len(features))
            mixed[row, : len(features)] = features[np.argsort(chance)]
            valid[row, : len(features)] = True
        self.mixed, self.valid = torch.from_numpy(mixed).to(self.device), torch.from_numpy(valid).to(self.device)
        self.most = max(ks)
        self.k = torch.tensor(ks, device=self.device)
        self.first = self._order(before, torch.arange(len(items), device=self.device))

    def top(self, width: int) -> torch.Tensor:
        """Which positions `[item seq]` are attacked: the first k of each item."""
        marked = torch.zeros(len(self.k), width, dtype=torch.bool, device=self.device)
        # Only these: where an item has fewer features than another's k, what stands beyond them is no position of it.
        rows, places = self._within(self.k).nonzero(as_tuple=True)
        marked[rows, self.first[rows, places]] = True
        return marked

    def change(self, scores: Float[torch.Tensor, "row seq"], items: torch.Tensor) -> Float[torch.Tensor, "row"]:
        """The share of the first k places of these items that changed."""
        k = self.k[items]
        moved = (self._order(scores, items) != self.first[items]) & self._within(k)
        return moved.sum(1) / k

    def _within(self, k: torch.Tensor) -> torch.Tensor:
        return torch.arange(self.most, device=self.device) < k[:, None]

    def _order(self, scores: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        """Positions by score. Mixed first and sorted stably then, so that ties stand in the order of chance."""
        mixed = self.mixed[items]
        values = scores.gather(1, mixed).masked_fill(~self.valid[items], -torch.inf)
        return mixed.gather(1, values.sort(dim=1, descending=True, stable=True).indices)[:, : self.most]
