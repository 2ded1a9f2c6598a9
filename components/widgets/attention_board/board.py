"""The board of heads: which of them matter, what each attends to, one of them in detail. Drawn by the browser alone.

Hovering costs no run. A click locks a head until another is clicked; a position that is clicked in the detail becomes
the query whose attention is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import streamlit as st

from components.errors import describe_error, show_error
from components.palette import THEMES, Theme, oklch_color
from components.widgets import base
from components.widgets.attention_board.data import (
    AttentionBytes,
    add_digest,
    board_data,
    cached_grids,
    pack_head,
)
from components.widgets.attention_board.options import (
    BoardOptions,
    Head,
    HeadScoreMap,
    select_matrix,
    selected_head,
)
from components.widgets.base import Component
from engine.errors import not_allowed
from engine.heads.readings import HeadReading
from engine.heads.scales import HeadScales

HERE = Path(__file__).resolve().parent
NAME, BYTES_NAME = "exegesis_attention_board", "exegesis_attention_bytes"
DETAIL = ("detail", "zoom", "matrix_words", "matrix_paint", "matrix", "lines", "overlay")
"""The drawings of one head. A script uses those before it."""
FILES = ("cells", *DETAIL, "scores", "thumbs", "board")
UNCHANGED = "The board stays as it was. Load the page again if this happens twice."

# A color for each head of a layer, the same in badge, border, title and lines. No 16 colors can be distinguished by
# everyone, so that the head's number is always written beside its color.
LIGHTNESS: dict[Theme, tuple[float, float, float]] = {"light": (0.42, 0.56, 0.68), "dark": (0.60, 0.72, 0.86)}
CHROMA: dict[Theme, float] = {"light": 0.15, "dark": 0.13}
# Hue in degrees and index into `LIGHTNESS`. By a search for the largest of the smallest distances between the first
# twelve, as people with and without red and green cones see them (Machado et al., 2009).
HUES = (
    (144, 1), (280, 0), (296, 2), (168, 0), (328, 1), (144, 2), (256, 1), (88, 2),
    (328, 0), (176, 1), (120, 0), (176, 2), (64, 1), (152, 0), (160, 1), (160, 2),
)  # fmt: skip


@dataclass(frozen=True)
class HeadLock:
    """The browser locks this head, None for the strongest; `alone`: isolated."""

    head: Head | None
    alone: bool
    turn: int


@dataclass(frozen=True)
class QueryChoice:
    """The browser chooses the position whose attention is drawn."""

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
    """Draw the board. `scores`: None where there are none. `on_lock` gets a head and whether it is isolated.

    Positions that the options choose and the input does not have are reported above it, and all are drawn.
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
        base.draw_component(_board_component(), key, data, on_locked_change=lock, on_asked_change=choose_query)
        if exact:  # last, so that the board keeps its place where there is none
            _send_bytes(exact, f"{key}.whole")


def parse_lock(sent: object, size: tuple[int, int]) -> HeadLock:
    """The browser's message, checked: a head that a model of this size has."""
    fields = sent if isinstance(sent, dict) else {}
    head, alone, turn = fields.get("head"), fields.get("alone"), base.parse_turn(fields, UNCHANGED)
    if head is not None and not _is_head(head, size):
        allowed = f"a layer from 0 to {size[0] - 1} and a head from 0 to {size[1] - 1}, or nothing"
        raise not_allowed("head", allowed, head, UNCHANGED)
    if type(alone) is not bool:
        raise not_allowed("alone", "true or false", alone, UNCHANGED)
    return HeadLock(None if head is None else (head[0], head[1]), alone, turn)


def parse_query(sent: object, length: int) -> QueryChoice:
    """The browser's message, checked: a position of this input."""
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
    """As #rrggbb; from the 17th head on they come again."""
    hue, level = HUES[head % len(HUES)]
    return oklch_color(LIGHTNESS[theme][level], CHROMA[theme], float(hue))


def head_color_rules() -> str:
    """The colors as variables --xg-head-0 and so on, of whichever theme the page is in."""
    both = ((head, *(head_color(theme, head) for theme in THEMES)) for head in range(len(HUES)))
    return f".xg{{{';'.join(f'--xg-head-{head}:light-dark({light},{dark})' for head, light, dark in both)}}}"


def use_head_colors() -> None:
    """Put the colors into the page; the element takes no room."""
    st.html(f"<style>{head_color_rules()}</style>")


def _send_bytes(packed: AttentionBytes, key: str) -> None:
    """Send attention to the browser: once, because Streamlit only names the same bytes when the script runs again.

    The element shows nothing. It lays the bytes into the window under their digest, where the board waits for them.
    """
    _bytes_component()(key=key, data=packed.body)


@cache
def _board_component() -> Component:
    return base.build_component(NAME, *FILES, folder=HERE)


@cache
def _bytes_component() -> Component:
    return base.build_component(BYTES_NAME, "cells", "bytes", folder=HERE)
