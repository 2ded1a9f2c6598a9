"""Runs of an experiment: jobs, cached results, remaining work, and the list of recent runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from html import escape
from typing import Any

import streamlit as st

from components.errors import describe_error, escape_label, show_error, show_note
from components.experiment.state import ExperimentSession, state_of
from components.inputs.datasets import file_stamp
from components.job_panel import BADGES, FINDS, JobPanel
from components.numbers import browser_zone, count, format_time
from engine import jobs
from engine.errors import ExegesisError
from engine.experiments.base import Experiment, experiment_of
from engine.experiments.run import check, entry_key, find, join_results, parts_of, prepare
from engine.experiments.sample import Sample
from engine.home import home
from engine.jobs import Job
from engine.jobs.runner import device_queue
from engine.jobs.table import this_process
from engine.registry import all_explainers

Run = tuple[Job, Any]
"""A job of an experiment and its plan."""
Ended = tuple[tuple[int, float | None], ...]
"""Id and end time of each finished job."""
MOST_CACHED = 24
MOST_RECENT = 30
MOST_FOUND = 0.1
"""Largest share of cached units in a job whose time is used for estimates."""
EMPTY = "Press **{}** to start. The job continues while you are on other pages."
AGAIN = "Retry what failed"
MOST_REASONS = 40
SHIPPED = "included"
MOST_NAMES, MOST_LISTED = 3, 12
"""Maximum number of model or method names in a line (the rest is counted), and of runs in the list."""
LEFT_LABELS = "[class*='st-key-{}-recent-'] button{{justify-content:start;text-align:start}}"
"""Aligns the labels of the list to the left; Streamlit centers them."""


@dataclass(frozen=True)
class CachedResults:
    """The cached results of a plan.

    `plan`: the plan with the values that depend on the data set. `found`: a result for each part of the plan that has
    one (see `engine.experiments.run.parts_of`). `query`: the plan as requested.
    """

    plan: Any
    sample: Sample
    found: tuple[Any, ...]
    query: Any = None

    @cached_property
    def result(self) -> Any:
        """The joined result of all parts. It is computed once and shared by all reruns of the page."""
        return join_results(self.plan, self.found, self.query)

    @property
    def missing(self) -> tuple[str, ...]:
        """Models without a cached result."""
        there = {model for one in self.found for model in self._models(one)}
        return tuple(model for model in self.plan.models if model not in there)

    @property
    def incomplete(self) -> tuple[str, ...]:
        """Models on which something failed that can be retried."""
        return tuple(model for one in self.found if not one.complete for model in self._models(one))

    def _models(self, result: Any) -> tuple[str, ...]:
        return self.plan.models if experiment_of(self.plan).joint else (result.model,)


@dataclass(frozen=True)
class PlanStatus:
    """The cached results of a plan and its jobs.

    `running`: the job that has not ended. `last`: the last finished job. `runs`: the jobs of all plans of the
    experiment, for estimates of the time.
    """

    results: CachedResults
    running: Job | None = None
    last: Job | None = None
    runs: Sequence[Run] = ()


def status_of(plan: Any) -> PlanStatus:
    """Return the status of a plan. Errors: those of reading the data set and the model files."""
    runs = runs_of(experiment_of(plan))
    own = [job for job, of in runs if of == plan]
    running = next((job for job in own if not job.is_over), None)
    last = next((job for job in own if job.is_over), None)
    return PlanStatus(results_of(plan, ended_of(plan, runs)), running, last, runs)


def runs_of(own: Experiment) -> list[Run]:
    """Return the experiment's newest jobs with their plans, at most `MOST_RECENT`, newest first."""
    runs: list[Run] = []
    for job in jobs.list_jobs():
        if job.kind == own.id:
            try:
                runs.append((job, own.plan_of(job.spec)))
            except ExegesisError:  # submitted by another version
                continue
    return runs[:MOST_RECENT]


def results_of(plan: Any, ended: Ended = ()) -> CachedResults:
    """Return the cached results of a plan. `ended`: its finished jobs; the results are read again after each."""
    written, data = _written(plan), file_stamp(plan.dataset)
    full, sample = _prepared(written, data, str(home()), plan)
    keys = tuple(entry_key(part, sample) for part in parts_of(full))
    return _results(written, data, keys, ended, str(home()), plan, full, sample)


def ended_of(plan: Any, runs: Sequence[Run]) -> Ended:
    """Return the ids and end times of the plan's finished jobs."""
    return tuple((job.id, job.finished) for job, of in runs if of == plan and job.is_over)


def spec_of(plan: Any) -> dict[str, Any]:
    """Return the plan as the JSON object of a job."""
    spec: dict[str, Any] = json.loads(_written(plan))
    return spec


def error_of(plan: Any) -> str:
    """Return why the plan cannot run, or "" if it can. Models and data that are not local are looked up on the hub."""
    try:
        check(plan)
    except Exception as error:
        return describe_error(error)
    return ""


def work_area(
    page: str, plan: Any, status: PlanStatus, cost: Callable[[Any, PlanStatus], str], failed: str, start: str = "",
    empty: str = EMPTY, preview: Callable[[], object] | None = None,
) -> None:  # fmt: skip
    """Draw the start button, or the progress of the job; the page reruns when the job ends.

    `page`: prefix of the widget keys. `cost`: returns a description of the cost. `failed`: note about models on which
    something failed, with {} for their names. `start`: label of the button; the experiment's name if empty. `empty`:
    note before the first run, with {} for that label. `preview`: draws more below the cost.
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
    """Whether the job ran on this device and computed most of its units, so that its time can be used for estimates."""
    here = job.queue == device_queue() and job.owner.host == this_process().host
    return here and job.state == "done" and job.computed >= (1 - MOST_FOUND) * job.total > 0 and seconds_of(job) > 0


def seconds_of(job: Job) -> float:
    """Return the duration of the job in seconds, or 0 if unknown."""
    return 0.0 if job.started is None or job.finished is None else job.finished - job.started


def _written(plan: Any) -> str:
    return json.dumps(plan.as_plain(), sort_keys=True)


@st.cache_resource(max_entries=MOST_CACHED, show_spinner="Reading the data set …")
def _prepared(written: str, data: tuple[int, ...], home: str, _plan: Any) -> tuple[Any, Sample]:
    return prepare(_plan)


@st.cache_resource(max_entries=MOST_CACHED, show_spinner="Reading the results …")
def _results(
    written: str, data: tuple[int, ...], keys: tuple[str | None, ...], ended: Ended, home: str, _query: Any, _plan: Any,
    _sample: Sample,
) -> CachedResults:  # fmt: skip
    each = (find(part, _sample) for part in parts_of(_plan))
    return CachedResults(_plan, _sample, tuple(one for one in each if one is not None), _query)


def skip_reasons_html(lines: Sequence[tuple[str, str, str]]) -> str:
    """HTML list of reasons for omitted results, at most `MOST_REASONS`. Everything is escaped.

    `lines`: for each reason its text, the number of examples or maps, and the methods or models.
    """
    rows = "".join(
        f'<dt>{escape(number)}</dt><dd>{escape(why)} <span class="xg-small">{escape(of)}</span></dd>'
        for why, number, of in lines[:MOST_REASONS]
    )
    rest = len(lines) - MOST_REASONS
    more = f'<p class="xg-small">and {rest:,} more reasons</p>' if rest > 0 else ""
    return f'<div class="xg"><dl class="xg-facts xg-small">{rows}</dl>{more}</div>'


def recent_area(session: ExperimentSession, label: str, note: str) -> None:
    """Draw a popover with the recent runs and the included plans. Selecting one opens its plan."""
    own, key = session.experiment, f"{session.page}.recent"
    with st.popover(label, key=key, icon=":material/history:"):
        try:
            runs = runs_of(own)
        except ExegesisError as error:
            show_error(describe_error(error))
            return
        st.html(f"<style>{LEFT_LABELS.format(session.page)}</style>")
        for job, plan in _newest_by_plan(runs)[:MOST_LISTED]:
            _recent_row(session, f"{key}.{job.id}", plan, job_state(job))
        for kind, plan in own.opens_with.items():
            if all(plan != other for _, other in runs):
                _recent_row(session, f"{key}.{kind}", plan, SHIPPED)
        st.caption(note)


def plan_title(plan: Any) -> str:
    """Return the models and the data set of a plan in words."""
    return f"{_list_names(plan.models)} on {plan.dataset}"


def plan_summary(plan: Any, titles: Mapping[str, str]) -> str:
    """Return the number of examples and the methods of a plan in words. `titles`: method titles by id."""
    return f"{count(plan.examples, 'example')}, {_list_names([titles.get(one, one) for one in plan.methods])}"


def job_state(job: Job) -> str:
    """Return the time at which the job was submitted, and its state, in words."""
    return f"{format_time(job.created, browser_zone())}, {BADGES[job.state][0]}"


def _recent_row(session: ExperimentSession, key: str, plan: Any, state: str) -> None:
    with st.container(gap=None):
        st.button(escape_label(plan_title(plan)), key=key, type="tertiary", on_click=partial(_open_plan, session, plan))
        titles = {id: method.title for id, method in all_explainers(plan.kind).items()}
        st.caption(escape_label(f"{plan_summary(plan, titles)} · {state}"))


def _list_names(names: Sequence[str]) -> str:
    left = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {left} more" if left > 0 else "")


def _newest_by_plan(runs: Sequence[Run]) -> list[Run]:
    """Return the newest job of each plan."""
    newest: list[Run] = []
    for job, plan in runs:
        if all(plan != other for _, other in newest):
            newest.append((job, plan))
    return newest


def _open_plan(session: ExperimentSession, plan: Any) -> None:
    try:
        session.turn_to(state_of(plan, session.view))
    except ExegesisError as error:  # its model no longer exists
        st.toast(escape_label(describe_error(error)))
