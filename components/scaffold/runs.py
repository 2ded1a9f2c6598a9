"""The finished students of a plan, the button that trains the others, and the progress of a running job."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st

from components.browse.results import related_jobs
from components.errors import describe_error, show_error, show_note
from components.experiment.runs import AGAIN, skip_reasons_html, spec_of
from components.inputs.datasets import FileStamp, file_stamp
from components.job_panel import FINDS, JobPanel
from components.numbers import count, fixed, rough_duration
from components.palette import browser_theme
from components.scaffold.charts import DECIMALS, curves_chart, lines_of
from components.scaffold.state import SETTING_TITLES
from engine import jobs
from engine.errors import ExegesisError
from engine.home import home
from engine.jobs import Job, UnitFailure
from engine.models import catalog
from engine.scaffold.experiment import StudentStore, base_revision, load_result, passes_so_far
from engine.scaffold.plan import (
    EvaluationSample,
    ScaffoldPlan,
    StudentRun,
    base_of,
    evaluation_sample,
    plan_from_json,
    splits_of,
)
from engine.scaffold.result import ScaffoldResult, TrainingPass
from engine.store import result_store

EMPTY = (
    "No student of this plan has been trained yet. Press **Teach** to start. Training runs as a background job and "
    "saves each finished student."
)
PARTLY = "Some students of this plan are finished and shown below. Press **Teach** to train the others."
KIND = "scaffold"
PANEL = JobPanel(KIND)
MOST_CACHED = 8
MARKED_ALIKE: Mapping[str, tuple[str, ...]] = {
    "reviews-generated": ("reviews",),
    "sst2": ("reviews", "reviews-generated"),
    "reviews-marked": (),
}
"""By data set, other data sets of the same task that have marks."""
TIMED = "Estimated time: about {}, from the finished students of this plan."
STOPPED = "A stopped student resumes from its last pass; finished students are not trained again."
REFRESH_SECONDS = 2.0


@dataclass(frozen=True)
class ScaffoldStatus:
    """The finished students of a plan and its jobs: the `running` one and the `last` one that ended.

    `failed`: the failed students of the last job.
    """

    result: ScaffoldResult
    store: StudentStore
    running: Job | None = None
    last: Job | None = None
    failed: Sequence[UnitFailure] = ()

    @property
    def missing(self) -> tuple[StudentRun, ...]:
        """Students that are not finished."""
        finished = {one.run for one in self.result.students}
        return tuple(run for run in self.result.plan.students if run not in finished)


def status_of(plan: ScaffoldPlan) -> ScaffoldStatus:
    """The finished students and jobs of a plan. Errors: those of the plan, the data set and the models' files."""
    related = related_jobs(KIND, lambda job: _is_about(job, plan))
    last, store = related.last, store_of(plan)
    failed = tuple(jobs.failures(last.id)) if last is not None and last.failed else ()
    result = _result(_json(plan), are_finished(store), str(home()), plan, store)
    return ScaffoldStatus(result, store, related.running, last, failed)


def _is_about(job: Job, plan: ScaffoldPlan) -> bool:
    try:
        return plan_from_json(job.spec) == plan
    except ExegesisError:  # the job was created by another version
        return False


def store_of(plan: ScaffoldPlan) -> StudentStore:
    """Return the plan's part of the result store. Errors: as in `status_of`."""
    base = base_of(plan)
    files = (catalog.revision(plan.teacher), base, base_revision(base))
    return _store(_json(plan), file_stamp(plan.dataset), files, str(home()), plan)


def are_finished(store: StudentStore) -> tuple[bool, ...]:
    """Whether each student is finished, in the order of the plan."""
    return tuple(result_store().contains(store.key(run)) for run in store.plan.students)


def students_in_training(store: StudentStore) -> dict[StudentRun, tuple[TrainingPass, ...]]:
    """Return the passes so far of each student in training."""
    passes = {run: passes_so_far(store, run) for run in store.plan.students}
    return {run: own for run, own in passes.items() if own}


def shortage_of(status: ScaffoldStatus) -> str:
    """Return the error if the data set is too small for the plan, else an empty string."""
    try:
        splits_of(status.store.source.count, status.result.plan)
    except ExegesisError as error:
        return describe_error(error)
    return ""


def cached_sample(plan: ScaffoldPlan, examples: int, dataset: str = "") -> EvaluationSample:
    """Return the examples that explainers are judged on, cached for all sections of the page.

    `dataset`: empty for test examples of the plan's own data set. Errors: those of reading the data set.
    """
    name = dataset or plan.dataset
    return _sample(_json(plan), examples, name, file_stamp(name), str(home()), plan)


def marked_sets(plan: ScaffoldPlan) -> dict[str, str]:
    """Titles of the data sets with marks, by their names in a link. The plan's own has an empty name."""
    alike = MARKED_ALIKE.get(plan.dataset.partition(":")[0], ())
    return {"": f"{plan.dataset}, test examples", **{name: name for name in alike}}


def _json(plan: ScaffoldPlan) -> str:
    return json.dumps(plan.as_plain(), sort_keys=True)


@st.cache_resource(max_entries=MOST_CACHED, show_spinner="Reading the data set …")
def _store(plan_json: str, data: FileStamp, files: tuple[str, ...], home: str, _plan: ScaffoldPlan) -> StudentStore:
    store = StudentStore(_plan)
    _ = store.source  # read the data now, while the spinner is shown
    return store


@st.cache_resource(max_entries=MOST_CACHED, show_spinner="Reading the results …")
def _result(
    plan_json: str, finished: tuple[bool, ...], home: str, _plan: ScaffoldPlan, _store: StudentStore
) -> ScaffoldResult:
    return load_result(_plan, _store)


@st.cache_resource(max_entries=MOST_CACHED, show_spinner="Reading the data set …")
def _sample(
    plan_json: str, examples: int, dataset: str, data: FileStamp, home: str, _plan: ScaffoldPlan
) -> EvaluationSample:
    return evaluation_sample(_plan, examples, dataset)


def work_area(status: ScaffoldStatus) -> None:
    """Draw the button that trains missing students, or the running job. The page reruns when the job ends."""
    PANEL.trouble()
    if status.running is not None:
        PANEL.progress(status.running.id)
        # A fragment: it reruns the whole page only when one more student is finished.
        st.fragment(_training_area, run_every=REFRESH_SECONDS)(status)
        return
    if not status.missing:
        return
    if shortage := shortage_of(status):
        show_error(shortage)
        return
    with st.container(border=True, key="scaffold_to_do"):
        st.markdown(PARTLY if status.result.students else EMPTY)
        st.caption(cost_words(status.result, status.missing))
        if status.failed:
            _failures_area(status)
        else:
            PANEL.start("Teach", KIND, spec_of(status.result.plan), status.last)


def cost_words(result: ScaffoldResult, missing: tuple[StudentRun, ...]) -> str:
    """Describe the number of students, how many are missing, and the estimated training time."""
    plan = result.plan
    sizes = (
        f"{count(len(plan.students), 'student')}: {count(len(plan.settings), 'setting')}, "
        f"{count(len(plan.train_sizes), 'train size')}, {count(len(plan.seeds), 'seed')}; "
        f"{len(missing):,} left to train."
    )
    seconds = seconds_of(result, missing)
    return " ".join([sizes, *([] if seconds is None else [TIMED.format(rough_duration(seconds))]), STOPPED])


def seconds_of(result: ScaffoldResult, missing: tuple[StudentRun, ...]) -> float | None:
    """Estimate the training time in seconds; None if the plan has no finished student.

    The time per example is the median over the finished students of the setting or, without any, of all settings.
    """
    paces: dict[str, list[float]] = {}
    for one in result.students:
        paces.setdefault(one.run.setting, []).append(one.seconds / one.run.train_size)
    if not paces:
        return None
    overall = float(np.median([pace for own in paces.values() for pace in own]))
    medians = {setting: float(np.median(values)) for setting, values in paces.items()}
    return sum(medians.get(run.setting, overall) * run.train_size for run in missing)


def failure_rows(failures: Sequence[UnitFailure]) -> list[tuple[str, str, str]]:
    """Group failures by reason: the reason, the number of students, and their names."""
    labels: dict[str, list[str]] = {}
    for one in failures:
        labels.setdefault(one.error, []).append(one.label)
    return [(why, count(len(own), "student"), "; ".join(own)) for why, own in labels.items()]


def _failures_area(status: ScaffoldStatus) -> None:
    show_note(f"{count(len(status.failed), 'student')} could not be trained.")
    st.html(skip_reasons_html(failure_rows(status.failed)))
    if not PANEL.go_on(status.last, AGAIN):
        PANEL.offer(AGAIN, "again", KIND, spec_of(status.result.plan), help=FINDS)


def _training_area(status: ScaffoldStatus) -> None:
    """Draw the learning curve of the student in training."""
    missing = set(status.missing)
    if are_finished(status.store) != tuple(run not in missing for run in status.result.plan.students):
        st.rerun()
    in_training = students_in_training(status.store)
    if not in_training:
        st.caption("The next student is in its first pass. Its learning curve appears when that pass ends.")
        return
    run, passes = list(in_training.items())[-1]
    st.caption(training_words(run, passes))
    lines = lines_of(status.result, run.setting, run.train_size, "validation", in_training)
    chart = curves_chart(lines, "validation", status.result.metric, browser_theme())
    title = f"Learning curve so far: {SETTING_TITLES[run.setting]}, {count(run.train_size, 'example')}"
    st.altair_chart(chart, key="scaffold_live", alt=title)


def training_words(run: StudentRun, passes: tuple[TrainingPass, ...]) -> str:
    """Describe the progress of a student."""
    last = passes[-1]
    score = "not defined" if last.validation is None else fixed(last.validation, DECIMALS, False)
    return (
        f"Training: {SETTING_TITLES[run.setting]}, {count(run.train_size, 'example')}, seed {run.seed}; "
        f"{count(len(passes), 'pass')} done, simulability on validation {score}."
    )
