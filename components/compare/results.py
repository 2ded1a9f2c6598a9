"""The Compare page's answer: the columns as their maps are there, then what can be said of all of them together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.compare.board import board_html
from components.compare.cards import cards_html
from components.compare.compared import Column, Compared, columns_of
from components.compare.state import CompareState
from components.filling import Place, fill
from components.method_row import Quiet
from components.trouble import say_error, say_note, sentence
from engine.comparison.parts import Sheet
from engine.errors import ExegesisError
from engine.registry import Explainer
from engine.store import result_store

NO_MODEL = "Add a column first: a model and a method."


@dataclass(eq=False)
class _Spot:
    """Where a column's place on the board keeps what `fill` says of it."""

    said: Quiet | None = None

    def quiet(self, row: Quiet) -> str:
        self.said = row
        return ""

    def html(self, body: str) -> None:
        """Nothing is drawn by itself: the board is drawn whole."""


def compared_area(state: CompareState, methods: Mapping[str, Explainer]) -> Compared | None:
    """The board, filled as explanations come, the costly last; None after saying why there is none."""
    if missing := _missing(state):
        st.info(missing)
    if missing or state.input is None:  # the controls of pictures have said why
        return None
    progress, board = st.empty(), st.empty()
    spots = [_Spot() for _ in state.columns]
    places = [
        Place(methods[pair.method], pair.request(state.input, state.target, state.seed), spot, quiet=spot.quiet)
        for pair, spot in zip(state.columns, spots, strict=True)
    ]
    bare = columns_of(state, methods)

    def now() -> Compared:
        return _compared(state, bare, places, spots)

    def show() -> None:
        _draw(board, now)

    fill(places, lambda method, made: "", progress, show)
    if trouble := result_store().status:
        say_note(trouble)
    return _draw(board, now)


def _missing(state: CompareState) -> str:
    if not state.columns:
        return NO_MODEL
    texts = [] if state.kind == "image" or state.input is None else [*state.input.as_plain().values()]
    if texts and not str(texts[0]).strip():
        return "Type a text above, or pick an example, to compare its maps."
    if any(text is not None and not text.strip() for text in texts[1:]):
        return "Type the second text, or switch it off."
    return ""


def _compared(state: CompareState, bare: tuple[Column, ...], places: list[Place], spots: list[_Spot]) -> Compared:
    columns, row = [], 0
    for column, place, spot in zip(bare, places, spots, strict=True):
        if place.made is None:
            said = spot.said or Quiet("", "")
            columns.append(replace(column, said=said.sentence, failed=said.failed))
        else:
            columns.append(replace(column, made=place.made, row=row))
            row += 1
    return Compared(state, tuple(columns), _sheet(state, columns))


def _sheet(state: CompareState, columns: list[Column]) -> Sheet | None:
    from engine.comparison.search import sheet_of

    made = [column.made for column in columns if column.made is not None]
    return sheet_of(made, state.input, state.look.unit) if made and state.input is not None else None


def _draw(board: DeltaGenerator, now: Callable[[], Compared]) -> Compared | None:
    """What is drawn; None after saying why that cannot be."""
    try:
        compared = now()
        board.html(cards_html(compared) if compared.state.kind == "image" else board_html(compared))
        return compared
    except ExegesisError as error:
        say_error(sentence(error), board)
        return None
