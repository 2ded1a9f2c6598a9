"""The work of an evaluation: the button with what it costs, the job's progress, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from components.evaluate.cost import added, cost_words
from components.evaluate.known import Known, spec_of
from components.library.job_view import RESUMABLE, job_view
from components.numbers import count
from components.trouble import say_error, sentence
from engine import jobs
from engine.errors import ExegesisError
from engine.jobs import Job
from engine.registry import Explainer

if TYPE_CHECKING:
    from engine.evaluation.plan import Plan

REFRESH_SECONDS = 1.0
SAID = "evaluate_jobs_said"
EMPTY = "Nothing is computed before you press **Evaluate**. The work goes on while you are on other pages."


def work_area(plan: Plan, seen: Known, methods: Mapping[str, Explainer]) -> None:
    """What is still to be done as a button, or the job that does it; the page is drawn again when that is over."""
    if st.session_state.get(SAID):
        say_error(st.session_state[SAID])
    if seen.running is not None:
        st.fragment(_progress, run_every=REFRESH_SECONDS)(seen.running.id)
    elif seen.held.found is None:
        _to_do(plan, seen, methods)


def _to_do(plan: Plan, seen: Known, methods: Mapping[str, Explainer]) -> None:
    with st.container(border=True, key="evaluate_to_do"):
        st.markdown(EMPTY)
        st.caption(cost_words(plan, methods, seen.held.size))
        if come := added(plan):
            st.caption(f"Beside what you chose comes {', '.join(methods[id].title for id in come)}.")
        if seen.last is not None and seen.last.state in RESUMABLE:
            _stopped(seen.last)
        else:
            _button("Evaluate", "start", jobs.submit, "evaluate", spec_of(plan), primary=True)


def _stopped(job: Job) -> None:
    if job.error:
        say_error(job.error)
    else:
        st.caption(f"{job.state.capitalize()} after {job.done:,} of {count(job.total, 'part')}.")
    _button("Go on", "resume", jobs.resume, job.id, help="What is finished is found, not computed again.", primary=True)


def _progress(id: int) -> None:
    try:
        job = jobs.get(id)
        view = job_view(job, jobs.place(job))
    except ExegesisError as error:
        say_error(sentence(error))
        return
    if job.over:
        st.rerun()  # the whole page, which now has what the job has made
    with st.container(border=True, key="evaluate_progress"):
        st.progress(view.share, f"{view.look[0].capitalize()}: {view.progress}")
        if job.label:
            st.html(now_html(job.label))
        if view.can_cancel:
            _button("Cancel", "cancel", jobs.cancel, id, help="Stops after the part at hand. What is finished is kept.")


def now_html(label: str) -> str:
    """What the job is at."""
    return f'<div class="xg"><p class="xg-small">Now: {escape(label)}</p></div>'


def _button(
    label: str, name: str, action: Callable[..., object], *given: object, help: str | None = None, primary: bool = False
) -> None:
    kind = "primary" if primary else "secondary"
    st.button(label, key=f"evaluate.{name}", on_click=_do, args=(action, *given), help=help, type=kind)


def _do(action: Callable[..., object], *given: object) -> None:
    st.session_state.pop(SAID, None)
    try:
        action(*given)
    except ExegesisError as error:
        st.session_state[SAID] = sentence(error)
