"""The results that come with the project: there, current, and with what the page says of them."""

from __future__ import annotations

import pytest

from engine import shipped
from engine.behavior.plan import INCLUDED, QUERY, TASKS, BehaviorPlan
from engine.behavior.result import answers_of
from engine.experiments.run import finished
from engine.store import result_store

LARGEST_FILE = 120_000

pytestmark = pytest.mark.usefixtures("home")


@pytest.mark.parametrize("plan", INCLUDED, ids=[plan.task for plan in INCLUDED])
def test_an_included_result_is_current_and_direct_queries_are_the_best(
    plan: BehaviorPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXEGESIS_DEVICE", "cpu")
    result = finished(plan)
    assert result is not None, "run python -m engine.shipped.make"
    assert [one.model for one in result.models] == list(plan.models)
    for found in result.models:
        assert found.complete
        assert len(found.examples) == plan.examples
        for answer in answers_of(found, plan):
            best = max(one.accuracy or 0 for one in answer.methods)
            assert (answer.queries[-1].accuracy or 0) >= best, "no attribution is better than the largest budget"
            assert answer.methods[0].accuracy == max(
                one.accuracy or 0 for one in answer.ways if one.way in plan.methods
            )
            assert [one.way for one in answer.queries] == [f"{QUERY}{budget}" for budget in plan.budgets]
    assert result_store().stats().entries == 0, "they are looked up and not copied"


def test_each_task_has_one_and_all_are_small() -> None:
    for kind in ("text", "image"):
        assert {plan.task for plan in INCLUDED if plan.kind == kind} == set(TASKS)
    assert shipped.BEHAVIORS.stat().st_size < LARGEST_FILE
