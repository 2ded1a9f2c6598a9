from __future__ import annotations

import random

import pytest
import torch

from engine.training.loop import adamw, plan_batches, warmup_linear


def test_the_learning_rate_follows_the_thesis_by_hand() -> None:
    # 100 steps, 6% of them rising: sixths up to 1, then down by 1/94 a step.
    factors = [warmup_linear(step, 100, 0.06) for step in range(101)]
    assert factors[:6] == pytest.approx([1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6, 1.0])
    assert factors[6] == pytest.approx(94 / 94)
    assert factors[53] == pytest.approx(47 / 94)
    assert factors[99] == pytest.approx(1 / 94)
    assert factors[100] == 0.0


def test_without_warm_up_it_only_falls() -> None:
    assert [warmup_linear(step, 4, 0.0) for step in range(5)] == [1.0, 0.75, 0.5, 0.25, 0.0]


def test_a_short_run_still_has_one_warm_up_step_and_never_divides_by_zero() -> None:
    assert [warmup_linear(step, 2, 0.06) for step in range(2)] == [1.0, 1.0]
    assert warmup_linear(0, 1, 1.0) == 1.0


def test_only_matrices_decay() -> None:
    layer = torch.nn.Linear(3, 2)
    optimizer = adamw(layer.named_parameters(), 0.1, 0.5)
    decays = {tuple(p.shape): g["weight_decay"] for g in optimizer.param_groups for p in g["params"]}
    assert decays == {(2, 3): 0.5, (2,): 0.0}


def test_frozen_weights_are_left_out() -> None:
    layer = torch.nn.Linear(3, 2)
    layer.weight.requires_grad_(False)
    assert [len(g["params"]) for g in adamw(layer.named_parameters(), 0.1, 0.5).param_groups] == [1]


def test_each_example_comes_once_an_epoch_in_an_order_of_its_own() -> None:
    lengths = [random.Random(0).randint(3, 60) for _ in range(500)]
    first, second = plan_batches(lengths, 16, 0, 0), plan_batches(lengths, 16, 0, 1)
    assert sorted(i for batch in first for i in batch) == list(range(500))
    assert first != second
    assert first == plan_batches(lengths, 16, 0, 0)
    assert [len(b) for b in first].count(16) == 31


def test_batches_by_length_pad_little() -> None:
    draw = random.Random(1)
    lengths = [draw.randint(3, 60) for _ in range(2_000)]
    batches = plan_batches(lengths, 16, 0, 0)
    padded = sum(max(lengths[i] for i in b) * len(b) for b in batches)
    assert padded < 1.06 * sum(lengths)
