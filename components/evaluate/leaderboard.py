"""The leaderboard on the page: tables that tell each mean in words, and answer a click with its examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

import streamlit as st

from components.evaluate.board import Board, board_html
from components.evaluate.look import LOOK, Look, Point
from components.evaluate.session import key, point_at, put
from components.evaluate.some import chosen_of, some_of
from components.styles import compact_css, compact_script
from engine.metrics.catalog import METRICS

ASSETS = Path(__file__).resolve().parent.parent / "assets"
NAME = "exegesis_evaluate_board"
MORE = "The table goes on to the right: scroll it, or choose fewer columns."
COLUMNS_HELP = "Those shown in the tables and in the leaderboard's file. None chosen: all are shown."
HINT = "Point at a number, or go to it by Tab, for its interval; click it for the examples behind it."
LEGEND = (
    "A stronger colour is better in each column, whichever way is better. ★ the best, by the examples that two methods "
    "both have; several where they tie; ≈ cannot be told from the best: the 95 % "
    "interval of their difference, example by example, does not show it to be worse (not widened for how many methods "
    "there are)."
)


def leaderboard(kind: str, found: Sequence[Board], titles: Mapping[str, str], look: Look) -> None:
    """A table a model, of the chosen columns."""
    columns = {id: METRICS[id].title for id in found[0].metrics}
    some_of(kind, "columns", "Columns", columns, look.columns, COLUMNS_HELP)
    html = "".join(board_html(board, titles, sorted_by(board, look), look.picked) for board in shown(found, look))
    name = key(kind, "board")
    st.caption(LEGEND)
    _component()(
        key=name,
        data={"html": html, "hint": HINT, "more": MORE},
        on_picked_change=partial(_pick, kind, name, found),
        on_sorted_change=partial(_sort, kind, name),
    )


def shown(found: Sequence[Board], look: Look) -> list[Board]:
    """The same with the chosen columns alone."""
    return [replace(board, metrics=chosen_of(board.metrics, look.columns)) for board in found]


def sorted_by(board: Board, look: Look) -> str:
    """The metric whose best method comes first: the first column where the chosen one is not shown."""
    return look.sort if look.sort in board.metrics else board.metrics[0]


def _pick(kind: str, name: str, found: Sequence[Board]) -> None:
    """Takes what the browser just sent; a cell that is not there changes nothing."""
    sent = st.session_state[name].get("picked")
    given = sent if isinstance(sent, dict) else {}
    for board in found:
        if board.model == given.get("model") and (given.get("method"), given.get("metric")) in board.cells:
            point_at(kind, Point(board.model, str(given["method"]), str(given["metric"])))


def _sort(kind: str, name: str) -> None:
    sent = st.session_state[name].get("sorted")
    if isinstance(sent, str) and sent in METRICS:
        put(kind, f"{LOOK}sort", sent)


def use_board_sheet() -> None:
    """Puts the layout of the leaderboard and of its examples into the page; it takes no room."""
    st.html(f"<style>{board_sheet()}</style>")


@cache
def board_sheet() -> str:
    """That layout."""
    return compact_css((ASSETS / "evaluate_board.css").read_text(encoding="utf-8"))


@cache
def _component() -> Callable[..., object]:
    js = (ASSETS / "evaluate_board.js").read_text(encoding="utf-8")
    css = board_sheet().replace("}", "}\n")  # one line alone would be taken for the name of a file
    told = '<p class="xg-small xg-told" aria-live="polite"></p>'
    html = f'<div class="xg"><p class="xg-small xg-more"></p><div class="xg-boards"></div>{told}</div>'
    made: Callable[..., object] = st.components.v2.component(
        NAME, html=html, css=css, js=compact_script(js), isolate_styles=False
    )
    return made
