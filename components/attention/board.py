"""The board of heads: which of them matter, what each looks at, one of them closely. Drawn by the browser alone.

Hovering costs no run. A click looks at a head until another is clicked; a position that is clicked in the detail
becomes the one whose attention is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial

import streamlit as st

from components import pins
from components.attention.bytes import attention_bytes, grid_of, named
from components.attention.exact import exact
from components.attention.head_colours import use_head_colours
from components.attention.look import Head
from components.attention.scores import HeadMap
from components.attention.session import key, lock, look_from
from components.attention.shown_head import shown_head
from components.attention.state import AttentionState
from components.attention.told import told
from components.pins import Component
from components.trouble import say_error, sentence
from components.widgets.patch_map.picture import picture_style, use_picture_styles
from engine.errors import ExegesisError, not_allowed
from engine.heads.matrices import MatrixSelection, select_positions
from engine.heads.readings import HeadReading
from engine.request import Picture
from engine.vision.view import read_view

NAME = "exegesis_attention_board"
DETAIL = ("detail", "zoom", "matrix_words", "matrix_paint", "matrix", "lines", "overlay")
"""The drawings of one head. A script uses those before it."""
FILES = tuple(f"attention_{name}" for name in ("cells", *DETAIL, "scores", "thumbs", "board"))
STAYS = "The board stays as it was. Load the page again if this happens twice."


@dataclass(frozen=True)
class Locked:
    """The browser asks for this head, None for the strongest; `alone`: isolated."""

    head: Head | None
    alone: bool
    turn: int


@dataclass(frozen=True)
class Asked:
    """The browser asks what this position attends to."""

    query: int
    turn: int


def board_area(state: AttentionState, reading: HeadReading, scores: HeadMap | None) -> None:
    """Shows the board. `scores`: None where there are none."""
    part = _part(state, reading)
    grid, head = grid_of(reading, part), shown_head(state.look, scores, reading)
    whole = named(exact(reading.attention, head, part)) if state.look.detail == "matrix" else None
    board, size = key(state.kind, "board"), (reading.slope.shape[0], reading.slope.shape[1])
    with st.container(gap=None):
        _styles(state)
        attention_bytes(grid.sent, f"{board}.bytes")
        pins.tell(
            _component(),
            board,
            told(state, reading, scores, part, grid, whole),
            on_locked_change=partial(_lock, board, state.kind, size),
            on_asked_change=partial(_ask, board, state.kind, len(reading.of.tokens)),
        )
        if whole:  # last, so that the board keeps its place where there is none
            attention_bytes(whole, f"{board}.whole")


def parse_locked(sent: object, size: tuple[int, int]) -> Locked:
    """What came from the browser, checked: a head that a model of this size has."""
    fields = sent if isinstance(sent, dict) else {}
    head, alone, turn = fields.get("head"), fields.get("alone"), pins.turn_of(fields, STAYS)
    if head is not None and not _is_head(head, size):
        allowed = f"a layer from 0 to {size[0] - 1} and a head from 0 to {size[1] - 1}, or nothing"
        raise not_allowed("head", allowed, head, STAYS)
    if type(alone) is not bool:
        raise not_allowed("alone", "true or false", alone, STAYS)
    return Locked(None if head is None else (head[0], head[1]), alone, turn)


def parse_asked(sent: object, length: int) -> Asked:
    """What came from the browser, checked: a position of this input."""
    fields = sent if isinstance(sent, dict) else {}
    query, turn = fields.get("query"), pins.turn_of(fields, STAYS)
    if type(query) is not int or not 0 <= query < length:
        raise not_allowed("query", f"a position from 0 to {length - 1}", query, STAYS)
    return Asked(query, turn)


def _is_head(head: object, size: tuple[int, int]) -> bool:
    if not isinstance(head, list) or len(head) != 2:
        return False
    return all(type(at) is int and 0 <= at < count for at, count in zip(head, size, strict=True))


def _styles(state: AttentionState) -> None:
    """The colours of heads, and the picture as the model sees it."""
    use_head_colours()
    if isinstance(state.input, Picture):
        use_picture_styles()
        st.html(picture_style(read_view(state.model).transform(state.input.pixels)))


def _part(state: AttentionState, reading: HeadReading) -> MatrixSelection:
    """What matrices show; all of it where what was asked for is not there, which is said."""
    try:
        return select_positions(reading, state.look.between, state.look.special)
    except ExegesisError as error:
        say_error(sentence(error))
        return select_positions(reading)


def _lock(board: str, kind: str, size: tuple[int, int]) -> None:
    asked = pins.heard(board, "locked", partial(parse_locked, size=size))
    if asked is not None:
        lock(kind, asked.head, asked.alone)


def _ask(board: str, kind: str, length: int) -> None:
    asked = pins.heard(board, "asked", partial(parse_asked, length=length))
    if asked is not None:
        look_from(kind, asked.query)


@cache
def _component() -> Component:
    return pins.component(NAME, *FILES)
