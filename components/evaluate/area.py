"""The Evaluate page below its controls: the work, the result in views, the examples behind a point, the files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import streamlit as st

from components.controls import PERSIST
from components.errors import describe_error, escape_label, show_note
from components.evaluate.board import Board, boards
from components.evaluate.examples import examples_area
from components.evaluate.keep import keep_area
from components.evaluate.known import Held, known, trouble_of
from components.evaluate.look import LOOK, VIEWS
from components.evaluate.session import key
from components.evaluate.state import EvaluateState, plan_of
from components.evaluate.views import view_area
from components.evaluate.words import how, left_out, measured_against, metrics_html, without_words
from components.evaluate.work import work_area
from components.experiment.controls import Places, say_beside
from components.experiment.results import skip_reasons_html
from components.tables import table_styles
from engine.errors import ExegesisError
from engine.registry import Explainer

if TYPE_CHECKING:
    from engine.evaluation.plan import Plan

Methods = Mapping[str, Explainer]


def evaluate_area(state: EvaluateState, methods: Methods, places: Places) -> None:
    """What is wrong with what is asked, or what there is of it."""
    try:
        plan = plan_of(state, methods)
    except ExegesisError as error:
        say_beside(places, describe_error(error))
        return
    if trouble := trouble_of(plan):
        say_beside(places, trouble)
        return
    try:
        seen = known(plan)
    except Exception as error:
        say_beside(places, describe_error(error))
        return
    work_area(plan, seen, methods)
    if seen.held.found is not None:
        _found(state, seen.held, methods)


def _found(state: EvaluateState, held: Held, methods: Methods) -> None:
    found = held.found
    if found is None:
        return
    titles = {id: method.title for id, method in methods.items()}
    _told(found.plan, held)
    for said in (*found.said, *found.notes):
        show_note(said)
    st.segmented_control(
        "View", list(VIEWS), key=key(state.kind, f"{LOOK}view"), required=True, format_func=VIEWS.__getitem__,
        label_visibility="collapsed", persist_state=PERSIST,
    )  # fmt: skip
    tables = _boards(held)
    st.html(f"<style>{table_styles()}</style>")
    view_area(state, held, tables, titles)
    examples_area(state, held, titles)
    _notes(held, titles)
    keep_area(state, held, tables, methods)


def _boards(held: Held) -> list[Board]:
    from engine.evaluation.views.points import metrics_of

    found = held.found
    return [] if found is None else boards(held.standings, found.plan.company, metrics_of(found), held.source.exact)


def _told(plan: Plan, held: Held) -> None:
    if held.found is not None:
        st.caption(" ".join([how(plan, held.size), *measured_against(held.found, held.source.exact)]))


def _notes(held: Held, titles: Mapping[str, str]) -> None:
    """What was left out and why, and what the metrics mean."""
    found = held.found
    if found is None:
        return
    if lines := left_out(found.skips, titles):
        with st.expander(escape_label(without_words(found.skips, titles)), key="evaluate.left_out"):
            st.html(skip_reasons_html(lines))
    with st.expander("What the metrics mean", key="evaluate.meanings"):
        st.html(metrics_html(found.plan.metrics))
