"""How far every two columns agree: the matrix, what it measures, and which maps it leaves out."""

from __future__ import annotations

import textwrap
from html import escape

import streamlit as st

from components.compare.compared import Compared, verdict
from components.compare.look import CompareLook
from components.compare.session import LOOK, key
from components.kept import KEPT
from components.numbers import count, hundredths
from components.palette import PALETTES
from components.question_words import MEASURES, TIED, plural
from components.theme import shown_theme
from engine.metrics.agreement import Agreement

MEASURE_TITLES = {"spearman": "Rank correlation", "top_k": "Shared top"}
ORDER_WORDS = {"sign": "with their sign, as on Evaluate", "size": "by their size, whatever the sign"}
EDGES, CELL, ROW, NARROWEST = 110, 64, 46, 340
"""Pixels of the letters and the scale, of a column, of a row, and of the whole, which is no wider on a phone."""
TOP, LEFT, TICKS, LEGEND, LEGEND_LINE, LINE = 20, 30, 30, 12, 17, 48
"""Pixels above the cells, of the letters left and below, of the legend's letters and lines; characters of a line."""
FEW, MANY, SMALL, LARGE = 4, 5, 10, 13
"""With fewer columns the scale has room for three numbers; with more than many the values are written small."""


def said_area(compared: Compared, label: str) -> None:
    """Whether the models agree on the class, beside the true `label` in words, and on what maps are compared."""
    if told := " ".join(filter(None, (verdict(compared.columns), label))):
        st.html(f'<div class="xg"><p class="xg-verdict">{escape(told)}</p></div>')
    st.caption(parts_words(compared))


def matrix_area(compared: Compared) -> None:
    """Below the maps: the matrix of all columns that have a map."""
    st.subheader("Do they agree?", anchor=False)
    if compared.found is None or len(compared.there) < 2:
        st.info("Two columns with a map are needed to compare them. Add one above.")
        return
    st.segmented_control(
        "Measure", MEASURES, key=key(compared.state.kind, f"{LOOK}measure"), required=True,
        format_func=MEASURE_TITLES.__getitem__, persist_state=KEPT,
    )  # fmt: skip
    _matrix(compared, compared.found)
    st.caption(agreement_words(compared.found, compared.look, compared.unit))
    if compared.found.constant:
        names = ", ".join(compared.found.constant)
        st.caption(f"Left out, because all its scores are equal and have no order: {names}.")
    if (apart := compared.apart) is not None:
        st.caption(apart_words(apart, compared))


def legend_lines(compared: Compared) -> list[str]:
    """What the letters of the matrix stand for and which are not in it, in lines that a phone is wide enough for."""
    told = [*(column.name for column in compared.there), missing_words(compared)]
    return [line for name in told for line in textwrap.wrap(name, LINE, subsequent_indent="   ")]


def missing_words(compared: Compared) -> str:
    """Which columns are not in the matrix; empty where all are."""
    gone = [column.name for column in compared.columns if column.made is None]
    return f"Without a map, so not in the matrix: {', '.join(gone)}." if gone else ""


def parts_words(compared: Compared) -> str:
    """On which parts maps are shown and compared."""
    sheet = compared.sheet
    if sheet is None:
        return "No column has a map yet."
    unit = compared.unit
    if sheet.grid is not None:
        rows, columns = sheet.grid
        if sheet.joined:
            return (
                f"The models cut the picture otherwise, so all maps are shown and compared on {rows} rows and "
                f"{columns} columns of patches where all of them look; a common patch has the sum of what lies in it."
            )
        return f"Every map has the same {rows} rows and {columns} columns of patches."
    told = f"{count(len(sheet.parts) - sheet.blanks, unit)}, without special tokens."
    if unit == "word":
        told += " A word's score is the sum of its tokens'."
    if sheet.joined:
        told += f" The tokenizers cut {sheet.joined:,} of them otherwise: what overlaps is one part with the sum."
    if sheet.blanks:
        told += f" {count(sheet.blanks, 'part')} of white space: not every tokenizer reads it as a token of its own."
    return told


def agreement_words(found: Agreement, look: CompareLook, unit: str) -> str:
    """What the matrix measures."""
    if found.measure == "spearman":
        words = f"Spearman's ρ of the {plural(unit)}' scores: +1 the same order, 0 no relation, −1 the reverse. "
    else:
        words = (
            f"The share of the top {look.percent} % of {plural(unit)}, here {found.k} of {found.n}, that both maps "
            f"name; about {100 * found.k / max(found.n, 1):.0f} % by chance. {TIED} "
        )
    return f"{words}Scores count {ORDER_WORDS[look.order]}. Agreement is not correctness: two maps can share a mistake."


def apart_words(apart: float, compared: Compared) -> str:
    """One number for the example."""
    name = "ρ" if compared.look.measure == "spearman" else "shared top"
    return f"Disagreement on this example: {hundredths(apart)}, 1 minus the mean {name} over {compared.apart_over}."


def _matrix(compared: Compared, found: Agreement) -> None:
    # Here and not above: charts take long to import.
    from components.charts.comparisons import agreement_figure

    names = {column.letter: column.name for column in compared.there}
    figure = agreement_figure(found, names, shown_theme())
    letters = {"tickvals": list(names.values()), "ticktext": list(names), "tickangle": 0}
    # Letters alone, so that the cells have room on a phone; below they are named, in the saved picture too.
    figure.update_xaxes(**letters)
    figure.update_yaxes(**letters)
    figure.update_traces(textfont_size=SMALL if len(names) > MANY else LARGE)
    lines = legend_lines(compared)
    figure.add_annotation(
        text="<br>".join(escape(line, quote=False).replace("   ", "\u00a0" * 3) for line in lines), showarrow=False,
        xref="paper", x=0, xanchor="left", xshift=-LEFT, yref="paper", y=0, yanchor="top", yshift=-TICKS, align="left",
        font={"size": LEGEND, "color": PALETTES[shown_theme()].muted},
    )  # fmt: skip
    below = TICKS + LEGEND_LINE * len(lines)
    figure.update_layout(height=TOP + ROW * len(names) + below, margin={"l": LEFT, "r": 10, "t": TOP, "b": below})
    figure.update_yaxes(automargin=False)
    figure.update_xaxes(automargin=False)
    if len(names) < FEW:
        figure.update_traces(colorbar_nticks=3)
    width = max(EDGES + CELL * len(names), NARROWEST)
    st.plotly_chart(figure, key=f"compare_{compared.state.kind}_matrix", width=width)
