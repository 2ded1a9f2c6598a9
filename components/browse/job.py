"""The work that fills the list: predicting a whole data set, comparing methods on it, with progress and cancel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from components.browse.known import Jobs, Known
from components.library.job_view import RESUMABLE, job_view
from components.library_html import trouble_html
from components.numbers import count
from components.trouble import sentence
from engine import jobs
from engine.errors import ExegesisError
from engine.jobs import Job

REFRESH_SECONDS = 1.0
SAID = "browse_jobs_said"


@dataclass(frozen=True)
class Offer:
    """A job that would fill the list: what its button says, a name of its own, what it is submitted with and as."""

    label: str
    name: str
    spec: Mapping[str, object]
    help: str | None = None
    kind: str = "predict"


def job_area(held: Known | Jobs, offers: Sequence[Offer]) -> None:
    """What is still missing as buttons, or the job that makes it; the page is drawn again when that is over."""
    if st.session_state.get(SAID):
        st.html(trouble_html(st.session_state[SAID]))
    if held.running is not None:
        st.fragment(_progress, run_every=REFRESH_SECONDS)(held.running.id)
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if offers and held.last is not None and held.last.state in RESUMABLE:
            _stopped(held.last)
        for offer in offers:
            _button(offer.label, offer.name, jobs.submit, offer.kind, offer.spec, help=offer.help)


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


def _button(label: str, name: str, action: Callable[..., object], *given: object, help: str | None = None) -> None:
    st.button(label, key=f"browse.{name}", on_click=_do, args=(action, *given), help=help)


def _do(action: Callable[..., object], *given: object) -> None:
    st.session_state.pop(SAID, None)
    try:
        action(*given)
    except ExegesisError as error:
        st.session_state[SAID] = sentence(error)
