"""Tables of a study's results that can be read on a telephone: there each row of a wide table is a card."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from components.numbers import MINUS
from components.results.wins import sheet

if TYPE_CHECKING:
    import pandas

MOST_ROWS = 40
"""A longer table is Streamlit's own, which draws the rows in view alone; its first column stays in sight."""
FEW_COLUMNS = 5
"""So many fit on a telephone side by side."""
NOTHING = "–"


def numbers(table: pandas.DataFrame, name: str, pictures: Sequence[str] = ()) -> None:
    """A table of what was drawn. `pictures`: the URL of a small picture for each row, if they have any."""
    if len(table) <= MOST_ROWS or pictures:
        st.html(f"<style>{sheet()}</style>{numbers_html(table, pictures)}")
        return
    pinned = {str(table.columns[0]): st.column_config.Column(pinned=True)}
    st.dataframe(table, hide_index=True, width="content", column_config=pinned, key=f"results_numbers_{name}")


def numbers_html(table: pandas.DataFrame, pictures: Sequence[str] = ()) -> str:
    """The roles tell screen readers that it is a table where it is drawn as cards too. Every text is escaped."""
    columns = [_Column(str(name), table[name].tolist()) for name in table.columns]
    kind = "xg-numbers" if len(columns) <= FEW_COLUMNS else "xg-numbers xg-cards"
    heads = "".join(f'<th scope="col" role="columnheader"{one.side}>{escape(one.name)}</th>' for one in columns)
    rows = "".join(_row(columns, at, pictures[at] if pictures else "") for at in range(len(table)))
    return (
        f'<div class="xg"><div class="xg-scroll" role="region" tabindex="0" aria-label="{escape(columns[0].name)}: '
        f'numbers"><table class="{kind}" role="table"><thead role="rowgroup"><tr role="row">{heads}</tr></thead>'
        f'<tbody role="rowgroup">{rows}</tbody></table></div></div>'
    )


class _Column:
    """The values of a column as texts, numbers with the same decimals in each row."""

    def __init__(self, name: str, values: Sequence[object]) -> None:
        self.name = name
        numbers = [value for value in values if isinstance(value, int | float) and not _missing(value)]
        self.side = ' class="xg-number"' if numbers else ""
        decimals = max((_decimals(value) for value in numbers), default=0)
        self.texts = [_text(value, decimals) for value in values]


def _row(columns: Sequence[_Column], at: int, picture: str) -> str:
    first, *rest = columns
    image = f'<img src="{escape(picture)}" alt="">' if picture else ""
    cells = "".join(
        f'<td role="cell" data-name="{escape(one.name)}"{one.side}>{escape(one.texts[at])}</td>' for one in rest
    )
    return (
        f'<tr role="row"><th scope="row" role="rowheader">{image}<bdi>{escape(first.texts[at])}</bdi></th>{cells}</tr>'
    )


def _text(value: object, decimals: int) -> str:
    if _missing(value):
        return NOTHING
    if isinstance(value, int | float):
        return f"{value:,.{decimals}f}".replace("-", MINUS)
    return str(value)


def _missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _decimals(value: int | float) -> int:
    """Digits behind the point of a number that was rounded; counts that pandas made floats have none."""
    return 0 if float(value).is_integer() else len(str(value).partition(".")[2])
