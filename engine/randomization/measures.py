"""How like the original a map at a stage is: by rank with sign and without, by its top, and as a picture."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from engine.metrics.agreement import TOP_PERCENT, is_constant, spearman, top_k_overlap

MEASURES = ("spearman", "spearman_abs", "top_k", "ssim")
"""Spearman's rho with sign and of the absolute scores; the shared part of the top 15 %; structural similarity."""
FLAT_BEFORE = "its map of the model as it is is the same everywhere, so that it has no order"
FLAT_AFTER = "its map of the randomized model is the same everywhere, so that it has no order"
WINDOW = 7
SMALL = (0.01, 0.03)
"""K1 and K2 of Wang et al. (2004)."""

Map = Float[np.ndarray, "feature"]


def no_order(before: Map, after: Map) -> str:
    """Why the two cannot be compared; empty where they can."""
    return FLAT_BEFORE if is_constant(before) else FLAT_AFTER if is_constant(after) else ""


def likeness(before: Map, after: Map, grid: tuple[int, int] | None, signed: bool) -> Float[np.ndarray, "measure"]:
    """Each of the measures, NaN where there is none. Both maps have an order; of a text there is no grid."""
    rho = spearman(before, after)
    sizes = spearman(np.abs(before), np.abs(after)) if signed else rho
    top = top_k_overlap(before, after, max(1, TOP_PERCENT * len(before) // 100))
    seen = None if grid is None else ssim(before.reshape(grid), after.reshape(grid), 2.0 if signed else 1.0)
    return np.array([np.nan if value is None else value for value in (rho, sizes, top, seen)])


def ssim(one: Float[np.ndarray, "row column"], other: Float[np.ndarray, "row column"], spread: float) -> float | None:
    """Structural similarity (Wang et al., 2004, eq. 13), from -1 to 1 for the same picture; None where it is too small.

    Each map is first divided by its largest size, so that only where it is strong counts, as a person sees it;
    `spread`: what values then may span, 2 with signs, 1 without. The mean over all square windows of 7 x 7 patches
    (the largest odd number that fits) that lie inside, with sample variances.
    """
    width = min(WINDOW, *(side - (side + 1) % 2 for side in one.shape))
    if width < 3:
        return None
    x, y = (_windows(picture / np.abs(picture).max(), width) for picture in (one, other))
    (mean_x, mean_y), (x, y) = (x.mean(-1), y.mean(-1)), (x - x.mean(-1, keepdims=True), y - y.mean(-1, keepdims=True))
    free = width * width - 1
    c1, c2 = ((share * spread) ** 2 for share in SMALL)
    light = (2 * mean_x * mean_y + c1) / (mean_x**2 + mean_y**2 + c1)
    shape = (2 * (x * y).sum(-1) / free + c2) / (((x**2).sum(-1) + (y**2).sum(-1)) / free + c2)
    return float((light * shape).mean())


def _windows(picture: Float[np.ndarray, "row column"], width: int) -> Float[np.ndarray, "window cell"]:
    return np.lib.stride_tricks.sliding_window_view(picture, (width, width)).reshape(-1, width * width)
