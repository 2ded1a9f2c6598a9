"""The examples behind a mean: each with its value, what it is, what the model says, and a link that opens it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from components.browse.thumbnails import thumbnail_url
from components.controls import PERSIST
from components.errors import show_note
from components.evaluate.leaderboard import use_board_sheet
from components.evaluate.look import LOOK, ORDERS, Point
from components.evaluate.session import key, point_at
from components.evaluate.slices import cut_to
from components.inputs.link import write_text
from components.links import Query
from components.navigation import IMAGES, TEXT
from components.numbers import count, even, percent
from engine.data.examples import LabeledExample
from engine.errors import ExegesisError
from engine.metrics.catalog import METRICS
from engine.request import Picture

if TYPE_CHECKING:
    from collections.abc import Mapping

    from components.evaluate.known import Held
    from components.evaluate.state import EvaluateState
    from engine.data.sources import SourceExample
    from engine.evaluation.result import Evaluation, Facts
    from engine.metrics.results import MetricRow

A_PAGE = 10
LONGEST = 220
SHOWN_AND_LINK = (5, 1)


@dataclass(frozen=True)
class Behind:
    """An example behind a point: its value, and what is known of it."""

    row: MetricRow
    facts: Facts | None


def behind(found: Evaluation, point: Point, order: str) -> list[Behind]:
    """The examples of a mean in that order; those without a value are not among them."""
    known = {one.example: one for one in found.facts if one.model == point.model}
    rows = [row for row in found.rows if of_point(row, point)]
    ordered = sorted(rows, key=lambda row: row.example)
    if order != "index":
        ordered.sort(key=lambda row: row.value, reverse=order == "high")
    return [Behind(row, known.get(row.example)) for row in ordered]


def of_point(row: MetricRow, point: Point) -> bool:
    """Whether the row is one of those that the mean is of."""
    of = row.of
    return (of.model, of.method, of.metric, of.against, of.percent) == (
        point.model, point.method, point.metric, point.against, point.at
    )  # fmt: skip


def examples_area(state: EvaluateState, held: Held, titles: Mapping[str, str]) -> None:
    """What is behind the point that was clicked, if one was."""
    point = state.look.picked
    if point is None or held.found is None:
        return
    found = cut_to(held.found, point.slice, state.look.slice, point.model)
    listed = behind(found, point, state.look.order)
    use_board_sheet()
    with st.container(border=True, key="evaluate_examples"):
        st.html(title_html(point, titles, len(listed)))
        with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
            st.segmented_control(
                "Order", list(ORDERS), key=key(state.kind, f"{LOOK}order"), required=True,
                format_func=ORDERS.__getitem__, persist_state=PERSIST,
            )  # fmt: skip
            st.button("Close", key=key(state.kind, "examples.close"), on_click=partial(point_at, state.kind, None))
        if not listed:
            show_note("No example has a value here. Choose another number or point above.")
        largest = max((abs(one.row.value) for one in listed), default=0.0)
        for one in _on_page(state, listed):
            _draw(state, held, one, largest)


def title_html(point: Point, titles: Mapping[str, str], number: int) -> str:
    """What the examples are of."""
    of = METRICS[point.metric]
    more = [f"at {point.percent} %"] * bool(point.percent) + [point.slice] * bool(point.slice)
    named = ", ".join([titles.get(point.method, point.method), of.title.lower(), *more, f"on {point.model}"])
    unit = f'<p class="xg-small">Each number: {escape(of.unit)}</p>'
    return f'<div class="xg"><p class="xg-title">{escape(named)}: {count(number, "example")}</p>{unit}</div>'


def example_html(one: Behind, candidate: SourceExample | str, largest: float) -> str:
    """Value, text or small picture, and what the model says; `candidate` may be why there is none.

    `largest`: of all the values listed, which says how many decimals they have.
    """
    value = f'<p class="xg-value">{even(one.row.value, largest)}</p>'
    return f'<div class="xg"><div class="xg-behind">{value}<div>{_shown(candidate)}{_facts(one)}</div></div></div>'


def link_of(state: EvaluateState, point: Point, candidate: SourceExample) -> Query:
    """What the page of texts or pictures is asked for: this model, example and method beside random, by the same units
    and removal."""
    methods = list(dict.fromkeys([point.method, "random"]))
    place: Query = {"data": [state.data], "index": [str(candidate.index)]}
    if isinstance(candidate.example, LabeledExample):
        if state.split:  # that page reads the usual split
            given = candidate.example
            place = write_text("text", given.text) | (write_text("pair", given.text_pair) if given.text_pair else {})
    elif state.split:
        place |= {"split": [state.split]}
    changed = {f"{id}.{name}": [value] for id in methods for name, value in state.params.get(id, {}).items()}
    same = {name: [str(value)] for name in ("seed", "unit", "removal") if (value := getattr(state, name))}
    return {"model": [point.model], "method": methods} | place | changed | same


def _on_page(state: EvaluateState, listed: list[Behind]) -> list[Behind]:
    pages = (len(listed) - 1) // A_PAGE + 1
    if pages < 2:
        return listed
    name = key(state.kind, "examples.page")
    st.session_state[name] = min(st.session_state.get(name) or 1, pages)
    page = int(st.number_input(f"Page, 1 to {pages}", 1, pages, key=name, width=160, persist_state=PERSIST))
    return listed[(page - 1) * A_PAGE : page * A_PAGE]


def _draw(state: EvaluateState, held: Held, one: Behind, largest: float) -> None:
    point, candidate = state.look.picked, _read(held, one.row.example)
    shown, link = st.columns(
        SHOWN_AND_LINK, gap="small", vertical_alignment="center"
    )  # on a telephone the link is below
    shown.html(example_html(one, candidate, largest))
    if point is not None and not isinstance(candidate, str):
        page = IMAGES if state.kind == "image" else TEXT
        query = [(name, value) for name, values in link_of(state, point, candidate).items() for value in values]
        link.page_link(page.file, label=f"Open on {page.title}", icon=":material/open_in_new:", query_params=query)


def _read(held: Held, index: int) -> SourceExample | str:
    try:
        return held.source.read(index)
    except ExegesisError as error:
        return str(error)


def _shown(candidate: SourceExample | str) -> str:
    if isinstance(candidate, str):
        return f'<p class="xg-error">{escape(candidate)}</p>'
    if isinstance(candidate.input, Picture):
        return f'<img src="{escape(thumbnail_url(candidate.input.pixels))}" alt="">'
    texts = candidate.input.as_plain().values()
    return "".join(f'<p dir="auto">{escape(_cut(text))}</p>' for text in texts if text)


def _facts(one: Behind) -> str:
    said = [f"#{one.row.example}"]
    if one.facts is not None:
        said += [f"label {one.facts.label}"] if one.facts.label is not None else []
        verdict = {True: ", right", False: ", wrong", None: ""}[one.facts.right]
        said += [f"predicted {one.facts.predicted} ({percent(one.facts.confidence)}{verdict})"]
    return f'<p class="xg-small">{escape(" · ".join(said))}</p>'


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= LONGEST else f"{flat[: LONGEST - 1]}…"
