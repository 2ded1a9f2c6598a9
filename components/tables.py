"""Tables of values, which a phone shows as cards, tables of rows to choose from, and lists of facts and checks.

External text is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.controls import restore_controls, set_control
from components.numbers import MINUS
from components.styles import asset_sheet

if TYPE_CHECKING:
    import pandas

MOST_ROWS = 40
"""A longer table becomes a Streamlit data frame, which draws only the visible rows and keeps its first column in
view."""
FEW_COLUMNS = 5
"""Number of columns that fit side by side on a phone."""
NOTHING = "–"
ROW_PIXELS, BORDER_PIXELS = 33, 2
"""Height of a row and of the header at the theme's font size, and of both borders of a table."""
SIGNS = {"ok": "✓", "note": "·", "broken": "✗"}


def table_styles() -> str:
    """Return the layout of all tables as CSS."""
    return asset_sheet("results")


def draw_table(table: pandas.DataFrame, name: str, pictures: Sequence[str] = ()) -> None:
    """Draw the values behind a chart. `pictures`: URL of a thumbnail for each row, if any."""
    if len(table) <= MOST_ROWS or pictures:
        st.html(f"<style>{table_styles()}</style>{table_html(table, pictures)}")
        return
    pinned = {str(table.columns[0]): st.column_config.Column(pinned=True)}
    st.dataframe(table, hide_index=True, width="content", column_config=pinned, key=f"results_numbers_{name}")


def table_html(table: pandas.DataFrame, pictures: Sequence[str] = ()) -> str:
    """HTML of the table; its first column heads the rows.

    The roles tell screen readers that it is a table even if it is drawn as cards. All text is escaped.
    """
    columns = [_Column(str(name), table[name].tolist()) for name in table.columns]
    kind = "xg-numbers" if len(columns) <= FEW_COLUMNS else "xg-numbers xg-cards"
    heads = "".join(
        f'<th scope="col" role="columnheader"{column.side}>{escape(column.name)}</th>' for column in columns
    )
    rows = "".join(_row_html(columns, at, pictures[at] if pictures else "") for at in range(len(table)))
    return (
        f'<div class="xg"><div class="xg-scroll" role="region" tabindex="0" aria-label="{escape(columns[0].name)}: '
        f'numbers"><table class="{kind}" role="table"><thead role="rowgroup"><tr role="row">{heads}</tr></thead>'
        f'<tbody role="rowgroup">{rows}</tbody></table></div></div>'
    )


def row_choice(
    rows: pandas.DataFrame,
    key: str,
    chosen: int | None,
    pick: Callable[[int], None],
    columns: Mapping[str, Any],
    most_in_view: int,
) -> None:
    """Draw the rows with `chosen` marked; a click on another row calls `pick` with its position."""
    selection = {"selection": {"rows": [] if chosen is None else [chosen], "columns": [], "cells": []}}
    if st.session_state.get(key) != selection:
        set_control(key, selection)
    st.dataframe(
        rows,
        key=key,
        height="content" if len(rows) <= most_in_view else ROW_PIXELS * (1 + most_in_view) + BORDER_PIXELS,
        hide_index=True,
        placeholder=NOTHING,
        column_config=dict(columns),
        selection_mode="single-row",
        on_select=partial(_receive_row, key, pick),
    )


def facts_html(facts: Mapping[str, object]) -> str:
    """HTML of names and values; unknown values are left out."""
    known = {name: str(value) for name, value in facts.items() if value not in (None, "")}
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in known.items())
    return f'<div class="xg"><dl class="xg-facts xg-small">{rows}</dl></div>'


def checks_html(checks: Iterable[tuple[str, str, str, str]]) -> str:
    """HTML of checks, each (status, name, detail, advice). The status (`ok`, `note`, `broken`) is shown as a sign."""
    return f'<div class="xg"><dl class="xg-facts">{"".join(_check_html(*check) for check in checks)}</dl></div>'


def _receive_row(key: str, pick: Callable[[int], None]) -> None:
    """Handle a click. A browser that has not drawn the last choice yet sends the previous row, which is not a click."""
    restore_controls()
    for row in st.session_state[key]["selection"]["rows"]:
        pick(row)


class _Column:
    """The values of a column as strings; numbers have the same decimals in all rows."""

    def __init__(self, name: str, values: Sequence[object]) -> None:
        self.name = name
        numbers = [value for value in values if isinstance(value, int | float) and not _is_missing(value)]
        self.side = ' class="xg-number"' if numbers else ""
        decimals = max((_decimals(value) for value in numbers), default=0)
        self.texts = [_format_cell(value, decimals) for value in values]


def _row_html(columns: Sequence[_Column], at: int, picture: str) -> str:
    first, *rest = columns
    image = f'<img src="{escape(picture)}" alt="">' if picture else ""
    cells = "".join(
        f'<td role="cell" data-name="{escape(column.name)}"{column.side}>{escape(column.texts[at])}</td>'
        for column in rest
    )
    return (
        f'<tr role="row"><th scope="row" role="rowheader">{image}<bdi>{escape(first.texts[at])}</bdi></th>{cells}</tr>'
    )


def _format_cell(value: object, decimals: int) -> str:
    if _is_missing(value):
        return NOTHING
    if isinstance(value, int | float):
        return f"{value:z,.{decimals}f}".replace("-", MINUS)
    return str(value)


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _decimals(value: int | float) -> int:
    """Return the number of decimals of a rounded number; 0 for counts that pandas turned into floats."""
    return 0 if float(value).is_integer() else len(str(value).partition(".")[2])


def _check_html(status: str, name: str, detail: str, advice: str) -> str:
    more = f' <span class="xg-small">{escape(advice)}</span>' if advice else ""
    mark = ' class="xg-bad"' if status == "broken" else ""
    sign = f'<span title="{escape(status)}">{SIGNS[status]}</span>'
    return f"<dt{mark}>{sign} {escape(name)}</dt><dd>{escape(detail)}{more}</dd>"
