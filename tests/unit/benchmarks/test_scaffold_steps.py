"""The benchmark of teaching: both sides run on the same rows, and what is judged."""

from __future__ import annotations

import dataclasses
from unittest import mock

import pytest
import torch

from benchmarks import scaffold
from engine.scaffold.training_sets import TrainingSets
from tests.unit.scaffold.making import base, course


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> TrainingSets:
    monkeypatch.setattr(scaffold, "TRAIN", 8)
    monkeypatch.setattr(scaffold, "RECIPE", dataclasses.replace(scaffold.RECIPE, batch_size=4))
    return course(base("bert", "float32"))


def test_a_step_needs_the_passes_of_its_bare_side(small: TrainingSets) -> None:
    """Three back; the one in forward mode is counted by the attention of its layers."""
    steps = scaffold.build_steps(small)
    for by in ("bare", "exegesis"):
        with mock.patch.object(torch.autograd, "grad", wraps=torch.autograd.grad) as back:
            steps[by]()
        # Ours has one more, of a few numbers: from the slopes of the explanations to the coefficients of the heads.
        assert back.call_count == 3 + (by == "exegesis")


def test_seeds_are_timed_in_both_ways(small: TrainingSets) -> None:
    seeds = scaffold.Seeds(small)
    before = [weight.clone() for weight in seeds.together.weights.values()]
    for step in seeds.steps().values():
        step()
    assert any(not torch.equal(a, b) for a, b in zip(before, seeds.together.weights.values(), strict=True))
    for at, one in enumerate(seeds.alone):
        for name, weight in one.student.learning.items():
            assert torch.allclose(seeds.together.weights[name][at], weight, atol=1e-5), name


def test_what_is_judged() -> None:
    row = {"students of": "somebody", "by": "exegesis", "ratio": 1.21}
    [slow] = scaffold.limits(row)
    assert (slow.kept, slow.figure, slow.most) == (False, 1.21, 1.2)
    assert scaffold.limits(row | {"by": "bare"}) == scaffold.limits(row | {"by": "together"}) == []
