"""The views of an evaluation: the leaderboard, and charts whose points lead to the examples behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from components.evaluate.board import Board
from components.evaluate.known import Held
from components.evaluate.leaderboard import leaderboard
from components.evaluate.state import EvaluateState
from components.trouble import say_note

if TYPE_CHECKING:
    pass


def view_area(state: EvaluateState, held: Held, tables: Sequence[Board], titles: Mapping[str, str]) -> None:
    """The chosen view, or why it makes no sense here."""
    if state.look.view == "leaderboard":
        leaderboard(state.kind, tables, titles, state.look)
    else:
        say_note("This view is not drawn yet.")
