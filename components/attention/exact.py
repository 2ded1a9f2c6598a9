"""One head's attention as it is kept, for the browser: the byte of a cell is enough for a colour, not for a number."""

from __future__ import annotations

from base64 import b64encode

import numpy as np

from engine.errors import not_allowed
from engine.heads.part import Part
from engine.heads.scores import Attention

Told = dict[str, object]


def exact(attention: Attention, head: tuple[int, int], part: Part) -> Told:
    """The head's matrix of what is shown, in plain values.

    `values`: half precision, little end first, row by row, in base64; NaN where a query may not attend.
    """
    layer, place = head
    layers, heads = attention.shape[:2]
    if not (0 <= layer < layers and 0 <= place < heads):
        allowed = f"a layer from 0 to {layers - 1} and a head from 0 to {heads - 1}"
        raise not_allowed("head", allowed, f"{layer}.{place}", "Choose a head of the score map.")
    values = attention[layer, place][np.ix_(part.rows, part.columns)].astype("<f2")
    return {"head": [layer, place], "shape": list(values.shape), "values": b64encode(values.tobytes()).decode()}
