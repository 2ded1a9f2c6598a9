"""A picture as a model reads it: patches in the model's own grid, and batches of them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from engine.late import torch
from engine.result import Token

SPECIALS = ("[CLS]", "[DIST]")
"""What the special tokens before the patches are called: class, and (DeiT) distillation."""


@dataclass(frozen=True, eq=False)
class EncodedPicture:
    """One picture of the size that the model reads. Positions are the special tokens, then the patches row by row.

    `ids` are not read by the model: they are numbers from a hash of the pixels, one a position, that stand for the
    input wherever it is remembered or seeds something by chance.
    """

    seen: UInt8[np.ndarray, "height width 3"]
    values: Float[np.ndarray, "3 height width"]
    grid: tuple[int, int]
    patch: tuple[int, int]
    """Height and width of a patch in pixels."""
    specials: int

    def __len__(self) -> int:
        return self.specials + self.grid[0] * self.grid[1]

    @cached_property
    def special(self) -> Bool[np.ndarray, "seq"]:
        return np.arange(len(self)) < self.specials

    @cached_property
    def features(self) -> Int[np.ndarray, "feature"]:
        """Positions of the patches, which may be removed and ranked."""
        return np.arange(self.specials, len(self))

    @cached_property
    def tokens(self) -> tuple[Token, ...]:
        """The special tokens, and then each patch by its place."""
        names = [f"row {row}, column {column}" for row in _from_one(self.grid[0]) for column in _from_one(self.grid[1])]
        specials = [Token(name, 0, 0, -1, True) for name in SPECIALS[: self.specials]]
        return (*specials, *(Token(name, 0, 0, 0, False) for name in names))

    @property
    def truncated(self) -> int:
        """A picture is made to fit; no patch is cut off."""
        return 0

    @cached_property
    def key(self) -> bytes:
        """What tells this input from every other of the same model."""
        return self.ids.tobytes()

    @cached_property
    def ids(self) -> Int[np.ndarray, "seq"]:
        digest = hashlib.shake_256(self.values.tobytes()).digest(4 * len(self))
        return np.frombuffer(digest, dtype="<u4").astype(np.int64)

    def on_grid(self, scores: Float[np.ndarray, "seq"]) -> Float[np.ndarray, "row column"]:
        """The patches' scores where they are in the picture."""
        return scores[self.features].reshape(self.grid)


@dataclass(frozen=True, eq=False)
class PictureBatch:
    """Pictures on a device, each of them once, and the number of the one that each row shows.

    `visible` marks the positions that may be attended to; `whole`: all of them.
    """

    pictures: Float[torch.Tensor, "picture 3 height width"]
    index: Int[torch.Tensor, "batch"]
    visible: Bool[torch.Tensor, "batch seq"]
    whole: bool

    @property
    def lengths(self) -> Int[torch.Tensor, "batch"]:
        """All of one length: a picture has as many positions as any other."""
        return torch.full(self.visible.shape[:1], self.visible.shape[1], device=self.visible.device)


def collate(pictures: Sequence[EncodedPicture], dtype: torch.dtype, device: torch.device) -> PictureBatch:
    """Pictures of one size side by side; one that stands in many rows is held once."""
    once = {id(picture): picture for picture in pictures}
    place = {name: number for number, name in enumerate(once)}
    values = torch.from_numpy(np.stack([picture.values for picture in once.values()])).to(device=device, dtype=dtype)
    index = torch.tensor([place[id(picture)] for picture in pictures], device=device)
    visible = torch.ones(len(pictures), len(pictures[0]), dtype=torch.bool, device=device)
    return PictureBatch(values, index, visible, True)


def _from_one(count: int) -> range:
    return range(1, count + 1)


def both_sides(size: int | Sequence[int]) -> tuple[int, int]:
    """Height and width, where a config states one number for squares."""
    return (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))


def patch_mask(mask: Bool[np.ndarray, "height width"], patch: tuple[int, int]) -> Bool[np.ndarray, "row column"]:
    """The patches that belong to a mask of the picture as seen: those at least half inside it, else the fullest.

    Of several equally full ones the first counts. A mask without pixels has no patches.
    """
    rows, columns = mask.shape[0] // patch[0], mask.shape[1] // patch[1]
    cut = mask[: rows * patch[0], : columns * patch[1]]
    shares = cut.reshape(rows, patch[0], columns, patch[1]).mean(axis=(1, 3))
    inside = shares >= 0.5
    if not inside.any() and cut.any():
        inside.flat[int(shares.argmax())] = True
    return inside
