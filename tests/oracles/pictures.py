"""The prediction without patches, on the model as transformers has it, its pixels, embeddings or positions changed."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

import numpy as np
import scipy.ndimage
import torch
from torch import Tensor


def probabilities_without(module: Any, values: Tensor, gone: Collection[int], removal: str, side: int) -> list[float]:
    """Class probabilities of one picture without the patches of these numbers (row by row, square, of `side` pixels).

    `values`: [3, height, width], normalized, in the module's precision.
    """
    base = module.base_model
    if removal == "zero":
        return _probabilities(module, values, base.embeddings.patch_embeddings, lambda rows: _zeroed(rows, gone))
    if removal == "drop":
        return _probabilities(module, values, base.embeddings, lambda rows: _without_rows(rows, gone))
    changed, columns = values.clone(), values.shape[2] // side
    instead = torch.zeros_like(values) if removal == "mean" else _blurred(values, side)
    for patch in gone:
        row, column = divmod(patch, columns)
        for y in range(row * side, (row + 1) * side):
            for x in range(column * side, (column + 1) * side):
                changed[:, y, x] = instead[:, y, x]
    return _probabilities(module, changed)


def curve_one_by_one(
    module: Any, values: Tensor, scores: np.ndarray, removal: str, side: int, target: int, insertion: bool
) -> list[float]:
    """m at 0, 10, ..., 100% of the patches removed or shown, the highest score first. All scores must differ."""
    best_first = sorted(range(len(scores)), key=lambda patch: -scores[patch])
    found = []
    for tenth in range(11):
        number = max(1, round(tenth * len(scores) / 10)) if tenth else 0
        gone = best_first[number:] if insertion else best_first[:number]
        found.append(probabilities_without(module, values, gone, removal, side)[target])
    return found


def _blurred(values: Tensor, sigma: int) -> Tensor:
    channels = [scipy.ndimage.gaussian_filter(one, sigma, mode="nearest", truncate=3) for one in values.numpy()]
    return torch.from_numpy(np.stack(channels))


def _zeroed(rows: Tensor, gone: Collection[int]) -> Tensor:
    """Patch embeddings before positions are added, special tokens not among them."""
    return torch.stack([row * 0 if patch in gone else row for patch, row in enumerate(rows[0])])[None]


def _without_rows(rows: Tensor, gone: Collection[int]) -> Tensor:
    """Positions that come after one special token, the removed ones not there at all."""
    return torch.stack([row for place, row in enumerate(rows[0]) if place - 1 not in gone])[None]


def _probabilities(module: Any, values: Tensor, part: Any = None, change: Any = None) -> list[float]:
    hook = None if part is None else part.register_forward_hook(lambda _module, _given, made: change(made))
    try:
        with torch.no_grad():
            logits = module(pixel_values=values[None]).logits[0].double().tolist()
    finally:
        if hook is not None:
            hook.remove()
    shares = [math.exp(value - max(logits)) for value in logits]
    return [share / sum(shares) for share in shares]
