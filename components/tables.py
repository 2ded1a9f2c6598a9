"""Tables of numbers that can be read on a telephone: there each row of a wide table is a card."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from components.compact import compact_css
from components.numbers import MINUS

if TYPE_CHECKING:
    import pandas

LAYOUT = Path(__file__).resolve().parent / "assets" / "results.css"
MOST_ROWS = 40
"""A longer table is Streamlit's own, which draws the rows in view alone; its first column stays in sight."""
FEW_COLUMNS = 5
"""So many fit on a telephone side by side."""
NOTHING = "–"


@cache
def table_styles() -> str:
    """The layout of all tables as CSS."""
    return compact_css(LAYOUT.read_text(encoding="utf-8"))


def draw_table(table: pandas.DataFrame, name: str, pictures: Sequence[str] = ()) -> None:
    """Draw the numbers behind a chart. `pictures`: the URL of a small picture for each row, if they have any."""
    if len(table) <= MOST_ROWS or pictures:
        st.html(f"<style>{table_styles()}</style>{table_html(table, pictures)}")
        return
    pinned = {str(table.columns[0]): st.column_config.Column(pinned=True)}
    st.dataframe(table, hide_index=True, width="content", column_config=pinned, key=f"results_numbers_{name}")


def table_html(table: pandas.DataFrame, pictures: Sequence[str] = ()) -> str:
    """The table as HTML; its first column heads the rows.

    The roles tell screen readers that it is a table where it is drawn as cards too. Every text is escaped.
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


class _Column:
    """The values of a column as texts, numbers with the same decimals in each row."""

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
        return f"{value:,.{decimals}f}".replace("-", MINUS)
    return str(value)


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _decimals(value: int | float) -> int:
    """Digits behind the point of a number that was rounded; counts that pandas made floats have none."""
    return 0 if float(value).is_integer() else len(str(value).partition(".")[2])
