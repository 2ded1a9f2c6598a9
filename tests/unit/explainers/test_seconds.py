"""What an explanation took: of an ensemble that is its members' time too, as their evaluations are its evaluations."""

from __future__ import annotations

import time
from typing import Any

import pytest

from engine.explain import explain, explain_many
from engine.explainers.ensemble import TOP_THREE
from tests.unit.explainers.asking import TEXT, ask, checkpoints


@pytest.fixture(autouse=True)
def home(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache of its own for each test."""
    checkpoints()
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path))


@pytest.mark.parametrize("cached", range(len(TOP_THREE) + 1))
def test_an_ensemble_takes_as_long_as_its_members_wherever_they_were_made(cached: int) -> None:
    target = explain(ask("gradient")).provenance.target
    earlier = sum(explain(ask(method, target=target)).seconds for method in TOP_THREE[:cached])
    began = time.perf_counter()
    made = explain(ask("ensemble_top3", target=target))
    passed = time.perf_counter() - began
    members = [explain(ask(method, target=target)) for method in TOP_THREE]
    assert all(one.cached for one in members)
    assert sum(one.seconds for one in members) < made.seconds < earlier + passed


def test_each_example_of_a_batch_has_the_time_of_its_own_members() -> None:
    """One text's members were made alone, the other's with the ensemble: no time is counted twice, none is lost."""
    texts = (TEXT, f"{TEXT} again")
    for method in TOP_THREE:
        explain(ask(method, texts[0]))
    made = explain_many([ask("ensemble_top3", text) for text in texts])
    own = [
        one.seconds - sum(explain(ask(method, text, target=one.provenance.target)).seconds for method in TOP_THREE)
        for text, one in zip(texts, made, strict=True)
    ]
    assert own[0] == pytest.approx(own[1]), "what merging took is shared alike"
    assert own[0] > 0
