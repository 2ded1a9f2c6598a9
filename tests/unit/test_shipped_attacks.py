"""The attacks that come with the project: those that their page opens with, current, found without a model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from components.adversarial.state import EXAMPLES, OTHERS, AdversarialState, read_state
from components.inputs.datasets import open_pictures, open_texts
from engine import runtime, shipped
from engine.attacks import attack
from engine.attacks.attack import attack_key, attack_many, transfer_key
from engine.attacks.experiment import attack_example
from engine.experiments import run
from engine.experiments.run import finished, key_of, sample_of
from engine.registry import all_explainers
from engine.shipped import make

LARGEST_FILE = 400_000
LEAST_RIGHT = 30
"""The least number of examples that the model gets right."""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache on the CPU, whatever the machine has."""
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path))
    monkeypatch.setenv("EXEGESIS_DEVICE", "cpu")
    runtime.device.cache_clear()
    runtime._only_cpu.cache_clear()


def opened(kind: str) -> AdversarialState:
    """What the page shows that was asked for nothing."""
    plan, methods = make.ATTACK_PLANS[kind], all_explainers(kind)
    models = list(plan.models)
    opened = open_texts(plan.dataset) if kind == "text" else open_pictures(plan.dataset, "")
    state, said = read_state(kind, {}, models, methods, opened)
    assert said == []
    return state


@pytest.mark.parametrize("kind", list(make.ATTACK_PLANS))
def test_the_shipped_attacks_are_those_that_the_page_opens_with(kind: str) -> None:
    state, plan = opened(kind), make.ATTACK_PLANS[kind]
    asked = [attack_key(state.request(objective)) for objective in state.objectives]
    assert asked == [attack_key(request) for request in make.attack_requests(kind)]
    assert state.plan() == plan
    assert state.others == OTHERS[kind] == make.ATTACK_OTHERS[kind]
    assert state.opened == ("others",)
    maps = {transfer_key(state.request(one), other, {}) for one in state.objectives for other in state.others}
    assert {*asked, *maps, key_of(plan, sample_of(plan))} <= set(shipped.entries()), "python -m engine.shipped.make"
    assert shipped.ATTACKS.stat().st_size < LARGEST_FILE


@pytest.mark.parametrize("kind", list(make.ATTACK_PLANS))
def test_they_are_found_and_their_top_changes_while_the_class_stays(kind: str) -> None:
    found = attack_many(make.attack_requests(kind))
    assert all(one.cached for one in found)
    assert [one.attack["objective"] for one in found] == ["unconstrained", "constrained"]
    for one in found:
        assert one.class_kept
        assert one.rank_change > 0.5
        # Kept in fewer digits, but never further than allowed.
        assert abs(one.delta).max() <= float(str(one.attack["epsilon"]))
        np.testing.assert_allclose(abs(one.delta).max(1), one.largest, rtol=5e-4, atol=1e-9)


@pytest.mark.parametrize("kind", list(make.ATTACK_PLANS))
def test_means_over_examples_are_there_without_a_model(kind: str) -> None:
    plan = make.ATTACK_PLANS[kind]
    found = finished(plan)
    assert found is not None
    assert found.complete
    assert {row.key.method for row in found.rows} == {*plan.methods, *plan.transfer}
    assert len({row.example for row in found.rows}) == plan.examples == EXAMPLES
    assert sum(one.right is True for one in found.facts) >= LEAST_RIGHT


@pytest.mark.parametrize("kind", list(make.ATTACK_PLANS))
def test_a_shipped_example_is_what_is_computed(kind: str) -> None:
    """The shortest of the 50 examples, by the constrained attack.

    A long attack in float32 takes other steps in a batch or on another processor, so that outcomes and rank changes are
    compared, not scores.
    """
    plan = make.ATTACK_PLANS[kind]
    found = finished(plan)
    assert found is not None
    before = min(found.facts, key=lambda one: one.length)
    with shipped.ignore_entries():
        now = attack_example(replace(plan, objectives=("constrained",), transfer=()), before.example)
    [after] = now.facts
    assert after == replace(before, confidence=after.confidence)
    assert after.confidence == pytest.approx(before.confidence, abs=1e-4)
    values = {(row.key, row.example): row.value for row in found.rows}
    compared = [row for row in now.rows if row.key.metric in ("rank_change", "class_kept", "constraint_kept", "fooled")]
    assert len(compared) == 4
    assert [row.value for row in compared] == pytest.approx([values[row.key, row.example] for row in compared], abs=0.2)


def test_both_kinds_are_computed_on_one_example_and_on_many(monkeypatch: pytest.MonkeyPatch) -> None:
    one: list[object] = []
    many: list[object] = []
    maps: list[object] = []
    monkeypatch.setattr(attack, "attack_many", lambda requests: one.extend(requests) or requests)
    monkeypatch.setattr(attack, "measure_transfer", lambda *task: maps.append(task))
    monkeypatch.setattr(run, "carry_out", many.append)
    assert make.compute_attacks() == make.attack_keys()
    assert one == [request for kind in make.ATTACK_PLANS for request in make.attack_requests(kind)]
    assert many == list(make.ATTACK_PLANS.values())
    assert maps == [
        (request, request, other, {}) for kind, others in make.ATTACK_OTHERS.items()
        for request in make.attack_requests(kind) for other in others
    ]  # fmt: skip
