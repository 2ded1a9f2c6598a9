"""The board of attention heads: which heads matter, what each attends to, and one head in detail.

The module has the options of the board, plain values that a page binds to its link, what they select of a reading, and
the board itself. The browser draws the board, so hovering costs no run. A click locks a head until another is clicked.
A click on a position in the detail makes it the query whose attention is drawn.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np
import streamlit as st
from jaxtyping import Float

from components.errors import describe_error, show_error
from components.links import join_values, whole_number
from components.palette import THEMES, Theme, oklch_color
from components.widgets import base
from components.widgets.base import Component
from engine.errors import ExegesisError, not_allowed
from engine.heads.matrices import (
    BETWEEN,
    SCALES,
    MatrixSelection,
    largest_values,
    pack_heads,
    read_note,
    select,
    select_positions,
)
from engine.heads.readings import HeadReading
from engine.heads.scores import AGREEMENT, SCORES, Attention
from engine.input_kinds import INPUT_KINDS
from engine.params import option
from engine.request import HeadScales

Head = tuple[int, int]
"""Layer and head, from 0."""
SCORE_NAMES = ("importance", *(name for name in SCORES if name != "importance"), AGREEMENT)
VIEWS = {"text": ("matrix", "received", "query"), "image": ("query", "received", "matrix")}
DETAILS = {"text": ("matrix", "lines"), "image": ("overlay", "matrix")}
ORDERS = ("place", "score")
AGAINST = ("integrated_gradients", "kernel_shap")
MAX_NUMBER = 9_999
"""Upper bound of the indices of layers, heads and positions in supported models."""
HEAD_PATTERN = re.compile(r"(\d{1,4})\.(\d{1,4})")
USUAL = "The default is used."

HERE = Path(__file__).resolve().parent
NAME = "exegesis_attention_board"
FILES = ("model", "matrix", "details", "board")
"""Scripts of the board; each may use those before it."""
UNCHANGED = "The board did not change. If this happens again, reload the page."
# A color for each head of a layer, the same in badge, border, title and lines. Nobody can distinguish all 16 colors, so
# the head's number is always written next to its color.
LIGHTNESS: dict[Theme, tuple[float, float, float]] = {"light": (0.42, 0.56, 0.68), "dark": (0.60, 0.72, 0.86)}
CHROMA: dict[Theme, float] = {"light": 0.15, "dark": 0.13}
# Hue in degrees and index into `LIGHTNESS`. Found by a search that maximizes the smallest distance between the first
# twelve, for people with and without red and green cones (Machado et al., 2009).
HUES = (
    (144, 1), (280, 0), (296, 2), (168, 0), (328, 1), (144, 2), (256, 1), (88, 2),
    (328, 0), (176, 1), (120, 0), (176, 2), (64, 1), (152, 0), (160, 1), (160, 2),
)  # fmt: skip
DIGEST = 16
"""Length of a digest in characters; it precedes the bytes."""
MAGIC = b"EXO1"
TOP = 65_534
"""Level of a map's largest value. The next level marks keys that a query may not attend to."""
VIEW_TITLES = {
    "matrix": "Attention of each head: rows are queries, columns are keys",
    "received": "Mean attention that each {unit} receives",
    "query": "Attention from “{name}”",
}


def head_name(head: Head) -> str:
    """Format a head as layer and head: 3.7."""
    return f"{head[0]}.{head[1]}"


def _read_head(given: Sequence[str], problems: list[str]) -> Head | None:
    if not given or not given[-1]:
        return None
    match = HEAD_PATTERN.fullmatch(given[-1])
    if match:
        return int(match[1]), int(match[2])
    allowed, next_step = "a layer and a head such as 3.7", "The strongest is shown."
    problems.append(str(not_allowed("head", allowed, given[-1][:40], next_step)))
    return None


def _read_numbers(name: str, given: Sequence[str], problems: list[str]) -> tuple[int, ...]:
    texts = given[-1].split(",") if given and given[-1] else []
    numbers = [whole_number(text, MAX_NUMBER) for text in texts]
    if None not in numbers and len(numbers) <= MAX_NUMBER:
        return tuple(sorted({number for number in numbers if number is not None}))
    problems.append(str(not_allowed(name, "numbers such as 0,3", given[-1][:40], "All are shown.")))
    return ()


@dataclass(frozen=True)
class BoardOptions:
    """Options for coloring, drawing and selecting heads.

    `query`: a position, or None for the one that the model reads. `layers`, `heads`: those drawn, empty for all.
    `head`: the locked head, None for the strongest by the score. `alone`: whether it is isolated. `special`: whether
    the matrices include special tokens. `against`: the attribution that maps are compared with.
    """

    score: str = option(SCORE_NAMES[0], choices=SCORE_NAMES)
    view: str = option("matrix", by_kind=VIEWS.get)
    query: int | None = option(None, high=MAX_NUMBER, fallback=USUAL)
    order: str = option(ORDERS[0], choices=ORDERS)
    scale: str = option(SCALES[0], choices=SCALES)
    between: str = option(BETWEEN[0], choices=BETWEEN)
    special: bool = True
    detail: str = option("matrix", by_kind=DETAILS.get)
    layers: tuple[int, ...] = option((), read=partial(_read_numbers, "layers"), write=join_values)
    heads: tuple[int, ...] = option((), read=partial(_read_numbers, "heads"), write=join_values)
    head: Head | None = option(None, read=_read_head, write=head_name)
    alone: bool = False
    against: str = option(AGAINST[0], choices=AGAINST)


@dataclass(frozen=True, eq=False)
class HeadScoreMap:
    """A score for every head. `values`: NaN for a head without a score. `words`: meaning of the scores."""

    id: str
    title: str
    unit: str
    signed: bool
    values: Float[np.ndarray, "layer head"]
    words: str
    citation: str


def default_options(kind: str) -> BoardOptions:
    """Return the initial options for a text or an image."""
    return BoardOptions(view=VIEWS[kind][0], detail=DETAILS[kind][0])


def select_matrix(reading: HeadReading, options: BoardOptions) -> tuple[MatrixSelection, ExegesisError | None]:
    """Return the positions that matrices show. If the chosen ones do not exist, return all positions and the error."""
    try:
        return select_positions(reading, options.between, options.special), None
    except ExegesisError as error:
        return select_positions(reading), error


def query_position(reading: HeadReading, options: BoardOptions) -> int:
    """Return the position whose attention is drawn: the chosen one, else the one that the model reads most."""
    if options.query is not None and options.query < len(reading.reads):
        return options.query
    return int(reading.reads.argmax())


def feature_maps(reading: HeadReading, options: BoardOptions) -> Float[np.ndarray, "layer head feature"]:
    """Return each head's map over the features: the attention of one position, or the mean attention received."""
    return reading.received(query_position(reading, options) if options.view == "query" else None)


def describe_view(reading: HeadReading, options: BoardOptions) -> str:
    """Return a noun phrase for the maps."""
    if options.view != "query":
        return "the mean attention received"
    return f"the attention from “{reading.explanation.tokens[query_position(reading, options)].text}”"


def locked_head(options: BoardOptions, reading: HeadReading) -> Head | None:
    """Return the locked head, or None if the model does not have it."""
    layers, heads = reading.slope.shape
    head = options.head
    return head if head is not None and head[0] < layers and head[1] < heads else None


def selected_head(options: BoardOptions, scores: HeadScoreMap | None, reading: HeadReading) -> Head:
    """Return the head of the detail, the files and the text next to the board: the locked or the strongest one."""
    return locked_head(options, reading) or strongest_head(scores, options, *reading.slope.shape)


def strongest_head(scores: HeadScoreMap | None, options: BoardOptions, layers: int, heads: int) -> Head:
    """Return the visible head with the largest absolute score, or the first visible head if none has a score."""
    rows, columns = visible_numbers(options.layers, layers), visible_numbers(options.heads, heads)
    if scores is None:
        return rows[0], columns[0]
    sizes = np.abs(scores.values[np.ix_(rows, columns)])
    row, column = np.unravel_index(np.where(np.isnan(sizes), -1.0, sizes).argmax(), sizes.shape)
    return rows[row], columns[column]


def visible_numbers(chosen: tuple[int, ...], count: int) -> list[int]:
    """Return the layers, or heads, that are drawn: the chosen ones that exist, else all."""
    return [number for number in range(count) if number in chosen] or list(range(count))


@dataclass(frozen=True)
class HeadLock:
    """An event: the browser locks `head`, None for the strongest. `alone`: whether it is isolated."""

    head: Head | None
    alone: bool
    turn: int


@dataclass(frozen=True)
class QueryChoice:
    """An event: the browser chooses the position whose attention is drawn."""

    query: int
    turn: int


def attention_board(
    options: BoardOptions,
    reading: HeadReading,
    scores: HeadScoreMap | None,
    switched: HeadScales,
    key: str,
    on_lock: Callable[[Head | None, bool], None],
    on_query: Callable[[int], None],
) -> None:
    """Draw the board. `scores`: None if there are none. `on_lock` receives a head and whether it is isolated.

    If the options choose positions that the input does not have, an error is drawn above the board and all positions
    are shown.
    """
    selection, error = select_matrix(reading, options)
    if error is not None:
        show_error(describe_error(error))
    grids, exact = cached_grids(reading, selection), None
    if options.detail == "matrix":
        exact = add_digest(pack_head(reading.attention, selected_head(options, scores, reading), selection))
    layers, heads = reading.slope.shape
    length = len(reading.explanation.tokens)

    def lock() -> None:
        choice = base.receive_event(key, "locked", partial(parse_lock, size=(layers, heads)))
        if choice is not None:
            on_lock(choice.head, choice.alone)

    def choose_query() -> None:
        choice = base.receive_event(key, "asked", partial(parse_query, length=length))
        if choice is not None:
            on_query(choice.query)

    with st.container(gap=None):
        use_head_colors()
        _send_bytes(grids.packed, f"{key}.bytes")
        data = board_data(options, reading, scores, switched, selection, grids, exact)
        base.draw_component(_component(), key, data, on_locked_change=lock, on_asked_change=choose_query)
        if exact:  # last, so that the board keeps its place if there is none
            _send_bytes(exact, f"{key}.whole")


def parse_lock(sent: object, size: tuple[int, int]) -> HeadLock:
    """Parse and check the browser's message: a head of a model of this size."""
    fields = sent if isinstance(sent, dict) else {}
    head, alone, turn = fields.get("head"), fields.get("alone"), base.parse_turn(fields, UNCHANGED)
    if head is not None and not _is_head(head, size):
        allowed = f"a layer from 0 to {size[0] - 1} and a head from 0 to {size[1] - 1}, or nothing"
        raise not_allowed("head", allowed, head, UNCHANGED)
    if type(alone) is not bool:
        raise not_allowed("alone", "true or false", alone, UNCHANGED)
    return HeadLock(None if head is None else (head[0], head[1]), alone, turn)


def parse_query(sent: object, length: int) -> QueryChoice:
    """Parse and check the browser's message: a position of this input."""
    fields = sent if isinstance(sent, dict) else {}
    query, turn = fields.get("query"), base.parse_turn(fields, UNCHANGED)
    if type(query) is not int or not 0 <= query < length:
        raise not_allowed("query", f"a position from 0 to {length - 1}", query, UNCHANGED)
    return QueryChoice(query, turn)


def _is_head(head: object, size: tuple[int, int]) -> bool:
    if not isinstance(head, list) or len(head) != 2:
        return False
    return all(type(number) is int and 0 <= number < count for number, count in zip(head, size, strict=True))


def head_color(theme: Theme, head: int) -> str:
    """Return the color of a head as #rrggbb; colors repeat from the 17th head on."""
    hue, level = HUES[head % len(HUES)]
    return oklch_color(LIGHTNESS[theme][level], CHROMA[theme], float(hue))


def head_color_rules() -> str:
    """Return the colors as CSS variables --xg-head-0 and so on, for the theme of the page."""
    both = ((head, *(head_color(theme, head) for theme in THEMES)) for head in range(len(HUES)))
    return f".xg{{{';'.join(f'--xg-head-{head}:light-dark({light},{dark})' for head, light, dark in both)}}}"


def use_head_colors() -> None:
    """Add the colors to the page; the element takes no space."""
    st.html(f"<style>{head_color_rules()}</style>")


def _send_bytes(packed: AttentionBytes, key: str) -> None:
    """Send attention to the browser once; when the script runs again, Streamlit only refers to the same bytes.

    The element shows nothing. It stores the bytes in the window under their digest, where the board waits for them.
    """
    _component()(key=key, data=packed.body)


@cache
def _component() -> Component:
    return base.build_component(NAME, *FILES, folder=HERE)


@dataclass(frozen=True)
class AttentionBytes:
    """Packed attention. `body`: the digest, then the attention. `note`: which cells were merged, or empty."""

    body: bytes
    digest: str
    note: str = ""


@dataclass(frozen=True)
class AttentionGrids:
    """All heads packed by `engine.heads.matrices.pack_heads`, and the largest value of each head over all positions."""

    packed: AttentionBytes
    ends: list[list[float]]


def cached_grids(reading: HeadReading, selection: MatrixSelection) -> AttentionGrids:
    """Pack all heads. The result for the last selection is cached while the reading is in memory."""
    entry = _grids().get(reading)
    if entry is None or entry[0] != selection:
        entry = _grids()[reading] = (selection, pack_grids(reading, selection))
    return entry[1]


@st.cache_resource(show_spinner=False)
def _grids() -> WeakKeyDictionary[HeadReading, tuple[MatrixSelection, AttentionGrids]]:
    return WeakKeyDictionary()


def pack_grids(reading: HeadReading, selection: MatrixSelection) -> AttentionGrids:
    """Pack all heads."""
    body = pack_heads(select(reading.attention, selection))
    return AttentionGrids(add_digest(body, read_note(body)), largest_values(reading.attention).tolist())


def pack_head(attention: Attention, head: Head, selection: MatrixSelection) -> bytes:
    """Pack the selected matrix of one head in full.

    The format is `MAGIC`, rows and columns in 4 bytes each, then the values in half precision, row by row, all
    little-endian; NaN where a query may not attend.
    """
    layer, number = head
    layers, heads = attention.shape[:2]
    if not (0 <= layer < layers and 0 <= number < heads):
        allowed = f"a layer from 0 to {layers - 1} and a head from 0 to {heads - 1}"
        raise not_allowed("head", allowed, f"{layer}.{number}", "Choose a head of the score map.")
    values = attention[layer, number][np.ix_(selection.rows, selection.columns)].astype("<f2")
    return MAGIC + np.array(values.shape, "<u4").tobytes() + values.tobytes()


def add_digest(body: bytes, note: str = "") -> AttentionBytes:
    """Prepend the digest by which the board finds the bytes."""
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
    """Return the board's layout as JSON values.

    `scores`: None if there are none, for example after their computation was stopped. `exact`: the selected head in
    full.
    """
    explanation, (layers, heads) = reading.explanation, reading.slope.shape
    locked, strongest = locked_head(options, reading), strongest_head(scores, options, layers, heads)
    length = len(explanation.tokens)
    return {
        "kind": explanation.kind,
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
        # A picture below matrices shows the attention that its patches receive.
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
    """Encode maps as levels from 0 to `TOP` of each head's largest value: 2 bytes each, little-endian, in base64."""
    ends = np.nan_to_num(np.fmax.reduce(maps, axis=-1))
    ends = np.where(ends > 0, ends, 1.0)
    levels = np.where(np.isnan(maps), TOP + 1, np.rint(maps / ends[..., None] * TOP)).astype("<u2")
    return {"levels": b64encode(levels.tobytes()).decode(), "ends": ends.tolist()}


def _score_data(scores: HeadScoreMap | None) -> dict[str, object] | None:
    """Return the scores as JSON values; null for a head without a score."""
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
    """Return the title of the thumbnails. The index before a token distinguishes equal tokens."""
    explanation, position = reading.explanation, query_position(reading, options)
    text = explanation.tokens[position].text
    return VIEW_TITLES[options.view].format(
        unit=INPUT_KINDS[explanation.kind].feature, name=text if explanation.grid else f"{position} {text}"
    )
