"""Students taught on other machines: a task each, and what it hands over is all that is needed here.

Ray itself, with a node that is killed, is met in the tests of evaluations, whose tasks go the same way.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

import engine.jobs.cluster as cluster_work
from engine.errors import UsageError
from engine.input_kinds import load_classifier
from engine.models.classifier import AnyClassifier
from engine.scaffold.experiment import StudentTask, load_result, missing_tasks, scaffold
from engine.scaffold.plan import ScaffoldPlan
from engine.scaffold.result import StudentResult
from engine.store import result_store
from tests.unit.randomization import test_cluster as neighbors
from tests.unit.scaffold.plans import plan as small

pytestmark = pytest.mark.usefixtures("home")


class Handing(neighbors.Handing):
    def shutdown(self) -> None:
        assert len(self.answers) == 2, "a task a student"


@pytest.fixture
def plan(tmp_path: Path) -> ScaffoldPlan:
    return small(tmp_path)


def told(outcomes: tuple[StudentResult, ...]) -> list[Any]:
    return [(o.run, o.simulability, o.history, None if o.phi is None else o.phi.tolist()) for o in outcomes]


def test_what_tasks_hand_over_is_what_would_be_found_here(plan: ScaffoldPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = missing_tasks(plan)
    assert [(task.size, task.student.setting) for task in tasks if isinstance(task, StudentTask)] == [
        (1, "none"),
        (1, "smat"),
    ]
    handed = [task.run() for task in tasks]
    assert load_result(plan).students == (), "a worker has its own cache"
    for task, found in zip(tasks, handed, strict=True):
        cluster_work.store_entries(task, found)
    assert missing_tasks(plan) == []
    with monkeypatch.context() as patch:
        patch.setattr("engine.scaffold.training_sets.load_classifier", lambda *given: pytest.fail("a model was run"))
        there = scaffold(plan)
    result_store().clear()
    assert told(there.students) == told(scaffold(plan).students)


def test_a_cluster_teaches_all_students(plan: ScaffoldPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    said = list[tuple[int, int, str]]()
    here = os.environ["EXEGESIS_HOME"]

    def on_workers(*given: Any) -> AnyClassifier:
        return load_classifier(*given) if os.environ["EXEGESIS_HOME"] != here else pytest.fail("a model was run here")

    monkeypatch.setattr("engine.scaffold.training_sets.load_classifier", on_workers)
    monkeypatch.setitem(sys.modules, "ray", Handing())
    found = scaffold(plan, executor="ray", report=lambda *given: said.append(given))
    assert (found.complete, len(found.students)) == (True, 2)
    assert (0, 2, "students on the cluster") in said


def test_what_fails_on_a_worker_is_tried_here_and_its_reason_told(
    plan: ScaffoldPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(neighbors.Handing):
        def get(self, reference: bytes) -> Any:
            raise LookupError("the worker is gone")

        def shutdown(self) -> None:
            pass

    monkeypatch.setitem(sys.modules, "ray", Failing())
    assert scaffold(plan, executor="ray").complete


def test_an_unknown_executor_and_an_address_without_ray_are_refused(plan: ScaffoldPlan) -> None:
    with pytest.raises(UsageError, match=r"executor: unknown name 'rai'. Did you mean 'ray'\?"):
        scaffold(plan, executor="rai")
    with pytest.raises(UsageError, match="address: only applies to executor ray, got local"):
        scaffold(plan, address="10.0.0.1:6379")
