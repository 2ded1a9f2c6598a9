"""Evaluations that were asked for before, from this page or from the command: each can be opened again."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from components.errors import describe_error, escape_label, show_error
from components.evaluate.known import evaluations
from components.evaluate.session import turn_to
from components.evaluate.state import of_plan
from components.job_panel import BADGES
from components.numbers import count
from engine.errors import ExegesisError
from engine.jobs import Job
from engine.registry import all_explainers

if TYPE_CHECKING:
    from engine.evaluation.plan import Plan

KEY = "evaluate.recent"
LISTED = (
    "What was evaluated here, or with `exegesis evaluate --job`. What the command found without a job opens at once "
    "too, when the same is asked for on this page."
)
SHIPPED = "comes with the project"
REPEATED, MOST = 3, 12
"""So many names of models or methods stand in a line, the others are counted; and so many evaluations are listed."""
SHEET = "[class*='st-key-evaluate-recent-'] button{justify-content:start;text-align:start}"
"""Streamlit's buttons have their words in the middle, where the lines of a list are hard to read."""


def recent_area() -> None:
    """A button that lists them; one opens with its models, data set, methods and all."""
    with st.popover("Recent evaluations", key=KEY, icon=":material/history:"):
        try:
            found = evaluations()
        except ExegesisError as error:
            show_error(describe_error(error))
            return
        st.html(f"<style>{SHEET}</style>")
        for job, plan in _each_once(found)[:MOST]:
            _row(str(job.id), plan, became(job))
        for kind, plan in _shipped().items():
            if all(plan != other for _, other in found):
                _row(kind, plan, SHIPPED)
        st.caption(LISTED)


def head(plan: Plan) -> str:
    """What was evaluated on what."""
    return f"{_names(plan.models)} on {plan.dataset}"


def of_words(plan: Plan, titles: Mapping[str, str]) -> str:
    """How many examples, and which methods by their titles."""
    return f"{count(plan.examples, 'example')}, {_names([titles.get(one, one) for one in plan.methods])}"


def became(job: Job) -> str:
    """When it was asked for, and how it stands."""
    return f"{time.strftime('%d %b, %H:%M', time.localtime(job.created))}, {BADGES[job.state][0]}"


def _row(name: str, plan: Plan, stands: str) -> None:
    with st.container(gap=None):
        st.button(escape_label(head(plan)), key=f"{KEY}.{name}", type="tertiary", on_click=partial(_open, plan))
        titles = {id: method.title for id, method in all_explainers(plan.kind).items()}
        st.caption(escape_label(f"{of_words(plan, titles)} · {stands}"))


def _shipped() -> Mapping[str, Plan]:
    # Here and not above: it imports what reads data sets.
    from engine.shipped.experiments import evaluation_plans

    return evaluation_plans()


def _names(names: Sequence[str]) -> str:
    left = len(names) - REPEATED
    return ", ".join(names[:REPEATED]) + (f" and {left} more" if left > 0 else "")


def _each_once(found: list[tuple[Job, Plan]]) -> list[tuple[Job, Plan]]:
    """The newest job of each plan."""
    kept: list[tuple[Job, Plan]] = []
    for job, plan in found:
        if all(plan != other for _, other in kept):
            kept.append((job, plan))
    return kept


def _open(plan: Plan) -> None:
    try:
        turn_to(of_plan(plan), all_explainers(plan.kind))
    except ExegesisError as error:  # its model is gone
        st.toast(escape_label(describe_error(error)))
