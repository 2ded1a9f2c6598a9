"""How long an evaluation is said to take: from jobs on the same models and device, and from no others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from components.evaluate.view import cost_text, throughput
from engine.evaluation.plan import EvaluationPlan
from engine.jobs import Job
from engine.jobs.runner import device_queue
from engine.jobs.table import Process, this_process
from engine.registry import all_explainers
from tests.unit.components.test_library import JOB

TEXT = all_explainers("text")
SIMPLE = ("complexity",)


def plan(*models: str, **more: Any) -> EvaluationPlan:
    return EvaluationPlan(models, "d", ("lime", "random"), SIMPLE, **{"examples": 10, **more})


def ended(models: int = 1, seconds: float = 257.0, **more: Any) -> Job:
    """Ten examples by two methods, and what puts a model's together."""
    parts = models * (10 * 2 + 1)
    job = replace(
        JOB, kind="evaluate", state="done", queue=device_queue(), owner=this_process(), total=parts, done=parts,
        computed=parts, failed=0, started=100.0, finished=100.0 + seconds,
    )  # fmt: skip
    return replace(job, **more)


def test_the_pace_is_what_a_job_did_a_second() -> None:
    assert throughput(plan("m"), [(ended(), plan("m"))], TEXT) == pytest.approx(10 * (512 + 2) / 257)


def test_the_newest_job_counts_and_only_the_examples_that_the_data_set_had() -> None:
    before = [(ended(seconds=514.0), plan("m", examples=1000)), (ended(), plan("m"))]
    assert throughput(plan("m"), before, TEXT) == pytest.approx(10)


def test_removal_is_work_of_a_job_too() -> None:
    of = replace(plan("m"), metrics=("comprehensiveness",))
    passes = 10 * (512 + 2 + 2 * 2 * len(of.percents) * 2)
    job = ended(total=41, computed=41, done=41)
    assert throughput(plan("m"), [(job, of)], TEXT) == pytest.approx(passes / 257)


def test_several_models_go_by_one_job_on_all_of_them_else_by_one_each() -> None:
    each = [(ended(seconds=257.0), plan("m")), (ended(seconds=771.0), plan("n"))]
    assert throughput(plan("m", "n"), each, TEXT) == pytest.approx(2 * 5140 / (257 + 771))
    assert throughput(plan("m", "n"), each[:1], TEXT) is None
    both = (ended(models=2, seconds=1028.0), plan("n", "m"))
    assert throughput(plan("m", "n"), [*each, both], TEXT) == pytest.approx(2 * 5140 / 1028)


@pytest.mark.parametrize(
    "other",
    [
        {"state": "failed"},
        {"queue": "cuda:7"},
        {"owner": Process("elsewhere", 1, 0.0)},
        {"computed": 15},
        {"finished": None},
        {"total": 0, "computed": 0},
    ],
)
def test_a_job_that_says_nothing_about_this_work_is_not_asked(other: dict[str, Any]) -> None:
    assert throughput(plan("m"), [(ended(**other), plan("m"))], TEXT) is None


def test_neither_another_model_nor_a_method_of_another_version_is_asked() -> None:
    assert throughput(plan("m"), [(ended(), plan("n"))], TEXT) is None
    gone = replace(plan("m"), methods=("gone",))
    assert throughput(plan("m"), [(ended(), gone)], TEXT) is None


def test_what_was_found_took_no_time() -> None:
    pace = throughput(plan("m"), [(ended(computed=19), plan("m"))], TEXT)
    assert pace == pytest.approx(10 * 514 / 257 * 19 / 21)


def test_the_time_is_said_or_that_none_is_known() -> None:
    assert "about 5,100 model evaluations. Estimated time: 5 min, " in cost_text(plan("m"), TEXT, 10, 20.0)
    said = cost_text(plan("m"), TEXT, 10)
    assert "No time estimate yet: no job on the same model has finished on this device." in said
    assert "same models has" in cost_text(plan("m", "n"), TEXT, 10)
