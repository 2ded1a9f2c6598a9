"""What the board of heads is told, in plain values: the score of each head, the positions, how they are looked at."""

from __future__ import annotations

from base64 import b64encode

import numpy as np
from jaxtyping import Float

from components.attention.bytes import Grid, Sent
from components.attention.look import UNITS, BoardLook, Head, head_name
from components.attention.scores import HeadMap, query_of, shown_maps
from components.attention.state import AttentionState
from engine.heads.matrices import MatrixSelection
from engine.heads.readings import HeadReading
from engine.heads.scales import HeadScales

Told = dict[str, object]
TOP = 65_534
"""The level of a map's largest value; one more stands where a query may not attend."""
VIEW_WORDS = {
    "matrix": "The attention of each head: queries down, keys across",
    "received": "What each {unit} receives, mean over the queries that may attend to it",
    "query": "Attention from «{name}»",
}
SIZE = "it has layers 0 to {} with heads 0 to {} each."
STRONGEST = "The strongest is shown."


def told(
    state: AttentionState,
    reading: HeadReading,
    scores: HeadMap | None,
    part: MatrixSelection,
    grid: Grid,
    whole: Sent | None,
) -> Told:
    """`scores`: None where there are none, as when their computation was stopped. `whole`: the shown head, exactly."""
    look = state.look
    layers, heads = reading.slope.shape
    locked, strongest = locked_of(look, reading), strongest_of(scores, look, layers, heads)
    return {
        "kind": state.kind,
        "size": [layers, heads],
        "layers": shown_of(look.layers, layers),
        "heads": shown_of(look.heads, heads),
        "score": score_of(scores),
        "tokens": tokens_of(reading),
        "rows": list(part.rows),
        "columns": list(part.columns),
        "features": reading.of.features.tolist(),
        "length": len(reading.of.tokens),
        "grid": list(reading.of.grid) if reading.of.grid else None,
        "causal": reading.causal,
        "view": look.view,
        "viewWords": view_words(state, reading),
        "query": query_of(reading, look) if look.view == "query" else None,
        "maps": maps_of(shown_maps(reading, look)) if has_maps(look) else None,
        "ends": grid.ends,
        "part": len(part.rows) < len(reading.of.tokens) or len(part.columns) < len(reading.of.tokens),
        "order": look.order,
        "scale": look.scale,
        "detail": look.detail,
        "head": list(locked) if locked else None,
        "strongest": list(strongest),
        "alone": look.alone and locked is not None,
        "exact": {"head": list(locked or strongest), "digest": whole.digest} if whole else None,
        "changed": changed_of(state.switched),
        "notes": [note for note in (part.note, grid.sent.note) if note],
        "digest": grid.sent.digest,
    }


def locked_of(look: BoardLook, reading: HeadReading) -> Head | None:
    """The locked head, if the model has it."""
    layers, heads = reading.slope.shape
    return look.head if look.head and look.head[0] < layers and look.head[1] < heads else None


def has_maps(look: BoardLook) -> bool:
    """A picture below matrices has what its patches receive."""
    return look.view != "matrix" or look.detail == "overlay"


def missing(look: BoardLook, reading: HeadReading) -> list[str]:
    """What a link asks for and the model has not, in words, with what is shown instead."""
    layers, heads = reading.slope.shape
    said = []
    if look.head and locked_of(look, reading) is None:
        said.append(f"This model has no head {head_name(look.head)}: {SIZE.format(layers - 1, heads - 1)} {STRONGEST}")
    for name, wanted, count in (("layer", look.layers, layers), ("head", look.heads, heads)):
        if beyond := [at for at in wanted if at >= count]:
            rest = "The others are shown." if len(beyond) < len(wanted) else "All are shown."
            said.append(
                f"This model has no {name} {', '.join(map(str, beyond))}: {SIZE.format(layers - 1, heads - 1)} {rest}"
            )
    return said


def shown_of(wanted: tuple[int, ...], count: int) -> list[int]:
    """The layers, or heads, that are shown: those that were asked for and are there, else all."""
    return [at for at in range(count) if at in wanted] or list(range(count))


def strongest_of(scores: HeadMap | None, look: BoardLook, layers: int, heads: int) -> Head:
    """The head of those shown with the largest score, whatever its sign; the first of them where none has one."""
    rows, columns = shown_of(look.layers, layers), shown_of(look.heads, heads)
    if scores is None:
        return rows[0], columns[0]
    sizes = np.abs(scores.values[np.ix_(rows, columns)])
    row, column = np.unravel_index(np.where(np.isnan(sizes), -1.0, sizes).argmax(), sizes.shape)
    return rows[row], columns[column]


def score_of(scores: HeadMap | None) -> Told | None:
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


def tokens_of(reading: HeadReading) -> list[Told]:
    """By position. `part`: 1 in the second text of a pair, -1 for a special token."""
    return [{"text": token.text, "special": token.special, "part": token.segment} for token in reading.of.tokens]


def maps_of(maps: Float[np.ndarray, "layer head feature"]) -> Told:
    """Levels from 0 to TOP of each head's largest value, 2 bytes each, little end first, in base64."""
    ends = np.nan_to_num(np.fmax.reduce(maps, axis=-1))
    ends = np.where(ends > 0, ends, 1.0)
    levels = np.where(np.isnan(maps), TOP + 1, np.rint(maps / ends[..., None] * TOP)).astype("<u2")
    return {"levels": b64encode(levels.tobytes()).decode(), "ends": ends.tolist()}


def changed_of(switched: HeadScales) -> dict[str, float]:
    """By its name, what a head's output is multiplied by where that is not 1."""
    return {head_name((layer, head)): float(scale) for layer, head, scale in switched.scales}


def view_words(state: AttentionState, reading: HeadReading) -> str:
    """What the thumbnails show. The number before a token tells equal ones apart."""
    at = query_of(reading, state.look)
    name = reading.of.tokens[at].text if reading.of.grid else f"{at} {reading.of.tokens[at].text}"
    return VIEW_WORDS[state.look.view].format(unit=UNITS[state.kind], name=name)
