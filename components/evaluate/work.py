"""The work of an evaluation: the button with what it costs, the job's progress, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import streamlit as st

from components.evaluate.cost import added, cost_words
from components.evaluate.known import Known, spec_of
from components.job_area import JobArea
from engine.registry import Explainer

if TYPE_CHECKING:
    from engine.evaluation.plan import Plan

AREA = JobArea("evaluate")
EMPTY = "Nothing is computed before you press **Evaluate**. The work goes on while you are on other pages."


def work_area(plan: Plan, seen: Known, methods: Mapping[str, Explainer]) -> None:
    """What is still to be done as a button, or the job that does it; the page is drawn again when that is over."""
    AREA.trouble()
    if seen.running is not None:
        AREA.progress(seen.running.id)
    elif seen.held.found is None:
        _to_do(plan, seen, methods)


def _to_do(plan: Plan, seen: Known, methods: Mapping[str, Explainer]) -> None:
    with st.container(border=True, key="evaluate_to_do"):
        st.markdown(EMPTY)
        st.caption(cost_words(plan, methods, seen.held.size))
        if come := added(plan):
            st.caption(f"Beside what you chose comes {', '.join(methods[id].title for id in come)}.")
        AREA.start("Evaluate", "evaluate", spec_of(plan), seen.last)
