"""Results by `delete` from when it hid the position are not served for what it is now; all others are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine import removal_operators
from engine.evaluation.plan import EvaluationPlan
from engine.experiments import run
from engine.explain import key_of
from engine.metrics.ablation import ablated_predictions
from engine.metrics.faithfulness import removal_curves
from engine.randomization.plan import RandomizationPlan
from engine.removal_operators import OPERATORS
from engine.request import Example, Request
from tests.explaining import checkpoint
from tests.unit.evaluation.making import REVIEWS, written

pytestmark = pytest.mark.usefixtures("home")

TEXT = "the plot drags"
OTHERS = [operator for operator in OPERATORS if operator != "delete"]


@pytest.fixture
def as_before(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Keys as they were while `delete` hid the position, or as they are."""
    return lambda before: monkeypatch.setattr(removal_operators, "IN_KEYS", {} if before else {"delete": "now"})


def request(method: str, **params: str) -> Request:
    return Request(str(checkpoint("gpt2", 2)), method, Example(TEXT), params)


def test_maps(as_before: Callable[[bool], None]) -> None:
    def keys() -> dict[str, str]:
        return {one: key_of(request("lime", removal=one)) for one in OPERATORS}

    as_before(True)
    before = keys()
    as_before(False)
    now = keys()
    assert [one for one in OPERATORS if now[one] != before[one]] == ["delete"]
    assert len(set(now.values()) | set(before.values())) == len(OPERATORS) + 1


def test_curves_and_predictions_without_tokens(as_before: Callable[[bool], None]) -> None:
    as_before(True)
    for operator in OPERATORS:
        removal_curves([request("random")], operator)
        ablated_predictions(request("random"), [1], [operator])
    as_before(False)
    assert [one for one in OPERATORS if not removal_curves([request("random")], one)[0].cached] == ["delete"]
    assert [one.removal for one in ablated_predictions(request("random"), [1]) if not one.cached] == ["delete"]


def test_whole_evaluations_and_randomizations(as_before: Callable[[bool], None], tmp_path: Path) -> None:
    model, data = str(checkpoint("gpt2", 2)), written(tmp_path / "reviews.jsonl", REVIEWS)

    def keys() -> dict[tuple[str, str], str]:
        found = {}
        for one in OPERATORS:
            params = {"lime": {"removal": one}}
            by_metric = EvaluationPlan(
                (model,), data, ("lime",), ("comprehensiveness",), removal=one, second_removal="none"
            )
            by_method = EvaluationPlan((model,), data, ("lime",), ("complexity",), params=params)
            sample = run.sample_of(by_metric)
            found[one, "metric"], found[one, "method"] = (run.key_of(plan, sample) for plan in (by_metric, by_method))
            random = RandomizationPlan((model,), data, ("lime",), params=params)
            found[one, "random"] = run.key_of(random, sample)
        return found

    as_before(True)
    before = keys()
    as_before(False)
    now = keys()
    assert {key for key in now if now[key] != before[key]} == {("delete", of) for of in ("metric", "method", "random")}
    assert len(set(now.values()) & set(before.values())) == 3 * len(OTHERS)


def test_the_key_of_a_removal_says_that_it_was_changed() -> None:
    assert removal_operators.keyed("delete") != "delete"
    assert [removal_operators.keyed(one) for one in OTHERS] == OTHERS
    assert removal_operators.keyed(None) is None
