"""Stored results of a data set's examples, read without running the model and cached until results change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from components.browse.examples import ExampleTable, example_table, picture_table
from components.inputs.datasets import OpenPictures, OpenTexts
from engine import jobs
from engine.data.examples import Dataset, ImageDataset
from engine.data.hub import HUB_PREFIX
from engine.data.slices import join_slice, split_slice
from engine.home import home
from engine.input_kinds import input_kind
from engine.jobs import Job
from engine.metrics.agreement import cached_disagreements
from engine.models.catalog import revision
from engine.predictions import cached_predictions, cached_set_predictions
from engine.store import result_store

JobStamp = tuple[tuple[int, int], ...]
"""ID and number of finished parts of each related job that is over."""


@dataclass(frozen=True)
class RelatedJobs:
    """Jobs about the same thing: the `running` one, the `last` one that is over, and a `stamp` of all finished ones."""

    running: Job | None = None
    last: Job | None = None
    stamp: JobStamp = ()


@dataclass(frozen=True)
class ExampleResults:
    """The rows of a data set, and its jobs: the `running` one, and the `last` one that is over."""

    rows: ExampleTable
    running: Job | None = None
    last: Job | None = None


def text_results(model: str, opened: OpenTexts) -> ExampleResults:
    """Return the stored predictions of this model, and the disagreement of methods."""
    return _results(model, predict_spec(model, opened.name), opened.data, _read_texts)


def picture_results(model: str, opened: OpenPictures) -> ExampleResults:
    """Return the stored predictions of this model."""
    return _results(model, picture_spec(model, opened), opened.data, _read_pictures)


def _results(
    model: str, spec: Mapping[str, object], data: Dataset | ImageDataset, read: Callable[..., ExampleTable]
) -> ExampleResults:
    """Return the rows from `read`, and the jobs with the model, data and split of the spec."""
    names = ("model", "data", "split")
    related = related_jobs("predict", lambda job: all(job.spec.get(name) == spec.get(name) for name in names))
    content = (data.id, data.revision, data.split, len(data))
    rows = read(model, revision(model), content, related.stamp, count_losses(), str(home()), data)
    return ExampleResults(rows, related.running, related.last)


@st.cache_resource(max_entries=4, show_spinner="Loading predictions …")
def _read_texts(
    model: str, revision: str, content: tuple[object, ...], stamp: JobStamp, losses: int, home: str, _data: Dataset
) -> ExampleTable:
    examples = [labeled.example for labeled in _data.examples]
    return example_table(_data, cached_predictions(model, examples), cached_disagreements(model, examples))


@st.cache_resource(max_entries=4, show_spinner="Loading predictions …")
def _read_pictures(
    model: str, revision: str, content: tuple[object, ...], stamp: JobStamp, losses: int, home: str, _data: ImageDataset
) -> ExampleTable:
    return picture_table(_data, cached_set_predictions(model, _data))


def related_jobs(kind: str, is_about: Callable[[Job], bool]) -> RelatedJobs:
    """Return the jobs of a kind that `is_about` accepts."""
    related = [job for job in jobs.list_jobs() if job.kind == kind and is_about(job)]
    running = next((job for job in related if not job.is_over), None)
    over = [job for job in related if job.is_over]
    return RelatedJobs(running, over[0] if over else None, tuple((job.id, job.done) for job in over))


def predict_spec(model: str, data: str, methods: Sequence[str] = ()) -> dict[str, object]:
    """Return the spec of a predict job."""
    return {"model": model, "data": portable_name("text", data)} | ({"methods": list(methods)} if methods else {})


def portable_name(kind: str, data: str) -> str:
    """Return the name by which a job finds a data set.

    A path is made absolute, because the job may be resumed from another folder.
    """
    is_portable = input_kind(kind).is_registered(data) or data.startswith(HUB_PREFIX)
    whole, part = split_slice(data)
    return data if is_portable else join_slice(str(Path(whole).resolve()), part)


def picture_spec(model: str, opened: OpenPictures) -> dict[str, object]:
    """Return the spec of a predict job on pictures."""
    return {"model": model, "data": portable_name("image", opened.name), "split": opened.data.split}


def count_losses() -> int:
    """Count how often results have disappeared since the server started, even if the cache was cleared elsewhere.

    The number of results itself is no use: each map viewed adds one, which would cause the whole list to be read again.
    """
    counts, entries = _counts(str(home())), result_store().stats().entries
    counts["losses"] += entries < counts["entries"]
    counts["entries"] = entries
    return counts["losses"]


@st.cache_resource
def _counts(home: str) -> dict[str, int]:
    return {"entries": 0, "losses": 0}
