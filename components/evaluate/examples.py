"""The examples behind a mean: each with its value, input and prediction, and a link that opens it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from html import escape

import streamlit as st

from components.browse.thumbnails import thumbnail_url
from components.controls import PERSIST
from components.errors import show_note
from components.evaluate.leaderboard import use_board_styles
from components.evaluate.view import ORDERS, SESSION, ScorePoint, point_at
from components.experiment.state import VIEW, ExperimentState
from components.links import Query, write_text
from components.navigation import IMAGES, TEXT
from components.numbers import count, even, percent
from engine.data.examples import LabeledExample
from engine.data.sources import ExampleSource, SourceExample
from engine.errors import ExegesisError
from engine.evaluation.groups import SLICES, split
from engine.evaluation.result import Evaluation, ExampleFacts
from engine.experiments.options import RANDOM
from engine.format import shorten
from engine.metrics.catalog import METRICS
from engine.metrics.results import MetricRow
from engine.request import Example, Picture

A_PAGE = 10
LONGEST = 220
SHOWN_AND_LINK = (5, 1)


@dataclass(frozen=True)
class ScoredExample:
    """An example behind a point: its value and its facts."""

    row: MetricRow
    facts: ExampleFacts | None


def examples_of(evaluation: Evaluation, point: ScorePoint, order: str) -> list[ScoredExample]:
    """Return the examples of a mean in the given order; examples without a value are left out."""
    known = {one.example: one for one in evaluation.facts if one.model == point.model}
    rows = [row for row in evaluation.rows if is_of_point(row, point)]
    ordered = sorted(rows, key=lambda row: row.example)
    if order != "index":
        ordered.sort(key=lambda row: row.value, reverse=order == "high")
    return [ScoredExample(row, known.get(row.example)) for row in ordered]


def is_of_point(row: MetricRow, point: ScorePoint) -> bool:
    """Whether the row counts in the mean of the point."""
    of = row.of
    return (of.model, of.method, of.metric, of.against, of.percent) == (
        point.model, point.method, point.metric, point.against, point.at
    )  # fmt: skip


def examples_area(
    state: ExperimentState, evaluation: Evaluation, source: ExampleSource, titles: Mapping[str, str]
) -> None:  # fmt: skip
    """Draw the examples behind the point that was clicked, if any."""
    point = state.view.picked
    if point is None:
        return
    cut = cut_to(evaluation, point.slice, state.view.slice, point.model)
    listed = examples_of(cut, point, state.view.order)
    use_board_styles()
    with st.container(border=True, key="evaluate_examples"):
        st.html(title_html(point, titles, len(listed)))
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            st.segmented_control(
                "Order", list(ORDERS), key=SESSION.key(state.kind, f"{VIEW}order"), required=True,
                format_func=ORDERS.__getitem__, persist_state=PERSIST,
            )  # fmt: skip
            st.button(
                "Close", key=SESSION.key(state.kind, "examples.close"), on_click=partial(point_at, state.kind, None)
            )
        if not listed:
            show_note("No example has a value here. Choose another number or point above.")
        largest = max((abs(one.row.value) for one in listed), default=0.0)
        for one in _on_page(state, listed):
            _draw(state, point, source, one, largest)


def cut_to(evaluation: Evaluation, name: str, by: str, model: str) -> Evaluation:
    """Return one model's part of the evaluation in the slice that a chart calls `name`.

    The slices of `by` are searched first, then all others. Returns the whole evaluation if `name` is empty, and an
    empty one if it is unknown.
    """
    if not name:
        return evaluation
    own = evaluation.slice(lambda fact: fact.model == model)
    for one in sorted(SLICES, key=lambda known: known != by):
        parts = {part.name: part.evaluation for part in split(own, one)}
        if name in parts:
            return parts[name]
    return evaluation.slice(lambda fact: False)


def title_html(point: ScorePoint, titles: Mapping[str, str], number: int) -> str:
    """HTML heading of the examples behind a point."""
    of = METRICS[point.metric]
    more = [f"at {point.percent}%"] * bool(point.percent) + [point.slice] * bool(point.slice)
    named = ", ".join([titles.get(point.method, point.method), of.title.lower(), *more, f"on {point.model}"])
    unit = f'<p class="xg-small">Each number: {escape(of.unit)}</p>'
    return f'<div class="xg"><p class="xg-title">{escape(named)}: {count(number, "example")}</p>{unit}</div>'


def example_html(one: ScoredExample, candidate: SourceExample | str, largest: float) -> str:
    """HTML of an example: its value, its text or thumbnail, and the model's prediction.

    `candidate`: the example, or the reason why it cannot be read. `largest`: largest absolute value in the list, which
    determines the number of decimals.
    """
    value = f'<p class="xg-value">{even(one.row.value, largest)}</p>'
    example = f"<div>{_input_html(candidate)}{_facts_html(one)}</div>"
    return f'<div class="xg"><div class="xg-behind">{value}{example}</div></div>'


def example_link(state: ExperimentState, point: ScorePoint, candidate: SourceExample) -> Query:
    """Return the link that opens an example on the Text or Images page.

    It selects this model and example, the method next to Random, and the same parameters, units and removal.
    """
    plan, methods = state.plan, list(dict.fromkeys([point.method, RANDOM]))
    place: Query = {"data": [plan.dataset], "index": [str(candidate.index)]}
    if isinstance(candidate.example, LabeledExample):
        if plan.split:  # that page reads only the default split
            given = candidate.example
            place = write_text("text", given.text) | (write_text("pair", given.text_pair) if given.text_pair else {})
    elif plan.split:
        place |= {"split": [plan.split]}
    changed = {f"{id}.{name}": [str(value)] for id in methods for name, value in plan.params.get(id, {}).items()}
    same = {name: [str(value)] for name in ("seed", "unit", "removal") if (value := getattr(plan, name))}
    return {"model": [point.model], "method": methods} | place | changed | same


def _on_page(state: ExperimentState, listed: list[ScoredExample]) -> list[ScoredExample]:
    pages = (len(listed) - 1) // A_PAGE + 1
    if pages < 2:
        return listed
    name = SESSION.key(state.kind, "examples.page")
    st.session_state[name] = min(st.session_state.get(name) or 1, pages)
    page = int(st.number_input(f"Page, 1 to {pages}", 1, pages, key=name, width=160, persist_state=PERSIST))
    return listed[(page - 1) * A_PAGE : page * A_PAGE]


def _draw(
    state: ExperimentState, point: ScorePoint, source: ExampleSource, one: ScoredExample, largest: float
) -> None:  # fmt: skip
    candidate = _read(source, one.row.example)
    shown, link = st.columns(
        SHOWN_AND_LINK, gap="small", vertical_alignment="center"
    )  # on narrow screens, the link is below
    shown.html(example_html(one, candidate, largest))
    if not isinstance(candidate, str):
        page = IMAGES if state.kind == "image" else TEXT
        query = [(name, value) for name, values in example_link(state, point, candidate).items() for value in values]
        link.page_link(page.path, label=f"Open on {page.title}", icon=":material/open_in_new:", query_params=query)


def _read(source: ExampleSource, index: int) -> SourceExample | str:
    try:
        return source.read(index)
    except ExegesisError as error:
        return str(error)


def _input_html(candidate: SourceExample | str) -> str:
    if isinstance(candidate, str):
        return f'<p class="xg-error">{escape(candidate)}</p>'
    if isinstance(candidate.input, Picture):
        return f'<img src="{escape(thumbnail_url(candidate.input.pixels))}" alt="">'
    assert isinstance(candidate.input, Example)
    texts = candidate.input.texts
    return "".join(f'<p dir="auto">{escape(shorten(text, LONGEST))}</p>' for text in texts if text)


def _facts_html(one: ScoredExample) -> str:
    parts = [f"#{one.row.example}"]
    if one.facts is not None:
        parts += [f"label {one.facts.label}"] if one.facts.label is not None else []
        verdict = {True: ", right", False: ", wrong", None: ""}[one.facts.right]
        parts += [f"predicted {one.facts.predicted} ({percent(one.facts.confidence)}{verdict})"]
    return f'<p class="xg-small">{escape(" · ".join(parts))}</p>'
