"""A table of which one row is chosen, by a click in it or by a control elsewhere on the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from components import stale_choices

if TYPE_CHECKING:
    import pandas

ROW_PIXELS = 35


def row_choice(
    rows: pandas.DataFrame,
    key: str,
    chosen: int | None,
    pick: Callable[[int], None],
    columns: Mapping[str, Any],
    most_in_view: int,
) -> None:
    """Draw the rows, of which `chosen` is marked; a click on another calls `pick` with its place."""
    selection = {"selection": {"rows": [] if chosen is None else [chosen], "columns": [], "cells": []}}
    if st.session_state.get(key) != selection:
        stale_choices.set_control(key, selection)
    st.dataframe(
        rows,
        key=key,
        height=ROW_PIXELS * (1 + min(len(rows), most_in_view)) + 3,
        hide_index=True,
        column_config=dict(columns),
        selection_mode="single-row",
        on_select=partial(_take, key, pick),
    )


def _take(key: str, pick: Callable[[int], None]) -> None:
    """A browser that has not drawn the last choice yet sends the row before it: that is nobody's click."""
    stale_choices.restore_controls()
    for row in st.session_state[key]["selection"]["rows"]:
        pick(row)
