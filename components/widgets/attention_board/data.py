"""Data of the attention board for the browser: plain values for the layout, bytes for the attention itself.

All heads are packed once for a reading and sent once for a page. The selected head is sent exactly besides: the byte
of a cell is enough for a color, not for a number.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
import streamlit as st
from jaxtyping import Float

from components.widgets.attention_board.options import (
    UNITS,
    BoardOptions,
    Head,
    HeadScoreMap,
    feature_maps,
    head_name,
    locked_head,
    query_position,
    strongest_head,
    visible_numbers,
)
from engine.errors import not_allowed
from engine.heads.matrices import MatrixSelection, largest_values, pack_heads, read_note, select
from engine.heads.readings import HeadReading
from engine.heads.scales import HeadScales
from engine.heads.scores import Attention

DIGEST = 16
"""Characters of a digest, which stand before the bytes."""
MAGIC = b"EXO1"
TOP = 65_534
"""The level of a map's largest value; one more stands where a query may not attend."""
VIEW_TITLES = {
    "matrix": "The attention of each head: queries down, keys across",
    "received": "What each {unit} receives, mean over the queries that may attend to it",
    "query": "Attention from «{name}»",
}


@dataclass(frozen=True)
class AttentionBytes:
    """`body`: the digest, then the packed attention. `note`: which cells were merged, or nothing."""

    body: bytes
    digest: str
    note: str = ""


@dataclass(frozen=True)
class AttentionGrids:
    """All heads by `engine.heads.matrices.pack_heads`, and the largest value of each whole head, drawn or not."""

    packed: AttentionBytes
    ends: list[list[float]]


def cached_grids(reading: HeadReading, selection: MatrixSelection) -> AttentionGrids:
    """All heads as bytes, remembered while the reading is in memory, for its last selection."""
    entry = _grids().get(reading)
    if entry is None or entry[0] != selection:
        entry = _grids()[reading] = (selection, pack_grids(reading, selection))
    return entry[1]


@st.cache_resource(show_spinner=False)
def _grids() -> WeakKeyDictionary[HeadReading, tuple[MatrixSelection, AttentionGrids]]:
    return WeakKeyDictionary()


def pack_grids(reading: HeadReading, selection: MatrixSelection) -> AttentionGrids:
    """All heads as bytes."""
    body = pack_heads(select(reading.attention, selection))
    return AttentionGrids(add_digest(body, read_note(body)), largest_values(reading.attention).tolist())


def pack_head(attention: Attention, head: Head, selection: MatrixSelection) -> bytes:
    """One head's selected matrix in full.

    `MAGIC`, rows and columns in 4 bytes each, then the values in half precision row by row, all little end first; NaN
    where a query may not attend.
    """
    layer, number = head
    layers, heads = attention.shape[:2]
    if not (0 <= layer < layers and 0 <= number < heads):
        allowed = f"a layer from 0 to {layers - 1} and a head from 0 to {heads - 1}"
        raise not_allowed("head", allowed, f"{layer}.{number}", "Choose a head of the score map.")
    values = attention[layer, number][np.ix_(selection.rows, selection.columns)].astype("<f2")
    return MAGIC + np.array(values.shape, "<u4").tobytes() + values.tobytes()


def add_digest(body: bytes, note: str = "") -> AttentionBytes:
    """Bytes behind their digest, by which the board finds them."""
    digest = hashlib.blake2b(body, digest_size=DIGEST // 2).hexdigest()
    return AttentionBytes(digest.encode() + body, digest, note)


def board_data(
    options: BoardOptions,
    reading: HeadReading,
    scores: HeadScoreMap | None,
    switched: HeadScales,
    selection: MatrixSelection,
    grids: AttentionGrids,
    exact: AttentionBytes | None,
) -> dict[str, object]:
    """The board's layout as JSON values.

    `scores`: None where there are none, as when their computation was stopped. `exact`: the selected head in full.
    """
    explanation, (layers, heads) = reading.explanation, reading.slope.shape
    locked, strongest = locked_head(options, reading), strongest_head(scores, options, layers, heads)
    length = len(explanation.tokens)
    return {
        "kind": "image" if explanation.grid else "text",
        "size": [layers, heads],
        "layers": visible_numbers(options.layers, layers),
        "heads": visible_numbers(options.heads, heads),
        "score": _score_data(scores),
        # `part`: 1 in the second text of a pair, -1 for a special token.
        "tokens": [
            {"text": token.text, "special": token.special, "part": token.segment} for token in explanation.tokens
        ],
        "rows": list(selection.rows),
        "columns": list(selection.columns),
        "features": explanation.features.tolist(),
        "length": length,
        "grid": list(explanation.grid) if explanation.grid else None,
        "causal": reading.causal,
        "view": options.view,
        "viewWords": _view_title(options, reading),
        "query": query_position(reading, options) if options.view == "query" else None,
        # A picture below matrices has what its patches receive.
        "maps": (
            map_data(feature_maps(reading, options))
            if options.view != "matrix" or options.detail == "overlay"
            else None
        ),
        "ends": grids.ends,
        "part": len(selection.rows) < length or len(selection.columns) < length,
        "order": options.order,
        "scale": options.scale,
        "detail": options.detail,
        "head": list(locked) if locked else None,
        "strongest": list(strongest),
        "alone": options.alone and locked is not None,
        "exact": {"head": list(locked or strongest), "digest": exact.digest} if exact else None,
        "changed": {head_name((layer, head)): float(scale) for layer, head, scale in switched.scales},
        "notes": [note for note in (selection.note, grids.packed.note) if note],
        "digest": grids.packed.digest,
    }


def map_data(maps: Float[np.ndarray, "layer head feature"]) -> dict[str, object]:
    """Levels from 0 to `TOP` of each head's largest value, 2 bytes each, little end first, in base64."""
    ends = np.nan_to_num(np.fmax.reduce(maps, axis=-1))
    ends = np.where(ends > 0, ends, 1.0)
    levels = np.where(np.isnan(maps), TOP + 1, np.rint(maps / ends[..., None] * TOP)).astype("<u2")
    return {"levels": b64encode(levels.tobytes()).decode(), "ends": ends.tolist()}


def _score_data(scores: HeadScoreMap | None) -> dict[str, object] | None:
    """`values` by layer and head; null for a head that has none."""
    if scores is None:
        return None
    values = [[None if np.isnan(value) else float(f"{value:.6g}") for value in layer] for layer in scores.values]
    return {
        "title": scores.title,
        "unit": scores.unit,
        "signed": scores.signed,
        "values": values,
        "words": scores.words,
    }


def _view_title(options: BoardOptions, reading: HeadReading) -> str:
    """The title of the thumbnails. The number before a token distinguishes equal ones."""
    explanation, position = reading.explanation, query_position(reading, options)
    text = explanation.tokens[position].text
    return VIEW_TITLES[options.view].format(
        unit=UNITS["image" if explanation.grid else "text"], name=text if explanation.grid else f"{position} {text}"
    )
