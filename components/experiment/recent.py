"""Recent runs of an experiment, from its page or from the command: each can be opened again."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from components.errors import describe_error, escape_label, show_error
from components.experiment.runs import Run, runs_of
from components.experiment.session import ExperimentSession
from components.experiment.state import state_of
from components.job_panel import BADGES
from components.numbers import count
from engine.errors import ExegesisError
from engine.jobs import Job
from engine.registry import all_explainers

SHIPPED = "included"
REPEATED, MOST = 3, 12
"""So many names of models or methods are in a line, the others are counted; and so many runs are listed."""
LAYOUT = "[class*='st-key-{}-recent-'] button{{justify-content:start;text-align:start}}"
"""Streamlit's buttons have their words in the middle, where the lines of a list are hard to read."""


def recent_area(session: ExperimentSession, label: str, note: str) -> None:
    """A button that lists them; one opens with its models, data set, methods and all."""
    own, key = session.experiment, f"{session.page}.recent"
    with st.popover(label, key=key, icon=":material/history:"):
        try:
            runs = runs_of(own)
        except ExegesisError as error:
            show_error(describe_error(error))
            return
        st.html(f"<style>{LAYOUT.format(session.page)}</style>")
        for job, plan in _newest(runs)[:MOST]:
            _row(session, f"{key}.{job.id}", plan, job_state(job))
        for kind, plan in own.opens_with.items():
            if all(plan != other for _, other in runs):
                _row(session, f"{key}.{kind}", plan, SHIPPED)
        st.caption(note)


def plan_title(plan: Any) -> str:
    """What was done on what."""
    return f"{_names(plan.models)} on {plan.dataset}"


def plan_summary(plan: Any, titles: Mapping[str, str]) -> str:
    """How many examples, and which methods by their titles."""
    return f"{count(plan.examples, 'example')}, {_names([titles.get(one, one) for one in plan.methods])}"


def job_state(job: Job) -> str:
    """When the job was submitted, and its state."""
    return f"{time.strftime('%d %b, %H:%M', time.localtime(job.created))}, {BADGES[job.state][0]}"


def _row(session: ExperimentSession, key: str, plan: Any, state: str) -> None:
    with st.container(gap=None):
        st.button(escape_label(plan_title(plan)), key=key, type="tertiary", on_click=partial(_open, session, plan))
        titles = {id: method.title for id, method in all_explainers(plan.kind).items()}
        st.caption(escape_label(f"{plan_summary(plan, titles)} · {state}"))


def _names(names: Sequence[str]) -> str:
    left = len(names) - REPEATED
    return ", ".join(names[:REPEATED]) + (f" and {left} more" if left > 0 else "")


def _newest(runs: Sequence[Run]) -> list[Run]:
    """The newest job of each plan."""
    newest: list[Run] = []
    for job, plan in runs:
        if all(plan != other for _, other in newest):
            newest.append((job, plan))
    return newest


def _open(session: ExperimentSession, plan: Any) -> None:
    try:
        session.turn_to(state_of(plan, session.view))
    except ExegesisError as error:  # its model is gone
        st.toast(escape_label(describe_error(error)))
