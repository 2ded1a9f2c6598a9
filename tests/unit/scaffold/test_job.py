"""The job that teaches students: what it leaves in the cache, how it is stopped and resumed, what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine import jobs
from engine.errors import UsageError
from engine.jobs.kinds import kind_of
from engine.scaffold.experiment import StudentStore, _passes_ahead, count_steps, load_result, scaffold
from engine.scaffold.plan import NONE, SMAT, ScaffoldPlan, StudentRun
from engine.scaffold.training import StudentTraining
from engine.store import result_store
from tests.unit.scaffold.plans import plan as small

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def plan(tmp_path: Path) -> ScaffoldPlan:
    return small(tmp_path, seeds=(0, 1))


def test_what_a_job_leaves_opens_without_a_model(plan: ScaffoldPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    job = jobs.run_now(jobs.create("scaffold", plan.as_plain()))
    assert (job.state, job.error, job.total, job.computed) == ("done", "", 4, 4)
    assert job.title == f"Train students of {plan.teacher} on {plan.dataset}"
    monkeypatch.setattr(
        "engine.scaffold.training_sets.load_classifier", lambda *given: pytest.fail("nothing is left to run")
    )
    assert load_result(plan).complete
    again = jobs.run_now(jobs.create("scaffold", plan.as_plain() | {"seeds": [1]}))
    assert (again.total, again.done, again.computed) == (2, 2, 0)


def test_a_killed_job_goes_on_in_the_middle_of_a_student(plan: ScaffoldPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    real, begun = StudentTraining._epoch, list[tuple[StudentRun, int]]()

    def dying(self: StudentTraining, report: Any) -> None:
        begun.append((self.run, self.position.epoch))
        if len(begun) == 4:
            raise KeyboardInterrupt
        real(self, report)

    monkeypatch.setattr(StudentTraining, "_epoch", dying)
    with pytest.raises(KeyboardInterrupt):
        jobs.run_now(jobs.create("scaffold", plan.as_plain()))
    [stopped] = jobs.list_jobs()
    assert (stopped.state, len(load_result(plan).students)) == ("interrupted", 1)
    ended = jobs.run_now(stopped)
    assert (ended.state, ended.total, ended.computed) == ("done", 4, 3)
    assert begun[3] == begun[4] == (StudentRun(NONE, 8, 1), 1), "its first pass is not taught again"
    found = load_result(plan)
    result_store().clear()
    anew = scaffold(plan)
    assert [o.simulability for o in found.students] == [o.simulability for o in anew.students]
    assert [o.history for o in found.students] == [o.history for o in anew.students]


def test_progress_is_counted_in_passes_of_the_model(plan: ScaffoldPlan) -> None:
    [static, _, learned, _] = kind_of("scaffold").plan(plan.as_plain())
    assert static.step is not None
    assert learned.step is not None
    # Two passes over 8 examples, 4 at once.
    assert (static.step.rows, learned.step.rows) == (4, 12)
    told = list[tuple[int, int]]()
    report = count_steps(plan, StudentRun(SMAT, 8, 0), lambda done, total, label: told.append((done, total)))
    for epoch in (0, 0, 1, 1):
        report(epoch, 2, "")
    assert told == [(3, 12), (6, 12), (9, 12), (12, 12)]
    resumed = count_steps(plan, StudentRun(SMAT, 8, 0), lambda done, total, label: told.append((done, total)))
    resumed(1, 2, "")
    assert told[-1] == (3, 6), "what an earlier run has done is no work of this one"
    assert _passes_ahead(StudentStore(plan), StudentRun(SMAT, 8, 0)) == 12


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"setting": "none"}, "plan of a scaffold: must have teacher and dataset, and may have"),
        ({"settings": "none"}, "settings: must be a list, got 'none'"),
        ({"settings": ["magic"]}, "setting: unknown name 'magic'"),
        ({"teacher": "no-such"}, "unknown name 'no-such'"),
        ({"dataset": 5}, "dataset: must be a text, got 5"),
        ({"recipe": {"clip": -1}}, "recipe.clip: must be a number of at least 0"),
        ({"base": None}, "base: is missing."),
    ],
)
def test_a_job_that_cannot_be_done_is_not_entered(plan: ScaffoldPlan, given: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        jobs.create("scaffold", plan.as_plain() | given)
    assert told in str(caught.value)
    assert jobs.list_jobs() == []


def test_a_student_that_cannot_be_taught_fails_its_unit_with_the_reason(plan: ScaffoldPlan) -> None:
    job = jobs.run_now(jobs.create("scaffold", plan.as_plain() | {"train_sizes": [30]}))
    assert (job.state, job.failed) == ("failed", 4)
    assert "has 40 examples, but the four splits need 51" in job.error
