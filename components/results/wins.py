"""Which method is ranked above which, as a table whose cells are coloured: a chart that is its own numbers. Pure."""

from __future__ import annotations

from html import escape

import streamlit as st

from components.palette import step_of
from components.tables import table_styles
from components.text.token_map import TONES
from engine.study.ratings.summary import Summary

EVEN = 0.5


def draw_wins(found: Summary) -> None:
    """The table with its style sheet."""
    st.html(f"<style>{table_styles()}</style>{wins_html(found)}")


def wins_html(found: Summary) -> str:
    """Row above column, the best method first: blue in more than half of the votes, orange in less."""
    places = {method: found.methods.index(method) for method in found.order}
    heads = "".join(f'<th scope="col">{escape(method)}</th>' for method in places)
    rows = "".join(
        f'<tr><th scope="row">{escape(method)}</th>{_cells(found, row, list(places.values()))}</tr>'
        for method, row in places.items()
    )
    return (
        '<div class="xg"><div class="xg-scroll" role="region" tabindex="0" aria-label="Share of votes, row above '
        f'column"><table class="xg-wins"><thead><tr><th scope="col">ranked above</th>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div></div>"
    )


def _cells(found: Summary, row: int, columns: list[int]) -> str:
    return "".join("<td></td>" if column == row else _cell(float(found.wins[row, column])) for column in columns)


def _cell(share: float) -> str:
    step = step_of(share - EVEN, EVEN)
    kind = f' class="{TONES["for" if share > EVEN else "against"]}{step}"' if step else ""
    return f"<td{kind}>{100 * share:.0f}\u00a0%</td>"
