"""The work that fills the list: predicting a whole data set, comparing methods on it, with progress and cancel."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import streamlit as st

from components.browse_known import Known, spec_of
from components.library_html import trouble_html
from components.library_job_view import RESUMABLE, job_view
from components.numbers import count
from components.open_data import OpenData
from components.trouble import sentence
from engine import jobs
from engine.errors import ExegesisError
from engine.jobs import Job

REFRESH_SECONDS = 1.0
SAID = "browse_jobs_said"


def job_area(model: str, opened: OpenData, held: Known) -> None:
    """What is still missing as a button, or the job that makes it; the page is drawn again when that is over."""
    if st.session_state.get(SAID):
        st.html(trouble_html(st.session_state[SAID]))
    if held.running is not None:
        st.fragment(_progress, run_every=REFRESH_SECONDS)(held.running.id)
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        _offers(model, opened, held)


def _offers(model: str, opened: OpenData, held: Known) -> None:
    from engine.metrics.disagreement import QUICK

    rows, total = held.rows, len(held.rows.rows)
    unpredicted, uncompared = total - rows.predicted, total - rows.compared
    if held.last is not None and held.last.state in RESUMABLE and (unpredicted or uncompared):
        _stopped(held.last)
    if unpredicted:
        _button(f"Predict all {count(total, 'example')}", "predict", _submit, model, opened.name)
    if uncompared:
        _button(
            f"Compare methods on all {count(total, 'example')}", "compare", _submit, model, opened.name, QUICK,
            help=f"Explains each example by {', '.join(QUICK)}, to find those where the methods disagree. "
            "Takes far longer than predicting.",
        )  # fmt: skip


def _stopped(job: Job) -> None:
    if job.error:
        st.html(trouble_html(job.error))
    else:
        st.caption(f"{job.state.capitalize()} after {job.done:,} of {count(job.total, 'part')}.")
    _button("Go on", "resume", jobs.resume, job.id, help="What is finished is found, not computed again.")


def _progress(id: int) -> None:
    try:
        job = jobs.get(id)
        view = job_view(job, jobs.place(job))
    except ExegesisError as error:
        st.html(trouble_html(sentence(error)))
        return
    if job.over:
        st.rerun()  # the whole page, which now has what the job has made
    st.progress(view.share, f"{view.look[0].capitalize()}: {view.progress}")
    if view.can_cancel:
        _button("Cancel", "cancel", jobs.cancel, id, help="Stops after the part at hand. What is finished is kept.")


def _submit(model: str, data: str, methods: Sequence[str] = ()) -> None:
    jobs.submit("predict", spec_of(model, data, methods))


def _button(label: str, name: str, action: Callable[..., object], *given: object, help: str | None = None) -> None:
    st.button(label, key=f"browse.{name}", on_click=_do, args=(action, *given), help=help)


def _do(action: Callable[..., object], *given: object) -> None:
    st.session_state.pop(SAID, None)
    try:
        action(*given)
    except ExegesisError as error:
        st.session_state[SAID] = sentence(error)
