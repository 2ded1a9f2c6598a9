"""A job as it is shown: state, progress, counts and time left in words; pure."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from components.library_html import duration
from components.numbers import count
from engine.jobs import Failure, Job

RESUMABLE = ("interrupted", "failed", "cancelled")
Colour = Literal["blue", "gray", "green", "orange", "red"]
# Each state has a word and a sign of its own, so that colour is never the only difference.
LOOKS: dict[str, tuple[str, Colour, str]] = {
    "queued": ("waiting", "gray", ":material/schedule:"),
    "running": ("running", "blue", ":material/play_arrow:"),
    "stopping": ("stopping", "gray", ":material/hourglass_top:"),
    "done": ("done", "green", ":material/check:"),
    "failed": ("failed", "red", ":material/close:"),
    "cancelled": ("cancelled", "gray", ":material/block:"),
    "interrupted": ("interrupted", "orange", ":material/bolt:"),
}
FAILURES_SHOWN = 50
A_MAP = "A part is one map: a method's scores of one example."
PARTS = {
    "explain": A_MAP,
    "attack": "A part is the attack on one example, or another method's map of an attacked example.",
    "compare": A_MAP,
    "evaluate": "A part is one map, or what is measured on one example.",
    "predict": "A part is one prediction, or one comparison of methods on an example.",
    "randomize": "A part is one method's maps of up to 16 examples at one stage.",
    "scaffold": "A part is one student.",
    "reproduce_smat": "A part is one student; the last judges the claims.",
    "reproduce": "A part is one map, what is measured on one example, or a model that is made.",
}
"""What a job of a kind counts."""


@dataclass(frozen=True)
class JobView:
    """What a job's card shows. `share` is from 0 to 1."""

    id: int
    title: str
    look: tuple[str, Colour, str]
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
    """`ahead`: how many jobs of its queue come before it."""
    stopping = not job.over and job.cancel_requested
    return JobView(
        id=job.id,
        title=job.title,
        look=LOOKS["stopping" if stopping else job.state],
        when=_when(job),
        share=min(1.0, job.done / job.total) if job.total else 0.0,
        progress=_progress(job, ahead),
        counts=_counts(job),
        trouble=job.error,
        note=job.note,
        can_cancel=not job.over and not stopping,
        can_resume=job.state in RESUMABLE,
        failed=job.failed,
    )


def ended(job: Job) -> str:
    """How far a job came that did not end well, in our words and numbers."""
    word = job.state.capitalize()
    return f"{word} after {job.done:,} of {count(job.total, 'part')}." if job.total else f"{word} before it began."


def title_html(view: JobView) -> str:
    return f'<div class="xg"><p class="xg-title">{escape(view.title)}</p></div>'


def counts_html(view: JobView) -> str:
    return f'<div class="xg"><p class="xg-small">{escape(view.counts)}</p></div>'


def failures_html(failures: Sequence[Failure]) -> str:
    """Which parts failed and why; of very many the first ones."""
    shown = failures[:FAILURES_SHOWN]
    rows = "".join(f"<dt>{escape(failure.label)}</dt><dd>{escape(failure.error)}</dd>" for failure in shown)
    left = len(failures) - len(shown)
    more = f'<p class="xg-small">and {left:,} more</p>' if left else ""
    return f'<div class="xg"><dl class="xg-facts xg-small">{rows}</dl>{more}</div>'


def _when(job: Job) -> str:
    told = f"submitted {time.strftime('%Y-%m-%d %H:%M', time.localtime(job.created))}"
    if job.started is None or job.finished is None or job.finished < job.started:
        return told
    return f"{told}, last run {duration(job.finished - job.started)}"


def _progress(job: Job, ahead: int) -> str:
    if job.state == "queued":
        return f"{count(ahead, 'job')} before it" if ahead else "next in line"
    if not job.total:
        return "nothing done" if job.over else "preparing: what is in the cache already?"
    told = f"{job.done:,} of {count(job.total, 'part')}"
    if job.over:
        return told
    return f"{told} · {_left(job)}"


def _left(job: Job) -> str:
    return "time left not known yet" if job.seconds_left is None else f"about {duration(job.seconds_left)} left"


def _counts(job: Job) -> str:
    """`done` counts what was computed, what failed, and what was found."""
    if not job.total:
        return ""
    found = max(0, job.done - job.computed - job.failed)
    told = [f"{job.computed:,} computed in this run", f"{found:,} found in the cache"]
    told += [f"{job.failed:,} failed"] if job.failed else []
    told += [f"now: {job.label}"] if job.label and not job.over else []
    return " · ".join(told)
