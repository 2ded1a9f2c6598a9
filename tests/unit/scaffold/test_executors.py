"""Students taught on other machines: a task each, and what it hands over is all that is needed here.

Ray itself, with a node that is killed, is met in the tests of evaluations, whose tasks go the same way.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

import engine.cluster as cluster_work
import engine.scaffold.executors as executors
from engine.errors import UsageError
from engine.input_kinds import load_classifier
from engine.models.classifier import AnyClassifier
from engine.scaffold.executors import scaffold_on
from engine.scaffold.plan import Plan
from engine.scaffold.result import Outcome
from engine.scaffold.run import finished, scaffold
from engine.store import result_store
from tests.unit.randomization import test_cluster as neighbours
from tests.unit.scaffold.plans import plan as small

pytestmark = pytest.mark.usefixtures("home")


class Handing(neighbours.Handing):
    def shutdown(self) -> None:
        assert len(self.answers) == 2, "a task a student"


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return small(tmp_path)


def told(outcomes: tuple[Outcome, ...]) -> list[Any]:
    return [(o.pupil, o.simulability, o.history, None if o.phi is None else o.phi.tolist()) for o in outcomes]


def test_what_tasks_hand_over_is_what_would_be_found_here(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = executors._left(plan)
    assert [(task.size, task.pupil.setting) for task in tasks if isinstance(task, executors.Task)] == [
        (1, "none"),
        (1, "smat"),
    ]
    handed = [task.run() for task in tasks]
    assert finished(plan).outcomes == (), "a worker has its own cache"
    for task, found in zip(tasks, handed, strict=True):
        cluster_work.store_entries(task, found)
    assert executors._left(plan) == []
    with monkeypatch.context() as patch:
        patch.setattr("engine.scaffold.courses.load_classifier", lambda *given: pytest.fail("a model was run"))
        there = scaffold_on("local", plan)
    result_store().clear()
    assert told(there.outcomes) == told(scaffold(plan).outcomes)


def test_a_cluster_teaches_all_students(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    said = list[tuple[int, int, str]]()
    here = os.environ["EXEGESIS_HOME"]

    def on_workers(*given: Any) -> AnyClassifier:
        return load_classifier(*given) if os.environ["EXEGESIS_HOME"] != here else pytest.fail("a model was run here")

    monkeypatch.setattr("engine.scaffold.courses.load_classifier", on_workers)
    monkeypatch.setitem(sys.modules, "ray", Handing())
    found = scaffold_on("ray", plan, report=lambda *given: said.append(given))
    assert (found.complete, len(found.outcomes)) == (True, 2)
    assert (0, 2, "students on the cluster") in said


def test_what_fails_on_a_worker_is_tried_here_and_its_reason_told(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    class Failing(neighbours.Handing):
        def get(self, reference: bytes) -> Any:
            raise LookupError("the worker is gone")

        def shutdown(self) -> None:
            pass

    monkeypatch.setitem(sys.modules, "ray", Failing())
    assert scaffold_on("ray", plan).complete


def test_an_unknown_executor_and_an_address_without_ray_are_refused(plan: Plan) -> None:
    with pytest.raises(UsageError, match=r"executor: unknown name 'rai'. Did you mean 'ray'\?"):
        scaffold_on("rai", plan)
    with pytest.raises(UsageError, match="address: belongs to executor ray, got local"):
        scaffold_on("local", plan, "10.0.0.1:6379")
