"""The stored results of a data set's examples, without running the model, remembered until there is more or less."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from components.browse.examples import ExampleTable
from engine import jobs
from engine.data.datasets import registered_name
from engine.home import home
from engine.jobs import Job
from engine.store import result_store

Stamp = tuple[tuple[int, int], ...]
"""Number and finished parts of each job that was about it."""


@dataclass(frozen=True)
class RelatedJobs:
    """The jobs about something: the one that is `running`, or the `last` that is over; `stamp` of those over."""

    running: Job | None = None
    last: Job | None = None
    stamp: Stamp = ()


@dataclass(frozen=True)
class ExampleResults:
    """The rows of a data set, and the jobs about it: `running`, or the `last` one that is over."""

    rows: ExampleTable
    running: Job | None = None
    last: Job | None = None


def results_by_jobs(spec: Mapping[str, object], read: Callable[[Stamp], ExampleTable]) -> ExampleResults:
    """The rows that `read` finds, and the jobs of this spec, whatever else they did; `read` gets their stamp."""
    related = related_jobs("predict", lambda job: _is_about(job, spec))
    return ExampleResults(read(related.stamp), related.running, related.last)


def related_jobs(kind: str, is_about: Callable[[Job], bool]) -> RelatedJobs:
    """The jobs of that kind which are about something."""
    related = [job for job in jobs.list_jobs() if job.kind == kind and is_about(job)]
    running = next((job for job in related if not job.over), None)
    over = [job for job in related if job.over]
    return RelatedJobs(running, over[0] if over else None, tuple((job.id, job.done) for job in over))


def predict_spec(model: str, data: str, methods: Sequence[str] = ()) -> dict[str, object]:
    """The spec of a predict job."""
    return {"model": model, "data": portable_name(data)} | ({"methods": list(methods)} if methods else {})


def portable_name(data: str) -> str:
    """The name by which a job finds a data set. A path is made absolute: it may be resumed from another folder."""
    return data if registered_name(data) or data.startswith("hub:") else str(Path(data).resolve())


def _is_about(job: Job, spec: Mapping[str, object]) -> bool:
    return all(job.spec.get(name) == spec.get(name) for name in ("model", "data", "split"))


def count_losses() -> int:
    """How often results have gone since the server started, be it that somebody cleared the cache elsewhere.

    Not how many there are: each map that is looked at adds one, and the whole list would be read again.
    """
    counts, entries = _counts(str(home())), result_store().stats().entries
    counts["losses"] += entries < counts["entries"]
    counts["entries"] = entries
    return counts["losses"]


@st.cache_resource
def _counts(home: str) -> dict[str, int]:
    return {"entries": 0, "losses": 0}
