"""A check on other machines: what tasks hand over is all that it needs, and all that goes out comes back.

Ray itself, with a node that is killed, is met in the tests of evaluations, whose tasks go the same way.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import engine.experiments.run as experiments
import engine.jobs.cluster as cluster_work
from engine.errors import UsageError
from engine.experiments.run import carry_out, missing_tasks, sample_of
from engine.input_kinds import load_classifier
from engine.models.classifier import AnyClassifier
from engine.randomization.plan import RandomizationPlan
from engine.store import result_store
from tests.explaining import checkpoint
from tests.unit.randomization.making import reviews

pytestmark = pytest.mark.usefixtures("home")


class Handing(ModuleType):
    """Stands for Ray with one worker, which takes a task when it is waited for. All goes through pickles, both ways."""

    exceptions = SimpleNamespace(RayError=LookupError)

    def __init__(self) -> None:
        super().__init__("ray")
        self.answers: dict[bytes, bytes] = {}

    def init(self, **_: object) -> None:
        self.answers.clear()

    def remote(self, **_: object) -> Callable[[Any], Any]:
        return lambda run: SimpleNamespace(remote=lambda *given: pickle.dumps((run, given)))

    def wait(self, waiting: list[bytes], timeout: float) -> tuple[list[bytes], list[bytes]]:
        run, given = pickle.loads(waiting[0])  # noqa: S301 - made above
        self.answers[waiting[0]] = pickle.dumps(run(*given))
        return waiting[:1], waiting[1:]

    def get(self, reference: bytes) -> Any:
        return pickle.loads(self.answers[reference])  # noqa: S301 - made above

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 1.0}

    def shutdown(self) -> None:
        assert len(self.answers) == 4, "the model as it is and three blocks"


@pytest.fixture
def plan(tmp_path: Path) -> RandomizationPlan:
    return RandomizationPlan(
        (str(checkpoint("bert")),), reviews(tmp_path), ("gradient_l2",), modes=("cascading",), seeds=1
    )


def test_what_tasks_hand_over_is_all_that_the_check_needs(
    plan: RandomizationPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = missing_tasks(plan, sample_of(plan))
    assert [(task.size, task.at[0]) for task in tasks if isinstance(task, experiments.UnitGroupTask)] == [
        (6, []), (6, ["3"]), (6, ["3", "2"]), (6, ["3", "2", "1"]),
    ]  # fmt: skip
    handed = [task.run() for task in tasks]
    assert not any(result_store().contains(key) for found in handed for key in found), "a worker has its own cache"
    for task, found in zip(tasks, handed, strict=True):
        cluster_work.store_entries(task, found)
    assert missing_tasks(plan, sample_of(plan)) == []
    with monkeypatch.context() as patch:
        patch.setattr("engine.randomization.chunks.load_classifier", lambda *given: pytest.fail("a model was run"))
        rows = list(carry_out(plan).rows)
    result_store().clear()
    expected = list(carry_out(plan).rows)
    assert [row["value"] for row in rows] == pytest.approx([row["value"] for row in expected], abs=1e-6)
    assert [row["block"] for row in rows] == [row["block"] for row in expected]


def test_an_unknown_executor_and_an_address_without_ray_are_refused(plan: RandomizationPlan) -> None:
    with pytest.raises(UsageError, match=r"executor: unknown name 'rai'. Did you mean 'ray'\?"):
        carry_out(plan, executor="rai")
    with pytest.raises(UsageError, match="address: only applies to executor ray, got local"):
        carry_out(plan, address="10.0.0.1:6379")


def test_a_cluster_does_all_the_stages(plan: RandomizationPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    told = list[tuple[int, int, str]]()
    here = os.environ["EXEGESIS_HOME"]

    def on_workers(*given: Any) -> AnyClassifier:
        return load_classifier(*given) if os.environ["EXEGESIS_HOME"] != here else pytest.fail("a model was run here")

    monkeypatch.setattr("engine.randomization.chunks.load_classifier", on_workers)
    monkeypatch.setitem(sys.modules, "ray", Handing())
    [found] = carry_out(plan, lambda *given: told.append(given), executor="ray").models
    assert (len(found.examples), found.complete) == (6, True)
    assert (0, 24, "examples on the cluster") in told
