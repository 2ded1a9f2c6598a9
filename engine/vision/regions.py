"""Regions of patches of a picture: the region that a mask touches, and others of the same size."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool

MOST_SHIFTS = 5
"""Largest number of other regions of a picture."""
Patches = Bool[np.ndarray, "row column"]


def touched_patches(mask: Bool[np.ndarray, "height width"], patch: tuple[int, int]) -> Patches:
    """Return the patches with any pixel of a mask of the preprocessed picture: removing them removes all of it."""
    rows, columns = mask.shape[0] // patch[0], mask.shape[1] // patch[1]
    cut = mask[: rows * patch[0], : columns * patch[1]]
    return np.asarray(cut.reshape(rows, patch[0], columns, patch[1]).any(axis=(1, 3)))


def other_regions(region: Patches, generator: np.random.Generator) -> tuple[Patches, ...]:
    """Draw at most `MOST_SHIFTS` regions of as many patches as `region` that share none with it.

    They have the same shape in other places. If it fits nowhere else, their patches are random. If too few patches are
    left, there are no such regions.
    """
    rows, columns = np.nonzero(region)
    height, width = region.shape
    shifted = []
    for down in range(-int(rows.min()), height - int(rows.max())):
        for right in range(-int(columns.min()), width - int(columns.max())):
            moved = np.zeros_like(region)
            moved[rows + down, columns + right] = True
            if not (moved & region).any():
                shifted.append(moved)
    if shifted:
        chosen = generator.permutation(len(shifted))[:MOST_SHIFTS]
        return tuple(shifted[at] for at in chosen)
    free = np.flatnonzero(~region)
    if len(free) < len(rows):
        return ()
    draws = (generator.choice(free, len(rows), replace=False) for _ in range(MOST_SHIFTS))
    return tuple(region_of(region.shape, draw) for draw in draws)


def region_of(shape: tuple[int, ...], places: np.ndarray) -> Patches:
    """Return the region of the given patches, which are numbered row by row from 0."""
    chosen = np.zeros(shape, dtype=bool)
    chosen.flat[places] = True
    return chosen
