"""The attacked picture, to be looked at."""

from __future__ import annotations

from typing import cast

import numpy as np
from jaxtyping import Float

from engine.attacks.result import Shown
from engine.models.classifier import AnyClassifier, EncodedInput
from engine.vision.classifier import ImageClassifier
from engine.vision.picture import EncodedPicture


def shown_of(model: AnyClassifier, encoded: EncodedInput, delta: Float[np.ndarray, "seq pixel"]) -> Shown:
    """The picture before and after; `delta` in colours from 0 to 1, a row a position as the model reads patches."""
    reader, given = cast(ImageClassifier, model), cast(EncodedPicture, encoded)
    difference = _unfolded(delta[given.specials :], given, reader.patch)
    after = given.pixels + difference * 255
    return Shown(given.pixels, after.round().clip(0, 255).astype(np.uint8), difference.astype(np.float32))


def _unfolded(
    rows: Float[np.ndarray, "patch pixel"], given: EncodedPicture, patch: tuple[int, int]
) -> Float[np.ndarray, "height width 3"]:
    """Patches (channel, row, column) back in their places; what no patch covers stays 0."""
    high, wide = given.grid
    apart = rows.reshape(high, wide, 3, *patch).transpose(0, 3, 1, 4, 2)
    whole = np.zeros(given.pixels.shape)
    whole[: high * patch[0], : wide * patch[1]] = apart.reshape(high * patch[0], wide * patch[1], 3)
    return whole
