"""What LIME and SHAP remove at a time in a picture: single patches, or superpixels that are made of whole patches."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int, UInt8

from engine.errors import unknown
from engine.parts import Parts, single
from engine.vision.picture import EncodedPicture

SEGMENTS = ("patch", "slic")
COMPACTNESS = 10.0
"""Of SLIC: how much nearness counts against likeness of colour; its authors' and scikit-image's usual value."""


def segments_of(picture: EncodedPicture, kind: str, n_segments: int) -> Parts:
    """The parts of a picture: `patch`, every patch by itself, or `slic`, about `n_segments` superpixels."""
    if kind == "patch":
        return single(len(picture.features))
    if kind == "slic":
        return of_whole_patches(superpixels(picture.seen, n_segments), picture.patch)
    raise unknown("segments", kind, SEGMENTS)


def superpixels(seen: UInt8[np.ndarray, "height width 3"], n_segments: int) -> Int[np.ndarray, "height width"]:
    """SLIC on the picture as the model sees it: regions of like colour. The same picture always gives the same.

    Source: Achanta et al. (2012), SLIC superpixels compared to state-of-the-art superpixel methods, algorithm 1.
    """
    from skimage.segmentation import slic

    return slic(seen, n_segments=n_segments, compactness=COMPACTNESS, start_label=0, channel_axis=-1)


def of_whole_patches(labels: Int[np.ndarray, "height width"], patch: tuple[int, int]) -> Parts:
    """A patch belongs to the superpixel that covers most of it, of equal ones to the lowest number.

    So a superpixel is removed by the operators that remove patches. One that covers most of no patch vanishes.
    """
    rows, columns = labels.shape[0] // patch[0], labels.shape[1] // patch[1]
    tiles = labels[: rows * patch[0], : columns * patch[1]].reshape(rows, patch[0], columns, patch[1])
    pixels = tiles.transpose(0, 2, 1, 3).reshape(rows * columns, -1)
    fullest = [int(np.bincount(inside).argmax()) for inside in pixels]
    return Parts(np.unique(fullest, return_inverse=True)[1])
