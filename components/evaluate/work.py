"""The work of an evaluation: the button with what it costs, the job's progress, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import streamlit as st

from components.errors import show_note
from components.evaluate.cost import added, cost_words
from components.evaluate.known import Known, spec_of
from components.evaluate.pace import pace_of
from components.job_panel import FINDS, JobPanel
from engine.registry import Explainer

if TYPE_CHECKING:
    from engine.evaluation.plan import Plan

AREA = JobPanel("evaluate")
EMPTY = "Nothing is computed before you press **Evaluate**. The work goes on while you are on other pages."
FAILED = "Some examples failed on {} and are left out of the numbers. At the end of this page the reasons are listed."
AGAIN = "Try the failed ones again"


def work_area(plan: Plan, seen: Known, methods: Mapping[str, Explainer]) -> None:
    """What is still to be done as a button, or the job that does it; the page is drawn again when that is over."""
    AREA.trouble()
    if seen.running is not None:
        AREA.progress(seen.running.id)
    elif seen.held.found is None:
        _to_do(plan, seen, methods)
    elif seen.held.failed_on:
        _failed(plan, seen)


def _to_do(plan: Plan, seen: Known, methods: Mapping[str, Explainer]) -> None:
    # Here and not above: it imports what reads data sets.
    from engine.evaluation.foreseen import classes_told

    with st.container(border=True, key="evaluate_to_do"):
        st.markdown(EMPTY)
        pace = pace_of(plan, seen.before, methods)
        st.caption(cost_words(plan, methods, seen.held.size, pace))
        for said, models in classes_told(plan, seen.held.source).items():
            show_note(f"On {', '.join(models)}: {said[0].lower()}{said[1:]}")
        if come := added(plan):
            st.caption(f"Beside what you chose comes {', '.join(methods[id].title for id in come)}.")
        AREA.start("Evaluate", "evaluate", spec_of(plan), seen.last)


def _failed(plan: Plan, seen: Known) -> None:
    """The numbers are there but for some examples: with a job that failed its reason, else a new job."""
    with st.container(border=True, key="evaluate_failed"):
        show_note(FAILED.format(", ".join(seen.held.failed_on)))
        if not AREA.go_on(seen.last, AGAIN):
            AREA.offer(AGAIN, "again", "evaluate", spec_of(plan), help=FINDS)
