"""What is known of a plan without running a model: its jobs, what they left in the cache, and the work still to do."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.errors import describe_error, show_note
from components.inputs.datasets import file_stamp
from components.job_panel import FINDS, JobPanel
from engine import jobs
from engine.errors import ExegesisError
from engine.experiments.base import Experiment, experiment_of
from engine.home import home
from engine.jobs import Job
from engine.jobs.process import this_process
from engine.jobs.runner import device_queue

if TYPE_CHECKING:
    from engine.experiments.sample import Sample

Run = tuple[Job, Any]
"""A job of an experiment, and its plan."""
Ended = tuple[tuple[int, float | None], ...]
"""Number of each job that is over, and when it ended."""
MOST_CACHED = 24
MOST_RECENT = 30
MOST_FOUND = 0.1
"""Of a job's parts: where more were found than computed, its time says little about the work."""
EMPTY = "Press **{}** to start. The job continues while you are on other pages."
AGAIN = "Try the failed ones again"


@dataclass(frozen=True)
class CachedResults:
    """The cached results of a plan: one for each finished part of it (see `engine.experiments.run.parts_of`).

    `plan`: with what the data set decides filled in. `query`: as it was asked for.
    """

    plan: Any
    sample: Sample
    found: tuple[Any, ...]
    query: Any = None

    @cached_property
    def result(self) -> Any:
        """The result of these parts. One for all runs of the page, so that what it sums up is computed once."""
        from engine.experiments.run import join_results

        return join_results(self.plan, self.found, self.query)

    @property
    def missing(self) -> tuple[str, ...]:
        """Models of which there is nothing yet."""
        there = {model for one in self.found for model in self._models(one)}
        return tuple(model for model in self.plan.models if model not in there)

    @property
    def incomplete(self) -> tuple[str, ...]:
        """Models on which something failed, so that it can be tried again."""
        return tuple(model for one in self.found if not one.complete for model in self._models(one))

    def _models(self, result: Any) -> tuple[str, ...]:
        return self.plan.models if experiment_of(self.plan).joint else (result.model,)


@dataclass(frozen=True)
class PlanStatus:
    """What there is of a plan, and the jobs about it: `running`, or the `last` one that is over.

    `runs`: the jobs of all plans of the experiment, from which may be told how long one takes.
    """

    results: CachedResults
    running: Job | None = None
    last: Job | None = None
    runs: Sequence[Run] = ()


def status_of(plan: Any) -> PlanStatus:
    """What there is of this plan. Errors: those of reading the data set and the models' files."""
    runs = runs_of(experiment_of(plan))
    own = [job for job, of in runs if of == plan]
    running = next((job for job in own if not job.is_over), None)
    last = next((job for job in own if job.is_over), None)
    return PlanStatus(results_of(plan, ended_of(plan, runs)), running, last, runs)


def runs_of(own: Experiment) -> list[Run]:
    """The jobs of the experiment, the newest first, each with its plan."""
    runs: list[Run] = []
    for job in jobs.list_jobs():
        if job.kind == own.id:
            try:
                runs.append((job, own.plan_of(job.spec)))
            except ExegesisError:  # made by another version
                continue
    return runs[:MOST_RECENT]


def results_of(plan: Any, ended: Ended = ()) -> CachedResults:
    """What the cache holds of it, whoever made that. `ended`: when jobs about it did; it is read again after each."""
    from engine.experiments.run import entry_key, parts_of

    written, data = _written(plan), file_stamp(plan.dataset)
    full, sample = _prepared(written, data, str(home()), plan)
    keys = tuple(entry_key(part, sample) for part in parts_of(full))
    return _results(written, data, keys, ended, str(home()), plan, full, sample)


def ended_of(plan: Any, runs: Sequence[Run]) -> Ended:
    """When each job about this plan ended: what it has left is read again then."""
    return tuple((job.id, job.finished) for job, of in runs if of == plan and job.is_over)


def spec_of(plan: Any) -> dict[str, Any]:
    """What a job of the plan needs: plain JSON."""
    spec: dict[str, Any] = json.loads(_written(plan))
    return spec


def error_of(plan: Any) -> str:
    """Why the plan cannot be carried out; empty where it can. The hub is asked for what is not on this machine."""
    from engine.experiments.run import check

    try:
        check(plan)
    except Exception as error:
        return describe_error(error)
    return ""


def work_area(
    page: str, plan: Any, status: PlanStatus, cost: Callable[[Any, PlanStatus], str], failed: str, start: str = "",
    empty: str = EMPTY, preview: Callable[[], object] | None = None,
) -> None:  # fmt: skip
    """What is still to be done as a button, or the job that does it; the page is drawn again when that is over.

    `cost`: what it costs, in words. `failed`: what is said of models on which something failed, {}. `start`: label of
    the button, the experiment's name if left out. `empty`: what is said before the first run, with {} for that label.
    `preview`: draws more below what it costs.
    """
    area, id = JobPanel(page), experiment_of(plan).id
    start = start or id.capitalize()
    area.trouble()
    if status.running is not None:
        area.progress(status.running.id)
    elif status.results.missing:
        with st.container(border=True, key=f"{page}_to_do"):
            st.markdown(empty.format(start))
            st.caption(cost(plan, status))
            if preview is not None:
                preview()
            area.start(start, id, spec_of(plan), status.last)
    elif status.results.incomplete:
        with st.container(border=True, key=f"{page}_failed"):
            show_note(failed.format(", ".join(status.results.incomplete)))
            if not area.go_on(status.last, AGAIN):
                area.offer(AGAIN, "again", id, spec_of(plan), help=FINDS)


def is_timed_here(job: Job) -> bool:
    """Whether how long the job took tells how long such work takes on this device."""
    here = job.queue == device_queue() and job.owner.host == this_process().host
    return here and job.state == "done" and job.computed >= (1 - MOST_FOUND) * job.total > 0 and seconds_of(job) > 0


def seconds_of(job: Job) -> float:
    """How long the job took."""
    return 0.0 if job.started is None or job.finished is None else job.finished - job.started


def _written(plan: Any) -> str:
    return json.dumps(plan.as_plain(), sort_keys=True)


@st.cache_resource(max_entries=MOST_CACHED, show_spinner="Reading the data set …")
def _prepared(written: str, data: tuple[int, ...], home: str, _plan: Any) -> tuple[Any, Sample]:
    # Here and not above: it imports what reads data sets.
    from engine.experiments.run import prepare

    return prepare(_plan)


@st.cache_resource(max_entries=MOST_CACHED, show_spinner="Reading the results …")
def _results(
    written: str, data: tuple[int, ...], keys: tuple[str | None, ...], ended: Ended, home: str, _query: Any, _plan: Any,
    _sample: Sample,
) -> CachedResults:  # fmt: skip
    from engine.experiments.run import find, parts_of

    each = (find(part, _sample) for part in parts_of(_plan))
    return CachedResults(_plan, _sample, tuple(one for one in each if one is not None), _query)
