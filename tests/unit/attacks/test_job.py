"""The job that attacks: what it leaves in the cache, how far it says to be, how it is stopped, what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import engine.attacks.attack as attack_module
from engine import jobs
from engine.attacks.plan import ATTACK
from engine.errors import UsageError
from engine.experiments.run import carry_out, finished
from engine.jobs.table import JobTable
from tests.tiny import save_checkpoint
from tests.unit.evaluation.making import REVIEWS, written

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("bert")))


@pytest.fixture
def spec(model: str, tmp_path: Path) -> dict[str, Any]:
    dataset = written(tmp_path / "reviews.jsonl", REVIEWS[:3])
    return {"models": [model], "dataset": dataset, "methods": ["gradient_l2"], "attack": {"steps": 3},
            "objectives": ["constrained"], "transfer": ["gradient_x_input"]}  # fmt: skip


def test_what_a_job_leaves_is_read_without_a_model(spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    job = jobs.run_now(jobs.create("attack", spec))
    assert (job.state, job.error) == ("done", "")
    assert (job.total, job.computed) == (3 + 3 + 1, 7), "an attack, what it transfers to, the whole"
    assert job.title == f"Attack gradient_l2 on {spec['dataset']} with {spec['models'][0]}"
    monkeypatch.setattr(attack_module, "load_classifier", lambda *given: pytest.fail("nothing is left to run"))
    assert finished(ATTACK.plan_of(spec)) == carry_out(ATTACK.plan_of(spec))
    again = jobs.run_now(jobs.create("attack", spec))
    assert (again.state, again.computed) == ("done", 0)


def test_its_label_says_the_step(spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    labels: list[str] = []
    move = JobTable.move

    def note(self: JobTable, id: int, states: Any, **values: Any) -> Any:
        labels.append(str(values.get("label", "")))
        return move(self, id, states, **values)

    monkeypatch.setattr(JobTable, "move", note)
    monkeypatch.setattr("engine.jobs.runner.WRITE_SECONDS", 0)
    jobs.run_now(jobs.create("attack", spec | {"transfer": []}))
    assert any(label.endswith(", 2 of 3 steps") for label in labels), labels


def test_the_same_examples_go_on_where_they_were(spec: dict[str, Any]) -> None:
    plan = ATTACK.plan_of(spec)
    carry_out(plan)
    some = jobs.run_now(jobs.create("attack", spec | {"objectives": ["constrained", "unconstrained"]}))
    assert (some.total, some.computed) == (13, 7), "one objective was there"


def test_a_method_that_is_zero_by_construction_fails_with_words(spec: dict[str, Any]) -> None:
    job = jobs.run_now(jobs.create("attack", spec | {"methods": ["gradient"], "transfer": []}))
    assert job.state == "failed"
    assert "3 of 4 units failed" in job.error
    assert "Attack gradient_l2 instead" in job.error


@pytest.mark.parametrize(("change", "words"), [
    ({"methods": "gradient_l2"}, "methods of an attack job: must be a list"),
    ({"attack": []}, "attack of an attack job: must be names"),
    ({"steps": 3}, "spec of an attack job: must have"),
    ({"dataset": 3}, "dataset of an attack job"),
    ({"attack": {"top_k": 0}}, "top_k"),
])  # fmt: skip
def test_what_cannot_be_attacked_is_not_entered(spec: dict[str, Any], change: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        jobs.create("attack", spec | change)
