"""A picture as a model reads it: patches in the model's own grid, batches of them, and superpixels of whole patches."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from engine.errors import unknown
from engine.lazy import skimage, torch
from engine.removal import FeatureGroups, singletons
from engine.result import Token

SPECIALS = ("[CLS]", "[DIST]")
"""Names of the special tokens before the patches: class, and (DeiT) distillation."""
SEGMENTS = ("patch", "slic")
COMPACTNESS = 10.0
"""Weight of nearness against similarity of color in SLIC; its authors' and scikit-image's default."""


@dataclass(frozen=True, eq=False)
class EncodedPicture:
    """One picture of the size that the model reads. Positions are the special tokens, then the patches row by row.

    `ids` are not read by the model: they are numbers from a hash of the pixels, one a position, that stand for the
    input in caches and in seeds.
    """

    kind: ClassVar[str] = "image"
    pixels: UInt8[np.ndarray, "height width 3"]
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
        """The special tokens, and then each patch by its row and column."""
        rows, columns = self.grid
        names = [f"row {row + 1}, column {column + 1}" for row in range(rows) for column in range(columns)]
        specials = [Token(name, 0, 0, -1, True) for name in SPECIALS[: self.specials]]
        return (*specials, *(Token(name, 0, 0, 0, False) for name in names))

    @property
    def truncated(self) -> int:
        """0: a picture is resized to fit, and no patch is cut off."""
        return 0

    @cached_property
    def key(self) -> bytes:
        """The identity of this input among those of the same model."""
        return self.ids.tobytes()

    @cached_property
    def ids(self) -> Int[np.ndarray, "seq"]:
        digest = hashlib.shake_256(self.values.tobytes()).digest(4 * len(self))
        return np.frombuffer(digest, dtype="<u4").astype(np.int64)

    def on_grid(self, scores: Float[np.ndarray, "seq"]) -> Float[np.ndarray, "row column"]:
        """The patches' scores at their places in the picture."""
        return scores[self.features].reshape(self.grid)


@dataclass(frozen=True, eq=False)
class PictureBatch:
    """Pictures on a device, each of them once, and the index of the picture of each row.

    `visible` marks the positions that may be attended to; `whole`: all of them.
    """

    pictures: Float[torch.Tensor, "picture 3 height width"]
    index: Int[torch.Tensor, "batch"]
    visible: Bool[torch.Tensor, "batch seq"]
    whole: bool

    @property
    def lengths(self) -> Int[torch.Tensor, "batch"]:
        """The number of positions of each row, the same for all."""
        return torch.full(self.visible.shape[:1], self.visible.shape[1], device=self.visible.device)


def collate(pictures: Sequence[EncodedPicture], dtype: torch.dtype, device: torch.device) -> PictureBatch:
    """Batch pictures of one size; a picture that occurs in several rows is stored once."""
    unique = {id(picture): picture for picture in pictures}
    place = {name: number for number, name in enumerate(unique)}
    values = torch.from_numpy(np.stack([picture.values for picture in unique.values()])).to(device=device, dtype=dtype)
    index = torch.tensor([place[id(picture)] for picture in pictures], device=device)
    visible = torch.ones(len(pictures), len(pictures[0]), dtype=torch.bool, device=device)
    return PictureBatch(values, index, visible, True)


def both_sides(size: int | Sequence[int]) -> tuple[int, int]:
    """Height and width of a size, which a config states as one number for squares."""
    return (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))


def patch_mask(mask: Bool[np.ndarray, "height width"], patch: tuple[int, int]) -> Bool[np.ndarray, "row column"]:
    """The patches that belong to a mask of the preprocessed picture: those at least half inside, else the fullest.

    Of several equally full ones the first counts. A mask without pixels has no patches.
    """
    rows, columns = mask.shape[0] // patch[0], mask.shape[1] // patch[1]
    cut = mask[: rows * patch[0], : columns * patch[1]]
    shares = cut.reshape(rows, patch[0], columns, patch[1]).mean(axis=(1, 3))
    inside = shares >= 0.5
    if not inside.any() and cut.any():
        inside.flat[int(shares.argmax())] = True
    return inside


def segment_picture(picture: EncodedPicture, kind: str, n_segments: int) -> FeatureGroups:
    """The parts of a picture: `patch`, every patch by itself, or `slic`, about `n_segments` superpixels."""
    if kind == "patch":
        return singletons(len(picture.features))
    if kind == "slic":
        return assign_patches(superpixels(picture.pixels, n_segments), picture.patch)
    raise unknown("segments", kind, SEGMENTS)


def superpixels(pixels: UInt8[np.ndarray, "height width 3"], n_segments: int) -> Int[np.ndarray, "height width"]:
    """SLIC on the preprocessed picture: regions of similar color. Deterministic.

    Source: Achanta et al. (2012), SLIC superpixels compared to state-of-the-art superpixel methods, algorithm 1.
    """
    return skimage.segmentation.slic(
        pixels, n_segments=n_segments, compactness=COMPACTNESS, start_label=0, channel_axis=-1
    )


def assign_patches(labels: Int[np.ndarray, "height width"], patch: tuple[int, int]) -> FeatureGroups:
    """Assign each patch to the superpixel that covers most of it, in a tie to the lowest number.

    So a superpixel is removed by the operators that remove patches. One that covers most of no patch vanishes.
    """
    rows, columns = labels.shape[0] // patch[0], labels.shape[1] // patch[1]
    tiles = labels[: rows * patch[0], : columns * patch[1]].reshape(rows, patch[0], columns, patch[1])
    pixels = tiles.transpose(0, 2, 1, 3).reshape(rows * columns, -1)
    fullest = [int(np.bincount(inside).argmax()) for inside in pixels]
    return FeatureGroups(np.unique(fullest, return_inverse=True)[1])
