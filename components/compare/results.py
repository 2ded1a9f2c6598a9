"""The results of the Compare page: the maps as they are computed, the class verdict, the matrix, and the checks."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from components.ablation import TIED
from components.compare.comparison import ColumnMap, Comparison, Methods, class_verdict, empty_columns
from components.compare.maps_html import about_html, picture_maps_html, text_maps_html
from components.compare.state import VIEW, CompareState, CompareViewOptions, OpenDataSet, key
from components.controls import PERSIST
from components.errors import describe_error, show_error, show_note
from components.inputs.datasets import OpenTexts
from components.inputs.picture_choice import PictureFocus
from components.method_row import Placeholder
from components.numbers import count, hundredths, plural
from components.palette import PALETTES, browser_theme
from components.progress import MethodPlace, fill_places
from components.state import MEASURES
from engine.comparison.alignment import align_maps
from engine.errors import ExegesisError
from engine.lazy import LazyModule
from engine.metrics.agreement import Agreement
from engine.store import result_store

if TYPE_CHECKING:
    from components.charts import comparisons
else:
    comparisons = LazyModule("components.charts.comparisons")
"""Charts take long to import, and the maps are drawn before."""

NO_MODEL = "Add a column first: a model and a method."
MEASURE_TITLES = {"spearman": "Rank correlation", "top_k": "Shared top"}
ORDER_WORDS = {"sign": "with their sign, as on Evaluate", "size": "by their size, whatever the sign"}
EDGES, CELL, ROW, NARROWEST = 110, 64, 46, 340
"""Pixels of the letters and the scale, of a column, of a row, and of the whole, which is no wider on a phone."""
TOP, LEFT, TICKS, LEGEND, LEGEND_LINE, LINE = 20, 30, 30, 12, 17, 48
"""Pixels above the cells, of the letters left and below, of the legend's letters and lines; characters of a line."""
FEW, MANY, SMALL, LARGE = 4, 5, 10, 13
"""With fewer columns the scale has room for three numbers; with more than many the values are written small."""


@dataclass(eq=False)
class _ColumnSlot:
    """A column's place among the maps. `message`: what `fill` says of it while it has no map."""

    message: Placeholder | None = None

    def quiet(self, row: Placeholder) -> str:
        self.message = row
        return ""

    def html(self, body: str) -> None:
        """Nothing is drawn by itself: the maps are drawn together."""


def comparison_panel(state: CompareState, methods: Methods) -> Comparison | None:
    """The maps, drawn as explanations come, the costly last; None after saying why there are none."""
    if missing := _missing_input(state):
        st.info(missing)
    if missing or state.input is None:  # the controls of pictures show why
        return None
    progress, panel = st.empty(), st.empty()
    slots = [_ColumnSlot() for _ in state.columns]
    places = [
        MethodPlace(methods[pair.method], pair.request(state.input, state.target, state.seed), slot, quiet=slot.quiet)
        for pair, slot in zip(state.columns, slots, strict=True)
    ]
    empty = empty_columns(state, methods)

    def draw() -> Comparison | None:
        try:
            comparison = _comparison(state, empty, places, slots)
            build = picture_maps_html if state.kind == "image" else text_maps_html
            panel.html(build(comparison))
        except ExegesisError as error:
            show_error(describe_error(error), panel)
            return None
        return comparison

    def show() -> None:
        draw()

    fill_places(places, lambda method, explanation: "", progress, show)
    if trouble := result_store().status:
        show_note(trouble)
    return draw()


def _missing_input(state: CompareState) -> str:
    if not state.columns:
        return NO_MODEL
    texts = [] if state.kind == "image" or state.input is None else [*state.input.as_plain().values()]
    if texts and not str(texts[0]).strip():
        return "Type a text above, or pick an example, to compare its maps."
    if any(text is not None and not text.strip() for text in texts[1:]):
        return "Type the second text, or switch it off."
    return ""


def _comparison(
    state: CompareState, empty: tuple[ColumnMap, ...], places: list[MethodPlace], slots: list[_ColumnSlot]
) -> Comparison:
    columns, row = [], 0
    for column, place, slot in zip(empty, places, slots, strict=True):
        if place.made is None:
            message = slot.message or Placeholder("", "")
            columns.append(replace(column, message=message.sentence, failed=message.failed))
        else:
            columns.append(replace(column, explanation=place.made, row=row))
            row += 1
    explanations = [column.explanation for column in columns if column.explanation is not None]
    maps = align_maps(explanations, state.input, state.view.unit) if explanations and state.input is not None else None
    return Comparison(state, tuple(columns), maps)


def about_panel(comparison: Comparison) -> None:
    """Checks, costs and cautions of the columns, in a list that a click opens."""
    if comparison.explained:
        st.html(about_html(comparison))


def label_words(state: CompareState, source: OpenDataSet) -> str:
    """The example's label in the data set, in words; empty where there is none."""
    focus = state.focus
    if isinstance(focus, PictureFocus):
        names = () if isinstance(source, OpenTexts) else source.data.label_names
        return "" if focus.label is None or focus.own else f"Labelled {names[focus.label]}."
    if focus.index is None or not isinstance(source, OpenTexts):
        return ""
    label, names = source.data[focus.index].label, source.data.label_names
    if label is None:
        return ""
    return f"Labelled {names[label] if isinstance(label, int) and names else label}."


def verdict_panel(comparison: Comparison, label: str) -> None:
    """Whether the models agree on the class, beside the true `label` in words, and on what maps are compared."""
    if lines := " ".join(filter(None, (class_verdict(comparison.columns), label))):
        st.html(f'<div class="xg"><p class="xg-verdict">{escape(lines)}</p></div>')
    st.caption(parts_words(comparison))


def matrix_panel(comparison: Comparison) -> None:
    """Below the maps: the matrix of all columns that have a map."""
    st.subheader("Do they agree?", anchor=False)
    if comparison.agreement is None or len(comparison.explained) < 2:
        st.info("Two columns with a map are needed to compare them. Add one above.")
        return
    st.segmented_control(
        "Measure", MEASURES, key=key(comparison.state.kind, f"{VIEW}measure"), required=True,
        format_func=MEASURE_TITLES.__getitem__, persist_state=PERSIST,
    )  # fmt: skip
    _draw_matrix(comparison, comparison.agreement)
    st.caption(agreement_words(comparison.agreement, comparison.view, comparison.unit))
    if comparison.agreement.constant:
        names = ", ".join(comparison.agreement.constant)
        st.caption(f"Left out, because all its scores are equal and have no order: {names}.")
    if (disagreement := comparison.disagreement) is not None:
        st.caption(disagreement_words(disagreement, comparison))


def legend_lines(comparison: Comparison) -> list[str]:
    """What the letters of the matrix stand for and which are not in it, in lines that a phone is wide enough for."""
    lines = [*(column.name for column in comparison.explained), missing_words(comparison)]
    return [line for name in lines for line in textwrap.wrap(name, LINE, subsequent_indent="   ")]


def missing_words(comparison: Comparison) -> str:
    """Which columns are not in the matrix; empty where all are."""
    gone = [column.name for column in comparison.columns if column.explanation is None]
    return f"Without a map, so not in the matrix: {', '.join(gone)}." if gone else ""


def parts_words(comparison: Comparison) -> str:
    """On which parts maps are shown and compared."""
    maps = comparison.maps
    if maps is None:
        return "No column has a map yet."
    unit = comparison.unit
    if maps.grid is not None:
        rows, columns = maps.grid
        if maps.joined:
            return (
                f"The models cut the picture otherwise, so all maps are shown and compared on {rows} rows and "
                f"{columns} columns of patches where all of them look; a common patch has the sum of what lies in it."
            )
        return f"Every map has the same {rows} rows and {columns} columns of patches."
    lines = f"{count(len(maps.parts) - maps.blanks, unit)}, without special tokens."
    if unit == "word":
        lines += " A word's score is the sum of its tokens'."
    if maps.joined:
        lines += f" The tokenizers cut {maps.joined:,} of them otherwise: what overlaps is one part with the sum."
    if maps.blanks:
        lines += f" {count(maps.blanks, 'part')} of white space: not every tokenizer reads it as a token of its own."
    return lines


def agreement_words(agreement: Agreement, view: CompareViewOptions, unit: str) -> str:
    """What the matrix measures."""
    if agreement.measure == "spearman":
        words = f"Spearman's ρ of the {plural(unit)}' scores: +1 the same order, 0 no relation, −1 the reverse. "
    else:
        k, n = agreement.k, agreement.n
        words = (
            f"The share of the top {view.percent}% of {plural(unit)}, here {k} of {n}, that both maps "
            f"name; about {100 * k / max(n, 1):.0f}% by chance. {TIED} "
        )
    return f"{words}Scores count {ORDER_WORDS[view.order]}. Agreement is not correctness: two maps can share a mistake."


def disagreement_words(disagreement: float, comparison: Comparison) -> str:
    """One number for the example."""
    name = "ρ" if comparison.view.measure == "spearman" else "shared top"
    scope = comparison.disagreement_scope
    return f"Disagreement on this example: {hundredths(disagreement)}, 1 minus the mean {name} over {scope}."


def _draw_matrix(comparison: Comparison, agreement: Agreement) -> None:
    names = {column.letter: column.name for column in comparison.explained}
    figure = comparisons.agreement_figure(agreement, names, browser_theme())
    letters = {"tickvals": list(names.values()), "ticktext": list(names), "tickangle": 0}
    # Letters alone, so that the cells have room on a phone; below they are named, in the saved picture too.
    figure.update_xaxes(**letters)
    figure.update_yaxes(**letters)
    figure.update_traces(textfont_size=SMALL if len(names) > MANY else LARGE)
    lines = legend_lines(comparison)
    figure.add_annotation(
        text="<br>".join(escape(line, quote=False).replace("   ", "\u00a0" * 3) for line in lines), showarrow=False,
        xref="paper", x=0, xanchor="left", xshift=-LEFT, yref="paper", y=0, yanchor="top", yshift=-TICKS, align="left",
        font={"size": LEGEND, "color": PALETTES[browser_theme()].muted},
    )  # fmt: skip
    below = TICKS + LEGEND_LINE * len(lines)
    figure.update_layout(height=TOP + ROW * len(names) + below, margin={"l": LEFT, "r": 10, "t": TOP, "b": below})
    figure.update_yaxes(automargin=False)
    figure.update_xaxes(automargin=False)
    if len(names) < FEW:
        figure.update_traces(colorbar_nticks=3)
    width = max(EDGES + CELL * len(names), NARROWEST)
    st.plotly_chart(figure, key=f"compare_{comparison.state.kind}_matrix", width=width)
