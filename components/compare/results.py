"""Results of the Compare page: the maps as they are computed, the class verdict, the matrix, and the checks.

Below them is the search for disagreement: a job explains many examples, and a list shows the largest disagreement
first.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from components.ablation import TIED
from components.browse.lists import Offer, draw_jobs, draw_walk
from components.browse.results import JobStamp, count_losses, portable_name, related_jobs
from components.compare.comparison import (
    ColumnMap,
    Comparison,
    Methods,
    RankedPair,
    class_verdict,
    empty_columns,
    own_classes_note,
)
from components.compare.maps_html import about_html, picture_maps_html, text_maps_html
from components.compare.state import EXAMPLES, LETTERS, VIEW, CompareState, CompareViewOptions, key
from components.controls import PERSIST
from components.errors import describe_error, show_error, show_note
from components.inputs.choices import CHOICES, Opened, label_name
from components.method_row import Placeholder
from components.numbers import count, hundredths, percent, plural
from components.palette import PALETTES, browser_theme
from components.progress import MethodPlace, fill_places
from components.state import MEASURES
from components.tables import row_choice
from engine.comparison.alignment import align_maps
from engine.comparison.experiment import ExampleDisagreement, find_disagreements
from engine.comparison.plan import ComparisonPlan
from engine.errors import ExegesisError
from engine.format import join_names, shorten
from engine.home import home
from engine.lazy import LazyModule
from engine.metrics.agreement import Agreement
from engine.models.summary import chance_note
from engine.request import Example
from engine.store import result_store
from engine.table_io import escape_cell

if TYPE_CHECKING:
    import pandas

    from components.charts import comparisons
else:
    pandas = LazyModule("pandas")
    comparisons = LazyModule("components.charts.comparisons")
"""Slow to import, and not needed to draw the maps."""

NO_MODEL = "Add a column: a model and a method."
MEASURE_TITLES = {"spearman": "Rank correlation", "top_k": "Shared top"}
ORDER_WORDS = {"sign": "with their sign, as on Evaluate", "size": "by absolute value"}
ROUNDING = 1e-12
EDGES, CELL, ROW, NARROWEST = 210, 64, 46, 340
"""Sizes of the matrix in pixels: letters and scale, a column, a row, and the smallest width, which fits a phone."""
TOP, LEFT, TICKS, LEGEND, LEGEND_LINE, LINE, ROW_LABEL = 20, 130, 30, 12, 17, 48, 18
"""More sizes of the matrix.

In pixels: space above the cells, names at the left, letters below, font size and line height of the notes. In
characters: a line of a note, and a line of a name.
"""
FEW, MANY, SMALL, LARGE = 4, 5, 10, 11
"""Below `FEW` columns the scale has three numbers; above `MANY` columns values have the font size `SMALL`."""
TABLE = "disputed"
MOST_IN_VIEW, MOST_CHARACTERS = 10, 160
TOO_FEW = "The search needs two columns with a map of this example."


@dataclass(eq=False)
class _ColumnSlot:
    """A column's place among the maps. `message`: the placeholder that `fill_places` sets while it has no map."""

    message: Placeholder | None = None

    def quiet(self, row: Placeholder) -> str:
        self.message = row
        return ""

    def html(self, body: str) -> None:
        """Do nothing, because the maps are drawn together."""


def comparison_panel(state: CompareState, methods: Methods) -> Comparison | None:
    """Draw the maps as explanations arrive, costly ones last; None after a message if there are none."""
    if missing := _missing_input(state):
        st.info(missing)
    if missing or state.input is None:  # the picture controls show why
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
    texts = state.input.texts if isinstance(state.input, Example) else ()
    if texts and not texts[0].strip():
        return "Type a text above or choose an example to compare its maps."
    if any(not text.strip() for text in texts[1:]):
        return "Type the second text, or turn it off in Options."
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
    """Draw checks, costs and cautions of the columns in a list that is closed at first."""
    if comparison.explained:
        st.html(about_html(comparison))


def label_words(state: CompareState, source: Opened) -> str:
    """Describe the example's label in the data set; empty if there is none."""
    label = CHOICES[state.kind].label(state.focus, source)
    return "" if label is None else f"Label: {label_name(state.kind, state.focus, source) or label}."


def verdict_panel(comparison: Comparison, label: str) -> None:
    """Draw the summary of the matrix, whether the models agree on the class, and the example's `label`."""
    texts = (agreement_summary(comparison), class_verdict(comparison.columns), label)
    if lines := " ".join(filter(None, texts)):
        st.html(f'<div class="xg"><p class="xg-verdict">{escape(lines)}</p></div>')


def notes_panel(comparison: Comparison, source: Opened) -> None:
    """Draw notes on maps of different classes, and on models at chance on the data set."""
    state = comparison.state
    if own := own_classes_note(comparison.columns):
        show_note(own)
    if state.focus.index is not None:
        for model in dict.fromkeys(pair.model for pair in state.columns):
            if note := chance_note(model, source.name):
                show_note(note)


def agreement_summary(comparison: Comparison) -> str:
    """Name the columns that agree most and least, with the measure and its chance level; empty below two maps.

    It compares the pairs that `mean_disagreement` averages over. By chance, Spearman's rho of n parts has mean 0 and
    standard deviation 1 / sqrt(n - 1), and random top-k sets of n parts share k / n on average.
    """
    agreement, pairs = comparison.agreement, comparison.compared_pairs
    if agreement is None or not pairs:
        return ""
    rho = agreement.measure == "spearman"
    chance = (
        f"Unrelated maps: ρ 0.00 ± {hundredths(1 / math.sqrt(max(agreement.n - 1, 1)))} (standard deviation over "
        f"{agreement.n:,} {plural(comparison.unit)})."
        if rho
        else f"Unrelated maps: {percent(agreement.k / agreement.n)}."
    )

    def value(pair: RankedPair) -> str:
        return (
            f"ρ {hundredths(pair.value, sign=True)}"
            if rho
            else f"{percent(pair.value)} of the top {agreement.k} shared"
        )

    best, last = pairs[0], pairs[-1]
    if len(pairs) == 1:
        return f"Agreement of {best.names}: {value(best)}. {chance}"
    if best.value - last.value < ROUNDING:
        return f"All {len(pairs)} pairs agree equally: {value(best)}. {chance}"
    left_out = comparison.uncounted
    rest = f" Not counted: {join_names([column.name for column in left_out])}." if left_out else ""
    return f"{best.names} agree most ({value(best)}), {last.names} least ({value(last)}). {chance}{rest}"


def matrix_panel(comparison: Comparison) -> None:
    """Draw the matrix of all columns that have a map."""
    if len(comparison.columns) == 1 and comparison.others:
        return
    st.subheader("Do they agree?", anchor=False)
    if comparison.agreement is None or len(comparison.explained) < 2:
        st.info("A comparison needs two columns with a map. Add one above.")
        return
    st.segmented_control(
        "Measure", MEASURES, key=key(comparison.state.kind, f"{VIEW}measure"), required=True,
        format_func=MEASURE_TITLES.__getitem__, persist_state=PERSIST,
    )  # fmt: skip
    st.caption(parts_words(comparison))
    _draw_matrix(comparison, comparison.agreement)
    st.caption(agreement_words(comparison.agreement, comparison.view, comparison.unit))
    if comparison.agreement.constant:
        names = ", ".join(comparison.agreement.constant)
        st.caption(f"Not compared, because the scores have no order (all are equal): {names}.")
    if (disagreement := comparison.disagreement) is not None:
        st.caption(disagreement_words(disagreement, comparison))


def row_label(name: str) -> str:
    """Return the label of a row of the matrix as HTML, in at most three short lines that fit on a phone."""
    lines = textwrap.wrap(name, ROW_LABEL, max_lines=3, placeholder=" …")
    return "<br>".join(escape(line, quote=False) for line in lines)


def missing_words(comparison: Comparison) -> str:
    """Name the columns that are not in the matrix; empty if all are."""
    gone = [column.name for column in comparison.columns if column.explanation is None]
    return f"Not in the matrix, because there is no map: {', '.join(gone)}." if gone else ""


def parts_words(comparison: Comparison) -> str:
    """Describe the parts on which maps are shown and compared."""
    maps = comparison.maps
    if maps is None:
        return "No column has a map yet."
    unit = comparison.unit
    if maps.grid is not None:
        rows, columns = maps.grid
        if maps.joined:
            return (
                f"The models use different patch grids, so all maps are compared on a common grid of {rows} rows and "
                f"{columns} columns over the area that all models see. A common patch has the sum of the scores in it."
            )
        return f"All maps have the same grid of {rows} rows and {columns} columns."
    lines = f"{count(len(maps.parts) - maps.blanks, unit)}, without special tokens."
    if unit != "token":
        lines += f" A {unit}'s score is the sum of its tokens'."
    if maps.joined:
        lines += f" The tokenizers split {maps.joined:,} of them differently: overlapping tokens are summed."
    if maps.blanks:
        lines += f" {count(maps.blanks, 'part')} of white space: a token for some tokenizers only."
    return lines


def agreement_words(agreement: Agreement, view: CompareViewOptions, unit: str) -> str:
    """Describe what the matrix measures."""
    if agreement.measure == "spearman":
        words = f"Spearman's ρ of the {plural(unit)}' scores: +1 same order, 0 unrelated, −1 reverse order. "
    else:
        k, n = agreement.k, agreement.n
        words = (
            f"The share of the top {view.percent}% of {plural(unit)}, here {k} of {n}, that is in both maps; "
            f"{percent(k / max(n, 1))} by chance. {TIED} "
        )
    return f"{words}Scores are ranked {ORDER_WORDS[view.order]}. Agreement is not correctness: both maps can be wrong."


def disagreement_words(disagreement: float, comparison: Comparison) -> str:
    """Describe the disagreement on the example."""
    name = "ρ" if comparison.view.measure == "spearman" else "shared top"
    scope = comparison.disagreement_scope
    return f"Disagreement on this example: {hundredths(disagreement)} (1 minus the mean {name} over {scope})."


def _draw_matrix(comparison: Comparison, agreement: Agreement) -> None:
    names = {column.letter: column.name for column in comparison.explained}
    figure = comparisons.agreement_figure(agreement, names, browser_theme())
    # Only letters below, so that the cells have room on a phone.
    figure.update_xaxes(tickvals=list(names.values()), ticktext=list(names), tickangle=0)
    figure.update_yaxes(tickvals=list(names.values()), ticktext=[row_label(name) for name in names.values()])
    figure.update_traces(textfont_size=SMALL if len(names) > MANY else LARGE)
    lines = textwrap.wrap(missing_words(comparison), LINE)
    if lines:
        figure.add_annotation(
            text="<br>".join(escape(line, quote=False) for line in lines), showarrow=False, xref="paper", x=0,
            xanchor="left", xshift=-LEFT, yref="paper", y=0, yanchor="top", yshift=-TICKS, align="left",
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


def search_panel(comparison: Comparison, source: Opened) -> None:
    """Draw the search for disagreement, if its switch is on.

    Columns without a map of the current example are not searched.
    """
    state = comparison.state
    st.subheader("Where they disagree most", anchor=False)
    if not st.toggle(
        "Examples of the data set, most disagreement first", key=key(state.kind, "open.search"), persist_state=PERSIST,
        help="Runs all columns on many examples, as a job that continues when you leave the page.",
    ):  # fmt: skip
        return
    if source.error:
        st.info("The data set cannot be read. The error is above; choose another data set.")
        return
    if len(comparison.explained) < 2:
        st.info(TOO_FEW)
        return
    st.selectbox(
        "Examples", EXAMPLES, key=key(state.kind, f"{VIEW}examples"), width=150, persist_state=PERSIST,
        help="The number of examples to compare, sampled with the seed.",
    )  # fmt: skip
    try:
        _draw_search(comparison, source)
    except Exception as error:
        show_error(describe_error(error))


def search_plan(comparison: Comparison, source: Opened) -> ComparisonPlan:
    """Return the plan of the search: the columns with a map of the current example, on the open data set."""
    state = comparison.state
    pairs = tuple(state.columns[LETTERS.index(column.letter)] for column in comparison.explained)
    name, split = portable_name(state.kind, source.name), source.split or None
    return ComparisonPlan(name, pairs, state.kind, split, state.view.examples, state.seed, state.target)


def _is_same_search(spec: Mapping[str, object], other: Mapping[str, object]) -> bool:
    """Whether two jobs compute the same maps, of any number of examples."""
    return {**spec, "examples": 0} == {**other, "examples": 0}


def _draw_search(comparison: Comparison, source: Opened) -> None:
    plan = search_plan(comparison, source)
    spec = plan.as_plain()
    jobs = related_jobs("compare", lambda job: _is_same_search(job.spec, spec))
    reference = None if comparison.reference is None else comparison.reference.row
    examples = _disagreements(
        plan, comparison.state.view, reference, source.data.revision, jobs.stamp, count_losses(), str(home())
    )  # fmt: skip
    wanted = min(plan.examples, len(source.data))
    # With fewer maps, the disagreement means something else.
    complete = [one for one in examples if one.maps == len(plan.pairs)]
    missing = wanted - len(complete)
    label = f"Compare {count(wanted, 'example')}" if not complete else f"Compare the other {count(missing, 'example')}"
    offers = [Offer(label, "compare_columns", spec, kind="compare")] if missing else []
    draw_jobs(jobs, offers)
    if complete:
        _draw_list(comparison, source, complete)
    elif jobs.running is None:
        st.info(f"Nothing is compared yet. Press {label}.")


def _draw_list(comparison: Comparison, source: Opened, examples: Sequence[ExampleDisagreement]) -> None:
    state = comparison.state
    places = [one.index for one in examples]
    current, show = state.focus.place, partial(CHOICES[state.kind].show, source)
    draw_walk(places, current, show, partial(key, state.kind))
    row_choice(
        disagreement_frame(examples, comparison),
        key(state.kind, TABLE),
        places.index(current) if current in places else None,
        lambda row: show(places[row]),
        {
            "#": st.column_config.NumberColumn(width=60, help="Index in the data set"),
            "Disagreement": st.column_config.NumberColumn(format="%.2f", width=110),
            "Example": st.column_config.TextColumn(width=420),
        },
        MOST_IN_VIEW,
    )
    st.caption(list_words(examples, comparison))


def disagreement_frame(examples: Sequence[ExampleDisagreement], comparison: Comparison) -> pandas.DataFrame:
    """Return one row per example: index, disagreement, text, whether predicted classes differ, and predictions."""
    columns: dict[str, list[object]] = {
        "#": [one.index for one in examples],
        "Disagreement": [one.value for one in examples],
        "Example": [_cell_text(one.name) for one in examples],
    }
    models: dict[str, int] = {}
    for place, column in enumerate(comparison.explained):
        models.setdefault(column.model, place)
    if len(models) > 1:
        columns["Classes"] = ["differ" if one.labels_differ else "same" for one in examples]
    columns |= {model: [_cell_text(one.predicted[place] or "") for one in examples] for model, place in models.items()}
    return pandas.DataFrame(columns)


def list_words(examples: Sequence[ExampleDisagreement], comparison: Comparison) -> str:
    """Describe the disagreement in the list, and the number of examples."""
    view = comparison.view
    name = "ρ" if view.measure == "spearman" else f"shared top {view.percent}%"
    values = [one.value for one in examples if one.value is not None]
    mean = f" Mean {hundredths(sum(values) / len(values))}." if values else ""
    unordered = len(examples) - len(values)
    none = f" {count(unordered, 'example')} cannot be ranked and come last." if unordered else ""
    over = comparison.disagreement_scope
    return f"{count(len(examples), 'example')}. Disagreement is 1 minus the mean {name} over {over}.{mean}{none}"


@st.cache_resource(max_entries=8, show_spinner="Reading the maps …")
def _disagreements(
    plan: ComparisonPlan,
    view: CompareViewOptions,
    reference: int | None,
    revision: str,
    stamp: JobStamp,
    losses: int,
    home: str,
) -> list[ExampleDisagreement]:
    return find_disagreements(plan, view.agreement_options, view.unit, reference, compute=False)


def _cell_text(text: str) -> str:
    return escape_cell(shorten(text, MOST_CHARACTERS))
