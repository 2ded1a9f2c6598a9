"""A job of a page while it is waited for: how far it is and a way to stop it, or how it ended and a way to go on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from html import escape
from typing import Literal

import streamlit as st

from components.library.job_view import PARTS, RESUMABLE, ended, job_view
from components.organizer import is_organizer
from components.trouble import say_error, sentence
from engine import jobs
from engine.errors import ExegesisError
from engine.jobs import Job

REFRESH_SECONDS = 1.0
STOPS = "Stops after the part at hand. What is finished is kept."
FINDS = "What is finished is found, not computed again."


def now_html(kind: str, label: str) -> str:
    """What a job is at, and what its parts are."""
    said = [f"Now: {label}."] if label else []
    return f'<div class="xg"><p class="xg-small">{escape(" ".join([*said, PARTS.get(kind, "")]))}</p></div>'


class JobArea:
    """`page`: how the keys of its widgets start."""

    def __init__(self, page: str) -> None:
        self.page, self.said = page, f"{page}_jobs_said"

    def trouble(self) -> None:
        """What the last press of a button could not do."""
        if st.session_state.get(self.said):
            say_error(st.session_state[self.said])

    def progress(self, id: int) -> None:
        """Follows a job; the page is drawn again when it is over."""
        st.fragment(self._progress, run_every=REFRESH_SECONDS)(id)

    def start(self, label: str, kind: str, spec: Mapping[str, object], last: Job | None) -> None:
        """A button that submits the job; or that goes on with the last one, where that did not end well."""
        if not self.go_on(last, primary=True):
            self.offer(label, "start", kind, spec, primary=True)

    def offer(
        self,
        label: str,
        name: str,
        kind: str,
        spec: Mapping[str, object],
        primary: bool = False,
        help: str | None = None,
    ) -> None:
        """A button that submits a job. `name`: its own among those of the page."""
        self._button(label, name, partial(jobs.submit, kind, spec), primary, help)

    def go_on(self, last: Job | None, label: str = "Go on", primary: bool = False) -> bool:
        """Why the last job ended and a button that goes on with it; nothing and False where it ended well."""
        if last is None or last.state not in RESUMABLE:
            return False
        if last.error:
            say_error(last.error)
        else:
            st.caption(ended(last))
        self._button(label, "resume", partial(jobs.resume, last.id), primary, FINDS)
        return True

    def _progress(self, id: int) -> None:
        try:
            job = jobs.get(id)
            view = job_view(job, jobs.place(job))
        except ExegesisError as error:
            say_error(sentence(error))
            return
        if job.over:
            st.rerun()  # the whole page, which now has what the job has made
        with st.container(border=True, key=f"{self.page}_progress"):
            st.progress(view.share, f"{view.look[0].capitalize()}: {view.progress}")
            st.html(now_html(job.kind, job.label))
            if view.can_cancel and is_organizer():
                self._button("Cancel", "cancel", partial(jobs.cancel, id), help=STOPS)

    def _button(
        self, label: str, name: str, action: Callable[[], object], primary: bool = False, help: str | None = None
    ) -> None:
        look: Literal["primary", "secondary"] = "primary" if primary else "secondary"
        st.button(label, key=f"{self.page}.{name}", on_click=self._do, args=(action,), type=look, help=help)

    def _do(self, action: Callable[[], object]) -> None:
        st.session_state.pop(self.said, None)
        try:
            action()
        except ExegesisError as error:
            st.session_state[self.said] = sentence(error)
