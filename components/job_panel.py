"""Jobs on pages: their state in words, their progress with a cancel button, and a button to resume them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Literal

import streamlit as st

from components.errors import describe_error, show_error
from components.numbers import browser_zone, count, duration, format_time
from components.organizer import is_organizer
from engine import jobs
from engine.errors import ExegesisError
from engine.jobs import Job, UnitFailure

REFRESH_SECONDS = 1.0
STOPS = "Stops after the current part. Finished parts stay in the cache."
FINDS = "Finished parts are read from the cache, not computed again."
RESUMABLE = ("interrupted", "failed", "cancelled")
BadgeColor = Literal["blue", "gray", "green", "orange", "red"]
# Each state has its own word and icon, so that color is never the only difference.
BADGES: dict[str, tuple[str, BadgeColor, str]] = {
    "queued": ("waiting", "gray", ":material/schedule:"),
    "running": ("running", "blue", ":material/play_arrow:"),
    "stopping": ("stopping", "gray", ":material/hourglass_top:"),
    "done": ("done", "green", ":material/check:"),
    "failed": ("failed", "red", ":material/close:"),
    "cancelled": ("cancelled", "gray", ":material/block:"),
    "interrupted": ("interrupted", "orange", ":material/bolt:"),
}
FAILURES_SHOWN = 50
A_MAP = "A part is one map: the scores of one method for one example."
PARTS = {
    "explain": A_MAP,
    "empirical": f"{A_MAP} The last part fits the empirical explainer.",
    "attack": "A part is one attack on one example, or the map of another method for an attacked example.",
    "behavior": "A part is the questions about one example, with its maps.",
    "compare": A_MAP,
    "concepts": "A part is the activations of one concept or of random examples, or the gradients of one class.",
    "corpus": "A part is the scores of all words or patches of one example.",
    "evaluate": "A part is one map, or the metrics of one example.",
    "predict": "A part is one prediction, or one comparison of methods on an example.",
    "randomize": "A part is the maps of one method for up to 16 examples at one stage.",
    "rules": "A part is one rule, or the words of one method for a class.",
    "scaffold": "A part is one student.",
    "reproduce_smat": "A part is one student; the last part judges the claims.",
    "reproduce": "A part is one map, the metrics of one example, or the training of one model.",
}
"""Explanation of a job's parts, by the kind of job."""


@dataclass(frozen=True)
class JobView:
    """Text and values on a job's card. `share`: finished share, from 0 to 1."""

    id: int
    title: str
    badge: tuple[str, BadgeColor, str]
    when: str
    share: float
    progress: str
    counts: str
    trouble: str
    note: str
    can_cancel: bool
    can_resume: bool
    failed: int


def job_view(job: Job, ahead: int) -> JobView:
    """Return the card content of a job. `ahead`: number of jobs before it in its queue."""
    stopping = not job.is_over and job.cancel_requested
    return JobView(
        id=job.id,
        title=job.title,
        badge=BADGES["stopping" if stopping else job.state],
        when=_when(job),
        share=min(1.0, job.done / job.total) if job.total else 0.0,
        progress=_progress(job, ahead),
        counts=_counts(job),
        trouble=job.error,
        note=job.note,
        can_cancel=not job.is_over and not stopping,
        can_resume=job.state in RESUMABLE,
        failed=job.failed,
    )


def describe_end(job: Job) -> str:
    """Describe how far a job came that did not finish."""
    word = job.state.capitalize()
    return f"{word} after {job.done:,} of {count(job.total, 'part')}." if job.total else f"{word} before it started."


def failures_html(failures: Sequence[UnitFailure]) -> str:
    """HTML of the failed parts with their errors, limited to the first `FAILURES_SHOWN`."""
    shown = failures[:FAILURES_SHOWN]
    rows = "".join(f"<dt>{escape(failure.label)}</dt><dd>{escape(failure.error)}</dd>" for failure in shown)
    left = len(failures) - len(shown)
    more = f'<p class="xg-small">and {left:,} more</p>' if left else ""
    return f'<div class="xg"><dl class="xg-facts xg-small">{rows}</dl>{more}</div>'


def _when(job: Job) -> str:
    submitted = f"submitted {format_time(job.created, browser_zone())}"
    if job.started is None or job.finished is None or job.finished < job.started:
        return submitted
    return f"{submitted}, last run {duration(job.finished - job.started)}"


def _progress(job: Job, ahead: int) -> str:
    if job.state == "queued":
        return f"{count(ahead, 'job')} ahead" if ahead else "next in the queue"
    if not job.total:
        return "nothing computed" if job.is_over else "preparing: checking the cache"
    done = f"{job.done:,} of {count(job.total, 'part')}"
    if job.is_over:
        return done
    if job.seconds_left is None:
        return f"{done} · estimating the time left"
    return f"{done} · about {duration(job.seconds_left)} left"


def _counts(job: Job) -> str:
    """Describe the counts of parts. `job.done` includes computed, failed and cached parts."""
    if not job.total:
        return ""
    cached = max(0, job.done - job.computed - job.failed)
    parts = [f"{job.computed:,} computed in this run", f"{cached:,} from the cache"]
    parts += [f"{job.failed:,} failed"] if job.failed else []
    parts += [f"now: {job.label}"] if job.label and not job.is_over else []
    return " · ".join(parts)


def now_html(kind: str, label: str) -> str:
    """HTML of the current part of a job and the meaning of its parts."""
    now = [f"Now: {label}."] if label else []
    return f'<div class="xg"><p class="xg-small">{escape(" ".join([*now, PARTS.get(kind, "")]))}</p></div>'


class JobPanel:
    """Controls and progress of a page's job. `page`: prefix of the widget keys."""

    def __init__(self, page: str) -> None:
        self.page, self.failure_key = page, f"{page}_jobs_said"

    def trouble(self) -> None:
        """Draw the error of the last button press, if any."""
        if st.session_state.get(self.failure_key):
            show_error(st.session_state[self.failure_key])

    def progress(self, id: int) -> None:
        """Draw the progress of a running job. The page is rerun when the job ends."""
        st.fragment(self._progress, run_every=REFRESH_SECONDS)(id)

    def start(self, label: str, kind: str, spec: Mapping[str, object], last: Job | None) -> None:
        """Draw a button that submits the job, or one that resumes the last job if that did not finish."""
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
        """Draw a button that submits a job. `name`: part of its widget key, unique on the page."""
        self._button(label, name, partial(jobs.submit, kind, spec), primary, help)

    def go_on(self, last: Job | None, label: str = "Go on", primary: bool = False) -> bool:
        """Draw a button that resumes the last job, and why it ended. Do nothing and return False if it cannot."""
        if last is None or last.state not in RESUMABLE:
            return False
        if last.error:
            show_error(last.error)
        else:
            st.caption(describe_end(last))
        self._button(label, "resume", partial(jobs.resume, last.id), primary, FINDS)
        return True

    def _progress(self, id: int) -> None:
        try:
            job = jobs.get(id)
            view = job_view(job, jobs.count_ahead(job))
        except ExegesisError as error:
            show_error(describe_error(error))
            return
        if job.is_over:
            st.rerun()  # the whole page, which now has the job's results
        with st.container(border=True, key=f"{self.page}_progress"):
            st.progress(view.share, f"{view.badge[0].capitalize()}: {view.progress}")
            st.html(now_html(job.kind, job.label))
            if view.can_cancel and is_organizer():
                self._button("Cancel", "cancel", partial(jobs.cancel, id), help=STOPS)

    def _button(
        self, label: str, name: str, action: Callable[[], object], primary: bool = False, help: str | None = None
    ) -> None:
        look: Literal["primary", "secondary"] = "primary" if primary else "secondary"
        st.button(label, key=f"{self.page}.{name}", on_click=self._do, args=(action,), type=look, help=help)

    def _do(self, action: Callable[[], object]) -> None:
        st.session_state.pop(self.failure_key, None)
        try:
            action()
        except ExegesisError as error:
            st.session_state[self.failure_key] = describe_error(error)
