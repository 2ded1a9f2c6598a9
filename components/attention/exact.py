"""One head's attention as it is kept, for the browser: the byte of a cell is enough for a colour, not for a number."""

from __future__ import annotations

import numpy as np

from components.attention.look import Head
from engine.errors import not_allowed
from engine.heads.matrices import MatrixSelection
from engine.heads.scores import Attention

MAGIC = b"EXO1"


def exact(attention: Attention, head: Head, part: MatrixSelection) -> bytes:
    """The head's matrix of what is shown.

    `MAGIC`, rows and columns in 4 bytes each, then the values in half precision row by row, all little end first; NaN
    where a query may not attend.
    """
    layer, place = head
    layers, heads = attention.shape[:2]
    if not (0 <= layer < layers and 0 <= place < heads):
        allowed = f"a layer from 0 to {layers - 1} and a head from 0 to {heads - 1}"
        raise not_allowed("head", allowed, f"{layer}.{place}", "Choose a head of the score map.")
    values = attention[layer, place][np.ix_(part.rows, part.columns)].astype("<f2")
    return MAGIC + np.array(values.shape, "<u4").tobytes() + values.tobytes()
