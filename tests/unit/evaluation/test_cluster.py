"""An evaluation on other machines: the tasks alone, and a local cluster of which a node is killed in the middle."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

import engine.evaluation.experiment as experiment
import engine.evaluation.measurement as explanations
import engine.jobs.cluster as cluster_work
from engine.errors import ExegesisError, UsageError
from engine.evaluation.experiment import evaluate
from engine.evaluation.plan import EvaluationPlan
from engine.evaluation.result import Evaluation
from engine.experiments.run import carry_out, missing_tasks, prepare
from engine.metrics.results import MetricKey
from engine.store import result_store
from tests.explaining import checkpoint
from tests.unit.evaluation.making import REVIEWS, written

pytestmark = pytest.mark.usefixtures("home")

METRICS = ("comprehensiveness", "sufficiency", "plausibility_auc", "token_f1", "complexity", "rank_spearman")


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EvaluationPlan:
    monkeypatch.setattr(experiment, "GROUP_SIZE", 1)
    data = written(tmp_path / "reviews.jsonl", REVIEWS)
    return EvaluationPlan((str(checkpoint("bert", 2)),), data, ("gradient_x_input", "occlusion"), METRICS)


def values(found: Evaluation) -> dict[tuple[MetricKey, int], float]:
    return {(row.of, row.example): row.value for row in found.rows}


def local(plan: EvaluationPlan, home: Path, monkeypatch: pytest.MonkeyPatch) -> Evaluation:
    """The same with a cache of its own."""
    with monkeypatch.context() as patch:
        patch.setenv("EXEGESIS_HOME", str(home))
        return evaluate(plan.models, plan.dataset, plan.methods, plan.metrics)


def test_what_tasks_hand_over_is_all_that_the_evaluation_needs(
    plan: EvaluationPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = missing_tasks(*prepare(plan))
    assert [task.size for task in tasks] == [1] * 6
    home = os.environ["EXEGESIS_HOME"]
    for task in tasks:
        found = task.run()
        assert not any(result_store().contains(key) for key in found), "a worker writes no cache but its own"
        cluster_work.store_entries(task, found)
    assert os.environ["EXEGESIS_HOME"] == home
    assert missing_tasks(*prepare(plan)) == []
    with monkeypatch.context() as patch:
        patch.setattr("engine.explain.load_classifier", lambda *given: pytest.fail("a model was run"))
        found = carry_out(plan, executor="local")
    assert (found.requested_rows, found.evaluated_rows) == (0, 0)
    assert values(found) == pytest.approx(values(local(plan, tmp_path / "other", monkeypatch)), abs=1e-6)


def test_an_unknown_executor_an_address_without_ray_and_ray_that_is_not_there(
    plan: EvaluationPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=r"executor: unknown name 'rai'. Did you mean 'ray'\?"):
        carry_out(plan, executor="rai")
    with pytest.raises(UsageError, match="address: only applies to executor ray, got local"):
        carry_out(plan, executor="local", address="10.0.0.1:6379")
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UsageError, match="executor ray: Ray is not installed"):
        carry_out(plan, executor="ray")


def test_an_address_at_which_nobody_answers_is_told_at_once(plan: EvaluationPlan) -> None:
    with pytest.raises(ExegesisError, match=r"address: no Ray cluster answers at 127.0.0.1:9 \(.*refused"):
        carry_out(plan, executor="ray", address="127.0.0.1:9")
    with pytest.raises(UsageError, match="address: must be host:port of a Ray cluster, got 'there'"):
        carry_out(plan, executor="ray", address="there")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow(reason="starts a Ray cluster")
def test_a_node_is_killed_in_the_middle_and_nothing_is_missing(
    plan: EvaluationPlan, ray_cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray_cluster.add_node(num_cpus=1)
    lost = ray_cluster.add_node(num_cpus=1)
    killed: list[int] = []

    def report(done: int, total: int, label: str) -> None:
        if done and not killed:
            killed.append(done)
            ray_cluster.remove_node(lost, allow_graceful=False)

    found: list[bool] = []
    with monkeypatch.context() as patch:
        patch.setattr(explanations, "explain_many", _cached_only(explanations.explain_many, found))
        whole = carry_out(plan, report, executor="ray", address=ray_cluster.address)
    assert killed
    assert killed[0] < 6
    assert found, "the driver asked for maps"
    assert all(found), "and the workers had made all of them"
    assert values(whole) == pytest.approx(values(local(plan, tmp_path / "other", monkeypatch)), abs=1e-5)
    assert len(whole.facts) == len(REVIEWS)


def _cached_only(real: Any, noted: list[bool]) -> Any:
    def explain_many(requests: Any) -> Any:
        made = real(requests)
        noted.extend(one.cached for one in made)
        return made

    return explain_many
