"""Evaluations that were asked for before, from this page or from the command: each can be opened again."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from components.engine_room import explainers
from components.evaluate.known import evaluations
from components.evaluate.session import turn_to
from components.evaluate.state import of_plan
from components.library.job_view import LOOKS
from components.numbers import count
from components.trouble import literal, say_error, sentence
from engine.errors import ExegesisError
from engine.jobs import Job

if TYPE_CHECKING:
    from engine.evaluation.plan import Plan

KEY = "evaluate.recent"
NOTHING = "None yet. What you evaluate here, or with `exegesis evaluate --job`, is listed here."
REPEATED = 2
"""So many names of models or methods stand in a line; the others are counted."""


def recent_area() -> None:
    """A button that lists them; one opens with its models, data set, methods and all."""
    with st.popover("Recent evaluations", key=KEY, icon=":material/history:"):
        try:
            found = evaluations()
        except ExegesisError as error:
            say_error(sentence(error))
            return
        if not found:
            st.caption(NOTHING)
        for job, plan in _each_once(found):
            st.button(
                literal(line(job, plan)), key=f"{KEY}.{job.id}", type="tertiary", on_click=partial(_open, plan)
            )  # fmt: skip


def line(job: Job, plan: Plan) -> str:
    """What was evaluated when, in one line, and what became of it."""
    when = time.strftime("%d %b %H:%M", time.localtime(job.created))
    of = f"{_names(plan.models)} on {plan.dataset}, {count(plan.examples, 'example')}, {_names(plan.methods)}"
    return f"#{job.id} {when}, {LOOKS[job.state][0]}: {of}"


def _names(names: tuple[str, ...]) -> str:
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
        turn_to(of_plan(plan), explainers(plan.kind))
    except ExegesisError as error:  # its model is gone
        st.toast(literal(sentence(error)))
