"""What is known of a data set's examples without running the model, remembered until there is more or less."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from components.browse.rows import Table, table
from components.text.open_data import OpenData
from engine import jobs
from engine.data.datasets import registered_name
from engine.data.examples import Dataset
from engine.home import home
from engine.jobs import Job
from engine.store import result_store

Stamp = tuple[tuple[int, int], ...]
"""Number and finished parts of each job that was about it."""


@dataclass(frozen=True)
class Jobs:
    """The jobs about something: the one that is `running`, or the `last` that is over; `stamp` of those over."""

    running: Job | None = None
    last: Job | None = None
    stamp: Stamp = ()


@dataclass(frozen=True)
class Known:
    """The rows of a data set, and the jobs about it: `running`, or the `last` one that is over."""

    rows: Table
    running: Job | None = None
    last: Job | None = None


def known(model: str, opened: OpenData) -> Known:
    """What there is of this model's predictions and of how far methods disagree."""
    return known_by_jobs(spec_of(model, opened.name), lambda stamp: _rows(model, opened.data, stamp))


def known_by_jobs(spec: Mapping[str, object], read: Callable[[Stamp], Table]) -> Known:
    """What `read` finds, and the jobs of this spec, whatever else they did; `read` is told what these have finished."""
    found = jobs_of("predict", lambda job: _is_about(job, spec))
    return Known(read(found.stamp), found.running, found.last)


def jobs_of(kind: str, is_about: Callable[[Job], bool]) -> Jobs:
    """The jobs of that kind which are about something."""
    found = [job for job in jobs.list_jobs() if job.kind == kind and is_about(job)]
    running = next((job for job in found if not job.over), None)
    over = [job for job in found if job.over]
    return Jobs(running, over[0] if over else None, tuple((job.id, job.done) for job in over))


def spec_of(model: str, data: str, methods: Sequence[str] = ()) -> dict[str, object]:
    """What a predict job needs."""
    return {"model": model, "data": portable(data)} | ({"methods": list(methods)} if methods else {})


def portable(data: str) -> str:
    """The name by which a job finds a data set. A path is made absolute: it may be resumed from another folder."""
    return data if registered_name(data) or data.startswith("hub:") else str(Path(data).resolve())


def _is_about(job: Job, spec: Mapping[str, object]) -> bool:
    return all(job.spec.get(name) == spec.get(name) for name in ("model", "data", "split"))


def _rows(model: str, data: Dataset, stamp: Stamp) -> Table:
    from engine.models.catalog import revision

    content = (data.id, data.revision, data.split, len(data))
    return _read(model, revision(model), content, stamp, losses(), str(home()), data)


def losses() -> int:
    """How often results have gone since the server started, be it that somebody cleared the cache elsewhere.

    Not how many there are: each map that is looked at adds one, and the whole list would be read again.
    """
    held, entries = _held(str(home())), result_store().stats().entries
    held["losses"] += entries < held["entries"]
    held["entries"] = entries
    return held["losses"]


@st.cache_resource
def _held(home: str) -> dict[str, int]:
    return {"entries": 0, "losses": 0}


@st.cache_resource(max_entries=4, show_spinner="Looking for predictions …")
def _read(
    model: str, revision: str, content: tuple[object, ...], stamp: Stamp, losses: int, home: str, _data: Dataset
) -> Table:
    # Here and not above: both import what runs models.
    from engine.metrics.agreement import cached_disagreements
    from engine.predictions import cached_predictions

    examples = [labelled.example for labelled in _data.examples]
    return table(_data, cached_predictions(model, examples), cached_disagreements(model, examples))
