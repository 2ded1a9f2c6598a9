"""Occlusion of a picture: what is lost when a patch, or a square of patches, is removed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from engine.explainers.occlusion import mean_effects, windows
from engine.explainers.pictures.parts import pictures_of
from engine.operators import PATCH_OPERATORS
from engine.params import option
from engine.registry import Axes, register
from engine.task import Attribution, Task


@dataclass(frozen=True)
class PictureOcclusionParams:
    removal: str = option("mean", "How patches are removed", choices=PATCH_OPERATORS)
    window: int = option(1, "Side, in patches, of the square that is removed at a time", low=1, high=64)


@register(
    "occlusion",
    title="Occlusion",
    family="perturbation",
    params=PictureOcclusionParams,
    inputs=("image",),
    axes=Axes("chosen operator, one square of patches at a time", "probability of the class", "removal effect"),
    cheap=False,
    citation="Zeiler and Fergus (2014), Visualizing and understanding convolutional networks, section 4.2",
    caution="Patches that show the same thing can each seem unimportant: removing one leaves the others.",
)
def occlusion(task: Task, params: PictureOcclusionParams) -> list[Attribution]:
    """`m(x) - m(x without i)`, in probability, signed; of larger squares, the mean over those that hold patch i."""
    return mean_effects(task, [squares(p.grid, params.window) for p in pictures_of(task)], params.removal)


def squares(grid: tuple[int, int], side: int) -> Bool[np.ndarray, "square patch"]:
    """Every square of `side` x `side` neighbouring patches; a grid that is smaller bounds it."""
    down, across = windows(grid[0], side), windows(grid[1], side)
    held = down[:, None, :, None] & across[None, :, None, :]
    return held.reshape(len(down) * len(across), grid[0] * grid[1])
