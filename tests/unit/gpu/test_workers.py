"""Workers with a GPU, and one without who asked them: what they hand over is found, and nothing is computed again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine import runtime
from engine.attacks.plan import AttackPlan
from engine.evaluation.plan import EvaluationPlan
from engine.experiments import run as experiments
from engine.jobs import cluster
from engine.models.loading import ModelCache
from engine.randomization.plan import RandomizationPlan
from engine.scaffold import experiment as scaffold
from tests.unit.evaluation.making import REVIEWS, written
from tests.unit.gpu.machine import folder, gpu, on
from tests.unit.scaffold.plans import plan as scaffold_plan

pytestmark = pytest.mark.usefixtures("home")

Planned = tuple[list[cluster.ClusterTask], Callable[[], Any]]


def evaluated(data: str, place: Path) -> Planned:
    plan = EvaluationPlan((folder("bert", 2),), data, ("gradient_x_input",), ("comprehensiveness",), examples=3)
    return experiments.missing_tasks(*experiments.prepare(plan)), lambda: experiments.carry_out(plan).rows


def randomized(data: str, place: Path) -> Planned:
    plan = RandomizationPlan((folder("bert", 2),), data, ("gradient_l2",), modes=("cascading",), seeds=1, examples=2)
    return experiments.missing_tasks(plan, experiments.sample_of(plan)), lambda: experiments.carry_out(plan).models


def attacked(data: str, place: Path) -> Planned:
    plan = AttackPlan((folder("bert", 2),), data, ("gradient_l2",), attack={"steps": 2}, examples=2)
    return experiments.missing_tasks(plan, experiments.sample_of(plan)), lambda: experiments.carry_out(plan).rows


def taught(data: str, place: Path) -> Planned:
    plan = scaffold_plan(place, settings=("none",))
    return scaffold.missing_tasks(plan), lambda: scaffold.scaffold(plan).students


@pytest.mark.parametrize("planned", [evaluated, randomized, attacked, taught])
def test_what_gpu_workers_hand_over_is_found_where_there_is_none(
    planned: Callable[[str, Path], Planned], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with on("cpu"):
        tasks, assembled = planned(written(tmp_path / "reviews.jsonl", REVIEWS), tmp_path)
        asker = runtime.device_type()
    with gpu() as seen:
        handed = [cluster._run(task, cluster.WorkerSettings(asker, False, "", {})) for task in tasks]
    assert seen.kernels
    with on("cpu"):
        for task, found in zip(tasks, handed, strict=True):
            cluster.store_entries(task, found)
        monkeypatch.setattr(ModelCache, "get", lambda *given: pytest.fail("a model was run"))
        assert len(assembled()) > 0
