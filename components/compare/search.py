"""Where they disagree most: a job explains many examples, and the list shows those that differ most first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from components.browse.lists import Offer, draw_jobs, draw_walk
from components.browse.results import JobStamp, count_losses, portable_name, portable_picture_name, related_jobs
from components.compare.comparison import Comparison
from components.compare.state import EXAMPLES, LETTERS, VIEW, CompareViewOptions, OpenDataSet, key
from components.controls import PERSIST
from components.errors import describe_error, show_error
from components.inputs import picture_choice as picture_focus_controls
from components.inputs import text_choice
from components.inputs.datasets import OpenTexts
from components.inputs.picture_choice import PictureFocus
from components.numbers import count, hundredths
from components.tables import row_choice
from engine.comparison.experiment import ExampleDisagreement, find_disagreements
from engine.comparison.plan import ComparisonPlan
from engine.home import home
from engine.lazy import LazyModule
from engine.table_io import escape_cell

if TYPE_CHECKING:
    import pandas
else:
    pandas = LazyModule("pandas")

TABLE = "disputed"
MOST_IN_VIEW, MOST_CHARACTERS = 10, 160
TOO_FEW = "The search needs two columns with a map of this example."


def search_panel(comparison: Comparison, source: OpenDataSet) -> None:
    """Opened by its switch. Columns without a map of the example at hand are not searched."""
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


def search_plan(comparison: Comparison, source: OpenDataSet) -> ComparisonPlan:
    """The plan of the search: the columns that have a map here, on the data set that is open."""
    state = comparison.state
    pairs = tuple(state.columns[LETTERS.index(column.letter)] for column in comparison.explained)
    split = None if isinstance(source, OpenTexts) else source.split or None
    return ComparisonPlan(
        _portable_name(source), pairs, state.kind, split, state.view.examples, state.seed, state.target
    )  # fmt: skip


def _is_same_search(spec: Mapping[str, object], other: Mapping[str, object]) -> bool:
    """Whether a job makes the same maps, of any number of examples."""
    return {**spec, "examples": 0} == {**other, "examples": 0}


def _portable_name(source: OpenDataSet) -> str:
    return portable_name(source.name) if isinstance(source, OpenTexts) else portable_picture_name(source.name)


def _draw_search(comparison: Comparison, source: OpenDataSet) -> None:
    plan = search_plan(comparison, source)
    spec = plan.as_plain()
    jobs = related_jobs("compare", lambda job: _is_same_search(job.spec, spec))
    reference = None if comparison.reference is None else comparison.reference.row
    examples = _disagreements(
        plan, comparison.state.view, reference, source.data.revision, jobs.stamp, count_losses(), str(home())
    )  # fmt: skip
    wanted = min(plan.examples, len(source.data))
    # With fewer maps the number means something else.
    complete = [one for one in examples if one.maps == len(plan.pairs)]
    missing = wanted - len(complete)
    label = f"Compare {count(wanted, 'example')}" if not complete else f"Compare the other {count(missing, 'example')}"
    offers = [Offer(label, "compare_columns", spec, kind="compare")] if missing else []
    draw_jobs(jobs, offers)
    if complete:
        _draw_list(comparison, source, complete)
    elif jobs.running is None:
        st.info(f"Nothing is compared yet. Press {label}.")


def _draw_list(comparison: Comparison, source: OpenDataSet, examples: Sequence[ExampleDisagreement]) -> None:
    state = comparison.state
    places = [one.index for one in examples]
    current = state.focus.index if not isinstance(state.focus, PictureFocus) or not state.focus.own else None
    draw_walk(places, current, partial(_show_example, source), partial(key, state.kind))
    row_choice(
        disagreement_frame(examples, comparison),
        key(state.kind, TABLE),
        places.index(current) if current in places else None,
        lambda row: _show_example(source, places[row]),
        {
            "#": st.column_config.NumberColumn(width=60, help="Index in the data set"),
            "Disagreement": st.column_config.NumberColumn(format="%.2f", width=110),
            "Example": st.column_config.TextColumn(width=420),
        },
        MOST_IN_VIEW,
    )
    st.caption(list_words(examples, comparison))


def disagreement_frame(examples: Sequence[ExampleDisagreement], comparison: Comparison) -> pandas.DataFrame:
    """A row an example: place, disagreement, whether the predicted classes differ, what each model predicts, text."""
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
    """The meaning of the number, and over how many examples."""
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


def _show_example(source: OpenDataSet, index: int) -> None:
    if isinstance(source, OpenTexts):
        text_choice.show(source, index)
    else:
        picture_focus_controls.show(source, index)


def _cell_text(text: str) -> str:
    line = " ".join(text.split())
    return escape_cell(line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 1]}…")
