"""The attention explainer over padded batches: against loops, and against the registered method."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from engine.models.attention import capture_attention
from engine.scaffold.explaining import divergence, explanation, log_explanation, mean_logits
from engine.scaffold.student import head_count
from engine.task import Item, Task
from tests.explaining import run
from tests.oracles import scaffold as oracle
from tests.unit.scaffold.making import KINDS, base, examples_for


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


LENGTHS = (5, 3, 1)
VISIBLE = torch.tensor([[True] * n + [False] * (5 - n) for n in LENGTHS])


@pytest.mark.parametrize("causal", [False, True])
def test_mean_logits_are_those_of_the_loop_and_padding_counts_for_nothing(causal: bool) -> None:
    logits = [drawn(3, 2, 5, 5, seed=layer) for layer in range(3)]
    found = mean_logits(logits, VISIBLE, causal)
    assert found.shape == (3, 6, 5)
    for row, wanted in enumerate(oracle.mean_logits(logits, LENGTHS, causal)):
        assert np.allclose(found[row, :, : LENGTHS[row]], wanted, atol=1e-12)
        assert not found[row, :, LENGTHS[row] :].any()


def test_causality_matters() -> None:
    logits = [drawn(3, 2, 5, 5)]
    assert not torch.allclose(mean_logits(logits, VISIBLE, True), mean_logits(logits, VISIBLE, False))


def test_an_explanation_is_that_of_the_loop_and_sums_to_one_on_features() -> None:
    weights, heads = drawn(6, seed=1), drawn(3, 6, 5, seed=2)
    features = VISIBLE.clone()
    features[:2, 0] = False
    found = explanation(weights, heads, features)
    for row in range(3):
        wanted = oracle.explanation(weights.tolist(), heads[row].tolist(), features[row].tolist())
        assert np.allclose(found[row], wanted, atol=1e-12)
    assert torch.allclose(found.sum(1), torch.ones(3, dtype=torch.float64))
    assert not found[~features].any()
    logs = log_explanation(weights, heads, features)
    assert torch.allclose(logs[features].exp(), found[features])
    assert not logs[~features].any()


@pytest.mark.parametrize("kind", KINDS)
def test_uniform_weights_are_the_registered_method(kind: str) -> None:
    """On a padded batch, where the method reads one example at a time."""
    model = base(kind)
    examples, features = examples_for(model, 4), None
    batch = model.collate(examples)
    with torch.no_grad(), capture_attention(model.module) as recorder:
        answers = model.logits(batch)
    heads = mean_logits(recorder.logits, batch.visible, model.adapter.causal)
    features = torch.zeros_like(batch.visible)
    for row, example in enumerate(examples):
        features[row, : len(example)] = torch.from_numpy(~example.special)
    count = head_count(model)
    found = explanation(torch.full((count,), 1 / count, dtype=torch.float64), heads, features)
    items = [Item(e, p, p.index, 0) for e, p in zip(examples, model.predictions(answers), strict=True)]
    for row, wanted in enumerate(run("attention_logits", Task(model, items))):
        assert np.allclose(found[row, : len(wanted.scores)], wanted.scores, atol=1e-9)


def test_divergence_by_hand() -> None:
    teacher = torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]], dtype=torch.float64)
    student = torch.tensor([[0.25, 0.75, 0.0], [0.5, 0.25, 0.25]], dtype=torch.float64)
    logs = torch.where(student > 0, student.clamp(min=1e-300).log(), 0.0)
    wanted = (0.5 * math.log(2) + 0.5 * math.log(2 / 3) + math.log(2)) / 2
    assert divergence(teacher, logs).item() == pytest.approx(wanted)
    assert divergence(student, logs).item() == pytest.approx(0, abs=1e-12)


def test_gradients_are_finite_where_a_feature_has_next_to_no_share() -> None:
    heads = torch.tensor([[[0.0, 2000.0, 0.0]]], dtype=torch.float64).requires_grad_()
    features = torch.tensor([[True, True, False]])
    one = torch.ones(1, dtype=torch.float64)
    shown = torch.tensor([[0.0, 1.0, 0.0]], dtype=torch.float64)
    loss = divergence(shown, log_explanation(one, heads, features))
    assert loss.item() == pytest.approx(0, abs=1e-12)
    (gradient,) = torch.autograd.grad(loss + explanation(one, heads, features)[0, 0], heads)
    assert torch.isfinite(gradient).all()
