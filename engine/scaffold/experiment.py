"""Train the students of a plan, in this process, on a cluster or as a job, and load finished ones from the store.

A job writes to the result store, which `load_result` reads without a model. An interrupted student resumes from its
checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from functools import cached_property, partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cache import key_for
from cache.codec import Arrays, Meta
from engine import runtime
from engine.data.sources import ExampleSource
from engine.errors import Cancelled, ExegesisError, one_line
from engine.home import home
from engine.jobs import cluster
from engine.jobs.cluster import CacheEntries
from engine.jobs.kinds import Spec, UnitStep, WorkUnit, job_kind
from engine.lazy import LazyModule
from engine.models import catalog, checkpoint_files
from engine.progress import CancelToken, Report, cancellable, check_cancelled, silent, tell
from engine.scaffold.plan import (
    SMAT,
    ScaffoldPlan,
    StudentRun,
    base_of,
    check,
    head_shape,
    is_regression,
    plan_from_json,
    source_of,
)
from engine.scaffold.result import ScaffoldResult, StudentResult, TrainingPass
from engine.store import result_store

if TYPE_CHECKING:
    from engine.scaffold import training, training_sets
    from engine.training import loop
else:
    training = LazyModule("engine.scaffold.training")
    training_sets = LazyModule("engine.scaffold.training_sets")
    loop = LazyModule("engine.training.loop")

VERSION = 1
"""Version of the students' results; raised whenever they change."""
ARRAY_FIELDS = ("phi", "student_phi")
PLAIN_FIELDS = ("simulability", "best_epoch", "steps", "seconds", "stopped")
STATIC_PASSES, LEARNED_PASSES = 1, 3
"""Forward and backward passes per step; a learned explainer adds those of the pilot step and of the outer loss."""


@dataclass(frozen=True)
class StudentStore:
    """The finished students of a plan in the result store. Reads files of models and data, never loads a model."""

    plan: ScaffoldPlan

    @cached_property
    def source(self) -> ExampleSource:
        return source_of(self.plan)

    @cached_property
    def _plan_key(self) -> dict[str, Any]:
        """The part of the cache key that all students share."""
        plan, source = self.plan, self.source
        base = base_of(plan)
        return {
            "kind": "scaffold student",
            "version": VERSION,
            "teacher": [plan.teacher, catalog.revision(plan.teacher)],
            "base": [base, base_revision(base)],
            # A folder of images has one revision for all its splits.
            "data": [source.name, source.revision, source.count, *([plan.split] if plan.split else [])],
            "needed": plan.needed,
            "device": runtime.device_type(),
        }

    def key(self, run: StudentRun) -> str:
        """Return the cache key of a student."""
        return key_for({**self._plan_key, "recipe": self.plan.recipe.used_by(run.setting), "pupil": list(astuple(run))})

    def folder(self, run: StudentRun) -> Path:
        """Return the folder of a student's checkpoint during training."""
        return home() / "scaffold" / self.key(run)

    def find(self, run: StudentRun) -> StudentResult | None:
        """Return the finished student, or None if it is not in the store."""
        entry = result_store().get(self.key(run))
        return None if entry is None else unpack(run, *entry)

    def put(self, student: StudentResult) -> None:
        """Store a finished student."""
        result_store().put(self.key(student.run), *pack(student))

    def missing(self) -> list[StudentRun]:
        """Return the students that are not finished."""
        return [run for run in self.plan.students if self.find(run) is None]


def base_revision(base: str) -> str:
    """Return a hash of the base's weights."""
    return checkpoint_files.weights_sha256(catalog.locate_base(base))


def pack(student: StudentResult) -> tuple[Meta, Arrays]:
    """Convert a student to plain values and arrays, for the cache."""
    meta = {name: getattr(student, name) for name in PLAIN_FIELDS}
    meta["history"] = [list(astuple(one)) for one in student.history]
    arrays = {name: getattr(student, name) for name in ARRAY_FIELDS if getattr(student, name) is not None}
    return meta, arrays


def unpack(run: StudentRun, meta: Meta, arrays: Arrays) -> StudentResult:
    """Inverse of `pack`."""
    history = tuple(TrainingPass(*row) for row in meta["history"])
    fields: dict[str, Any] = {name: meta[name] for name in PLAIN_FIELDS} | {n: arrays.get(n) for n in ARRAY_FIELDS}
    return StudentResult(run, history=history, **fields)


def scaffold(
    plan: ScaffoldPlan,
    report: Report = silent,
    cancel: CancelToken | None = None,
    executor: str = "local",
    address: str | None = None,
) -> ScaffoldResult:
    """Train every unfinished student and return the result. An interrupted student resumes from its checkpoint.

    `executor`: "local", or "ray" for a cluster at `address` (None: on this machine). Students that failed on a worker
    are tried again here. Students that fail are left out, with the reason; if the first one fails, its error is raised.

    Errors: those of the plan, the data set, the teacher and its base; no cluster is reachable.
    """
    cluster.check_executor(executor, address)
    check(plan)
    if executor == "ray":
        cluster.run_tasks(missing_tasks(plan), address, report, cancel or CancelToken(), "student")
    with cancellable(cancel):
        failed = {}
        trainer = StudentTrainer(plan)
        missing = trainer.store.missing()
        for number, run in enumerate(missing):
            check_cancelled()
            report(number, len(missing), str(run))
            try:
                trainer.teach(run, partial(_report_student, report, number, len(missing)))
            except Cancelled:
                raise
            except ExegesisError as error:
                if number == 0:
                    raise  # the first student failed, so all would
                failed[run] = one_line(error)
        report(len(missing), len(missing), "")
        return replace(load_result(plan), failed=failed)


def load_result(plan: ScaffoldPlan, store: StudentStore | None = None) -> ScaffoldResult:
    """Load the finished students of a plan. No model is loaded. `store`: avoids reading the data set again."""
    check(plan)
    store = store or StudentStore(plan)
    students = [store.find(run) for run in plan.students]
    shape = head_shape(catalog.config(catalog.locate(plan.teacher)))
    metric = "pearson" if is_regression(plan.teacher) else "accuracy"
    return ScaffoldResult(plan, shape, tuple(one for one in students if one is not None), metric)


def _report_student(report: Report, number: int, count: int, done: int, total: int, label: str) -> None:
    """Report progress in finished students, with the label of the current student's own progress."""
    report(number, count, label)


class StudentTrainer:
    """Trainer of a plan's students, one at a time. The teacher is run once on each example."""

    def __init__(self, plan: ScaffoldPlan) -> None:
        self.plan, self.store = plan, StudentStore(plan)
        self.training_sets = training_sets.TrainingSetBuilder(plan)

    def teach(self, run: StudentRun, report: Report = silent) -> StudentResult:
        """Train a student, from its checkpoint if there is one, and store it."""
        folder = loop.CheckpointFolder(self.store.folder(run))
        with runtime.turn(lends=True):
            outcome = training.StudentTraining(self.training_sets.build(run), run, self.plan.recipe).train(
                folder, report
            )
        position = outcome.position
        result = StudentResult(
            run,
            outcome.simulability,
            position.best_epoch,
            position.steps,
            position.seconds,
            position.stopped,
            tuple(TrainingPass(**row) for row in position.history),
            outcome.phi,
            outcome.student_phi,
        )
        self.store.put(result)
        folder.remove()
        return result


def passes_so_far(store: StudentStore, run: StudentRun) -> tuple[TrainingPass, ...]:
    """Return the finished passes of a student in training, from its checkpoint; none if it has no checkpoint."""
    folder = store.folder(run)
    if not folder.is_dir():
        return ()
    try:
        state = json.loads((folder / loop.STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ()
    return tuple(TrainingPass(**row) for row in state["at"]["history"])


@dataclass(frozen=True)
class StudentTask:
    """The training of one student on a cluster. `key`: key of the note that it is finished."""

    plan: ScaffoldPlan
    student: StudentRun
    key: str

    @property
    def size(self) -> int:
        return 1

    def run(self) -> CacheEntries:
        """Train the student and return its cache entries. Runs on a worker."""
        with cluster.worker_cache() as entries:
            StudentTrainer(self.plan).teach(self.student)
        return entries


def missing_tasks(plan: ScaffoldPlan) -> list[cluster.ClusterTask]:
    """Return one cluster task per unfinished student."""
    store = StudentStore(plan)
    tasks: list[cluster.ClusterTask] = []
    for run in store.missing():
        key = key_for({"kind": "scaffold student", "what": "task", "of": store.key(run)})
        tasks.append(StudentTask(replace(plan, settings=(run.setting,), seeds=(run.seed,)), run, key))
    return cluster.pending(tasks)


def check_spec(spec: Spec) -> None:
    """Raise an error for an invalid job. The data set and models are only read when the job runs."""
    plan = plan_from_json(spec)
    check(plan)
    base_of(plan)


def job_title(spec: Spec) -> str:
    """Return the title of a job, whether it is valid or not."""
    return f"Train students of {spec.get('teacher')} on {spec.get('dataset')}"


def job_tasks(spec: Spec) -> list[cluster.ClusterTask]:
    """Return the cluster tasks of a job, one per unfinished student."""
    return missing_tasks(plan_from_json(spec))


@job_kind("scaffold", title=job_title, check=check_spec, tasks=job_tasks)
def job_units(spec: Spec) -> Iterator[WorkUnit]:
    """Yield one unit per student. `spec`: the fields of `ScaffoldPlan`."""
    plan = plan_from_json(spec)
    check(plan)
    trainer = StudentTrainer(plan)
    for run in plan.students:
        step = UnitStep("", 0, 0, _passes_ahead(trainer.store, run), "forward and backward passes")
        compute = partial(_teach_unit, trainer, run)
        yield WorkUnit(trainer.store.key(run), str(run), compute, stores_itself=True, step=step)


def _teach_unit(trainer: StudentTrainer, run: StudentRun) -> None:
    trainer.teach(run, count_steps(trainer.plan, run, tell))


def _passes_ahead(store: StudentStore, run: StudentRun) -> int:
    """Return the maximum number of remaining forward and backward passes; early stopping may end training sooner."""
    epochs = max(1, store.plan.recipe.epochs - len(passes_so_far(store, run)))
    return epochs * _steps_a_pass(store.plan, run) * _passes_a_step(run)


def count_steps(plan: ScaffoldPlan, run: StudentRun, report: Report) -> Report:
    """Convert reports of passes over the examples into reports of forward and backward passes of this run."""
    steps, passes = _steps_a_pass(plan, run), _passes_a_step(run)
    position: dict[str, int] = {}

    def count(done: int, total: int, label: str) -> None:
        position.setdefault("first", done)
        position["step"] = position["step"] + 1 if position.get("pass") == done else 1
        position["pass"] = done
        taken = (done - position["first"]) * steps + min(position["step"], steps)
        report(taken * passes, max(1, total - position["first"]) * steps * passes, label)

    return count


def _steps_a_pass(plan: ScaffoldPlan, run: StudentRun) -> int:
    return ceil(plan.examples_of(run) / plan.recipe.batch_size)


def _passes_a_step(run: StudentRun) -> int:
    return LEARNED_PASSES if run.setting == SMAT else STATIC_PASSES
