"""A whole evaluation is found again as it was, and anew where anything that it depends on has changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import engine.evaluation.experiment as module
from engine.evaluation.experiment import evaluate
from engine.evaluation.plan import EvaluationPlan
from engine.experiments.run import finished
from engine.request import MAX_CHARACTERS
from tests.explaining import checkpoint
from tests.unit.evaluation.making import REVIEWS, written

pytestmark = pytest.mark.usefixtures("home")

METRICS = ("comprehensiveness", "plausibility_auc", "rank_spearman", "with_top")


@pytest.fixture
def worked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The models that had to be looked at example by example."""
    seen: list[str] = []
    real = module._ModelEvaluator.run

    def run(self: Any, progress: Any) -> Any:
        seen.append(self.model)
        return real(self, progress)

    monkeypatch.setattr(module._ModelEvaluator, "run", run)
    return seen


def test_it_is_found_as_it_was_and_another_model_costs_only_itself(tmp_path: Path, worked: list[str]) -> None:
    data, models = written(tmp_path / "a.jsonl", REVIEWS), [str(checkpoint("bert")), str(checkpoint("roberta"))]
    first = evaluate(models[:1], data, ["gradient_l2"], METRICS)
    assert first.skips, "one example is not marked"
    again = evaluate(models[:1], data, ["gradient_l2"], METRICS)
    assert (again.rows, again.skips, again.facts, again.scores) == (first.rows, first.skips, first.facts, first.scores)
    assert worked == models[:1]
    both = evaluate(models, data, ["gradient_l2"], METRICS)
    assert worked == models
    assert both.rows[: len(first.rows)] == first.rows


def test_what_has_changed_is_looked_at_anew(tmp_path: Path, worked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    data, name = written(tmp_path / "a.jsonl", REVIEWS), str(checkpoint("bert"))
    for number, more in enumerate(({}, {"unit": "word"}, {"seed": 1}, {"k": 3}, {"shares": (10,)}, {"examples": 5}), 1):
        evaluate([name], data, ["random"], METRICS, **more)  # type: ignore[arg-type]
        assert len(worked) == number
    written(tmp_path / "a.jsonl", [*REVIEWS[:5], {**REVIEWS[5], "rationale": [[0, 3]]}])
    evaluate([name], data, ["random"], METRICS)
    assert len(worked) == 7
    monkeypatch.setattr(module, "VERSIONS", [*module.VERSIONS[:-1], module.VERSIONS[-1] + 1])
    evaluate([name], data, ["random"], METRICS)
    assert len(worked) == 8


def test_a_finished_one_opens_without_a_model_and_only_where_every_model_is_done(
    tmp_path: Path, worked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data, models = written(tmp_path / "a.jsonl", REVIEWS), (str(checkpoint("bert")), str(checkpoint("roberta")))
    found = evaluate(models[:1], data, ["random"], METRICS)
    monkeypatch.setattr("engine.evaluation.experiment._ModelEvaluator", None)
    one, both = (EvaluationPlan(some, data, ("random",), METRICS) for some in (models[:1], models))
    again = finished(one)
    assert again is not None
    assert (again.rows, again.skips, again.facts, again.plan) == (found.rows, found.skips, found.facts, found.plan)
    assert finished(both) is None


def test_one_with_a_failed_example_opens_with_the_reason_and_is_worked_on_again(
    tmp_path: Path, worked: list[str]
) -> None:
    rows = [*REVIEWS, {"text": "a" * (MAX_CHARACTERS + 1), "label": 1}]
    data, name = written(tmp_path / "a.jsonl", rows), str(checkpoint("bert"))
    first = evaluate([name], data, ["random"])
    held = finished(EvaluationPlan((name,), data, ("random",)))
    assert held is not None
    assert (held.rows, held.skips) == (first.rows, first.skips)
    assert len(REVIEWS) in {skip.example for skip in held.skips}
    evaluate([name], data, ["random"])
    assert worked == [name, name]
