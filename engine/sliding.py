"""Sliding-window occlusion: the prediction of a picture with a square of patches removed, at every position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from cache import key_for
from cache.codec import Arrays, Meta
from engine import runtime
from engine.errors import UsageError, not_allowed, unknown
from engine.input_kinds import check_removal, load_classifier
from engine.models import catalog
from engine.removal import coalition_probabilities, token_masks
from engine.removal_operators import PATCH_OPERATORS, keyed
from engine.request import DTYPES, Picture
from engine.result import Prediction
from engine.store import result_store
from engine.vision.picture import read_view

VERSION = 1
"""Raised whenever the numbers change."""


@dataclass(frozen=True)
class SlidingWindow:
    """The predictions for one picture without a window of `window` x `window` patches.

    `positions`: row and column of the window's first patch, from 0, in reading order, `stride` patches apart; the last
    one in each direction is at the edge, so that every patch is covered. `whole`: probabilities for the complete
    picture. `probabilities`: a row per position, with the window removed.
    """

    model: str
    revision: str
    labels: tuple[str, ...]
    grid: tuple[int, int]
    window: int
    stride: int
    operator: str
    positions: tuple[tuple[int, int], ...]
    whole: Float[np.ndarray, "label"]
    probabilities: Float[np.ndarray, "position label"]

    @property
    def predicted(self) -> int:
        """The index of the class predicted for the complete picture."""
        return int(self.whole.argmax())

    def falls(self, target: int) -> Float[np.ndarray, "position"]:
        """Return the drop of the probability of a class at each position, negative if it rises."""
        return self.whole[target] - self.probabilities[:, target]

    def covered(self, position: int) -> Bool[np.ndarray, "row column"]:
        """Return the mask of the patches under the window at this position."""
        return _covers(self.grid, self.window, [self.positions[position]])[0]

    def heat_map(self, target: int) -> Float[np.ndarray, "row column"]:
        """Return the mean drop over the windows that cover each patch. At stride 1 this is the method `occlusion`."""
        covers = _covers(self.grid, self.window, self.positions).reshape(len(self.positions), -1)
        means: Float[np.ndarray, "patch"] = covers.T @ self.falls(target) / covers.sum(0)
        return means.reshape(self.grid)

    def prediction(self, position: int | None = None) -> Prediction:
        """Return the prediction with the window at this position; None for the complete picture.

        Its logits are the logarithms of the probabilities.
        """
        shares = self.whole if position is None else self.probabilities[position]
        logs = np.log(np.maximum(shares, np.finfo(np.float64).tiny))
        return Prediction(self.labels, tuple(logs.tolist()), tuple(shares.tolist()))

    def as_json(self) -> dict[str, Any]:
        """Return the whole result as JSON values, with positions from 1."""
        positions = [[row + 1, column + 1] for row, column in self.positions]
        arrays = {"whole": self.whole.tolist(), "probabilities": self.probabilities.tolist()}
        return {**asdict(self), "positions": positions, **arrays}


def window_positions(grid: tuple[int, int], window: int, stride: int) -> tuple[tuple[int, int], ...]:
    """Return the first patch of the window at each position, in reading order. See `SlidingWindow`."""
    starts = (sorted({*range(0, size - window + 1, stride), size - window}) for size in grid)
    return tuple(product(*starts))


def check_window(grid: tuple[int, int], window: int, stride: int) -> None:
    """Refuse a window that is larger than the grid, and a stride that skips patches."""
    if not 1 <= window <= min(grid):
        raise not_allowed("window", f"a whole number from 1 to {min(grid)}, the patches of a side", window)
    if not 1 <= stride <= window:
        raise not_allowed("stride", f"a whole number from 1 to the window, {window}", stride)


def class_index(labels: Sequence[str], target: str | None, predicted: int) -> int:
    """Return the index of a class, given by label or number; None is the predicted one. Errors: no such class."""
    if target is None:
        return predicted
    if target in labels:
        return list(labels).index(target)
    if target in map(str, range(len(labels))):
        return int(target)
    raise unknown("target", target, labels)


def _covers(
    grid: tuple[int, int], window: int, positions: Sequence[tuple[int, int]]
) -> Bool[np.ndarray, "position row column"]:
    covers = np.zeros((len(positions), *grid), dtype=bool)
    for at, (row, column) in enumerate(positions):
        covers[at, row : row + window, column : column + window] = True
    return covers


def slide_window(
    model: str, picture: Picture, window: int = 2, stride: int = 1, operator: str = PATCH_OPERATORS[0],
    dtype: str = DTYPES[0],
) -> SlidingWindow:  # fmt: skip
    """Remove a square of patches at every position and predict each time, in shared passes. Cached.

    Source: Zeiler and Fergus (2014), Visualizing and understanding convolutional networks, section 4.2.
    Errors: a window or stride that does not fit the grid, an unknown removal, a model that predicts a score.
    """
    key = sliding_key(model, picture, window, stride, operator, dtype)
    if (entry := result_store().get(key)) is not None:
        return _unpacked(*entry)
    view = read_view(model)
    positions = window_positions(view.grid, window, stride)
    covers = _covers(view.grid, window, positions).reshape(len(positions), -1)
    kept = np.vstack([np.ones((1, covers.shape[1]), dtype=bool), ~covers])
    with runtime.turn():
        classifier = load_classifier("image", model, dtype, runtime.device())
        encoded = classifier.encode(picture)
        masks = token_masks(encoded, kept, len(encoded))
        shares = coalition_probabilities(classifier, [encoded], np.zeros(len(kept), dtype=int), masks, operator)
    result = SlidingWindow(
        model, view.revision, view.labels, view.grid, window, stride, operator, positions, shares[0], shares[1:]
    )
    result_store().put(key, *_packed(result))
    return result


def sliding_key(
    model: str, picture: Picture, window: int, stride: int, operator: str = PATCH_OPERATORS[0], dtype: str = DTYPES[0]
) -> str:
    """Return the cache key. Reads the model's files, never loads it. Errors: as in `slide_window`."""
    view = read_view(model)
    check_window(view.grid, window, stride)
    check_removal(operator, "image")
    if len(view.labels) < 2:
        raise UsageError(f"model: {model} predicts a score. Choose a model with classes.")
    return key_for(
        {
            "kind": "sliding window",
            "version": VERSION,
            "model": [model, catalog.revision(model)],
            "dtype": dtype,
            "device": runtime.device_type(),
            "picture": picture.as_plain(),
            "window": [window, stride],
            "removal": keyed(operator),
        }
    )


def _packed(one: SlidingWindow) -> tuple[Meta, Arrays]:
    arrays = {"whole": one.whole, "probabilities": one.probabilities}
    return {name: value for name, value in asdict(one).items() if name not in arrays}, arrays


def _unpacked(meta: Meta, arrays: Arrays) -> SlidingWindow:
    plain: dict[str, Any] = dict(meta)
    plain |= {"labels": tuple(plain["labels"]), "grid": tuple(plain["grid"])}
    plain["positions"] = tuple((row, column) for row, column in plain["positions"])
    return SlidingWindow(**{**plain, **arrays})
