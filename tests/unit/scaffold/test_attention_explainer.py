"""The attention explainer over padded batches, against loops and the registered method; and the projections from
coefficients to head weights, against the `entmax` package, twice differentiable everywhere they are used.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable

import entmax
import numpy as np
import pytest
import torch
from torch import Tensor

from engine.errors import UsageError
from engine.models.attention import capture_attention
from engine.scaffold.plan import NORMALIZATIONS
from engine.scaffold.result import head_weights
from engine.scaffold.student import (
    PROJECTIONS,
    divergence,
    entmax15,
    explanation,
    head_count,
    log_explanation,
    mean_logits,
    projection,
    sparsemax,
)
from engine.task import Task, TaskItem
from tests.explaining import run
from tests.oracles import scaffold as oracle
from tests.project import ROOT
from tests.unit.scaffold.making import KINDS, base, examples_for


def random_logits(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


LENGTHS = (5, 3, 1)
VISIBLE = torch.tensor([[True] * n + [False] * (5 - n) for n in LENGTHS])


@pytest.mark.parametrize("causal", [False, True])
def test_mean_logits_are_those_of_the_loop_and_padding_counts_for_nothing(causal: bool) -> None:
    logits = [random_logits(3, 2, 5, 5, seed=layer) for layer in range(3)]
    found = mean_logits(logits, VISIBLE, causal)
    assert found.shape == (3, 6, 5)
    for row, wanted in enumerate(oracle.mean_logits(logits, LENGTHS, causal)):
        assert np.allclose(found[row, :, : LENGTHS[row]], wanted, atol=1e-12)
        assert not found[row, :, LENGTHS[row] :].any()


def test_causality_matters() -> None:
    logits = [random_logits(3, 2, 5, 5)]
    assert not torch.allclose(mean_logits(logits, VISIBLE, True), mean_logits(logits, VISIBLE, False))


def test_an_explanation_is_that_of_the_loop_and_sums_to_one_on_features() -> None:
    weights, heads = random_logits(6, seed=1), random_logits(3, 6, 5, seed=2)
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
    predictions = model.predictions(answers, examples)
    items = [TaskItem(e, p, p.index, 0) for e, p in zip(examples, predictions, strict=True)]
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


PEERS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[..., Tensor]]] = {
    "sparsemax": (sparsemax, entmax.sparsemax),
    "entmax15": (entmax15, entmax.entmax15),
}
SHAPES = ((1,), (2,), (7,), (72,), (5, 24), (2, 3, 16))
SPREADS = (0.02, 1.0, 30.0)


def random_phi(shape: tuple[int, ...], spread: float, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * spread


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", PEERS)
def test_values_and_first_gradients_are_those_of_the_package(name: str, shape: tuple[int, ...], spread: float) -> None:
    ours, theirs = PEERS[name]
    phi, wanted = (random_phi(shape, spread).requires_grad_() for _ in range(2))
    weights, peers = ours(phi), theirs(wanted, dim=-1)
    assert torch.allclose(weights, peers, atol=1e-12)
    direction = random_phi(shape, 1.0, seed=1)
    (slope,), (peers_slope,) = (
        torch.autograd.grad((values * direction).sum(), leaf) for values, leaf in ((weights, phi), (peers, wanted))
    )
    assert torch.allclose(slope, peers_slope, atol=1e-10)


@pytest.mark.parametrize("name", PEERS)
def test_weights_are_shares_whatever_all_coefficients_are_moved_by(name: str) -> None:
    near = random_phi((24,), 0.5).float()
    for moved in (-3e4, 0.0, 3e4):
        weights = PEERS[name][0](near + moved)
        assert weights.sum().item() == pytest.approx(1, abs=1e-5)
        assert (weights >= 0).all()
        assert torch.allclose(weights, PEERS[name][0]((near + moved).double()).float(), atol=1e-5)


INTERIOR = torch.tensor([0.21, 0.25, 0.3, 0.24], dtype=torch.float64)
BOUNDARY = torch.tensor([1.9, -0.4, 1.2, 1.5, -2.0, 1.3], dtype=torch.float64)
CORNER = torch.tensor([9.0, 0.0, -1.0], dtype=torch.float64)


@pytest.mark.parametrize("phi", [INTERIOR, BOUNDARY, CORNER], ids=["interior", "boundary", "corner"])
@pytest.mark.parametrize("name", PROJECTIONS)
def test_first_and_second_derivatives_are_exact(name: str, phi: Tensor) -> None:
    function, leaf = projection(name), phi.clone().requires_grad_()
    assert torch.autograd.gradcheck(function, leaf)
    assert torch.autograd.gradgradcheck(function, leaf)


@pytest.mark.parametrize("phi", [BOUNDARY, CORNER], ids=["boundary", "corner"])
@pytest.mark.parametrize("name", PEERS)
def test_heads_without_weight_have_no_derivatives(name: str, phi: Tensor) -> None:
    function, off = PEERS[name][0], PEERS[name][0](phi) == 0
    assert off.any()
    first = torch.autograd.functional.jacobian(function, phi)
    assert not first[off].any()
    assert not first[:, off].any()
    second = torch.autograd.functional.hessian(lambda x: (function(x) ** 2).sum(), phi)
    assert torch.isfinite(second).all()
    assert not second[off].any()


@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("phi", [torch.full((6,), 1 / 6), torch.tensor([1.0, 1.0, 0.0, 0.0]), torch.zeros(1)])
def test_ties_share_alike_and_all_derivatives_are_finite(name: str, phi: Tensor) -> None:
    leaf = phi.double().requires_grad_()
    weights = PEERS[name][0](leaf)
    for value in phi.unique():
        assert weights[phi == value].unique().numel() == 1
    (first,) = torch.autograd.grad((weights**2).sum(), leaf, create_graph=True)
    second = torch.autograd.functional.hessian(lambda x: (PEERS[name][0](x) ** 3).sum(), leaf.detach())
    assert torch.isfinite(first).all()
    assert torch.isfinite(second).all()


def test_a_head_exactly_at_the_threshold_has_no_weight_and_finite_derivatives() -> None:
    phi = torch.tensor([1.0, 0.0], dtype=torch.float64)
    assert sparsemax(phi).tolist() == [1.0, 0.0]
    second = torch.autograd.functional.hessian(lambda x: (sparsemax(x) ** 2).sum(), phi)
    assert torch.isfinite(second).all()


def test_none_leaves_coefficients_as_they_are() -> None:
    assert projection("none")(BOUNDARY) is BOUNDARY


def test_forward_mode_agrees_with_reverse_mode() -> None:
    for name in PROJECTIONS:
        function, direction = projection(name), random_phi((6,), 1.0)
        moved = torch.func.jvp(function, (BOUNDARY,), (direction,))[1]
        assert torch.allclose(moved, torch.autograd.functional.jacobian(function, BOUNDARY) @ direction, atol=1e-12)


def test_an_unknown_name_is_told_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"normalisation: unknown name 'sparsemx'.*entmax15, none, softmax, sparsemax"):
        projection("sparsemx")


HEAVY = {"torch", "transformers", "peft", "captum"}
PAGE = "components.scaffold.page", "components.scaffold.sections", "engine.scaffold.experiment", "engine.models.catalog"


@pytest.mark.parametrize("name", NORMALIZATIONS)
@pytest.mark.parametrize("scale", [0.0, 0.01, 0.3, 2.0, 50.0])
def test_both_give_the_same_weights(name: str, scale: float) -> None:
    for seed in range(20):
        phi = 0.1 + scale * np.random.default_rng(seed).standard_normal(24)
        wanted = projection(name)(torch.tensor(phi, dtype=torch.float64)).numpy()
        np.testing.assert_allclose(head_weights(phi, name), wanted, atol=1e-12)


def test_by_hand() -> None:
    np.testing.assert_allclose(head_weights(np.array([0.75, 0.25, -1.0]), "sparsemax"), [0.75, 0.25, 0.0])
    np.testing.assert_allclose(head_weights(np.array([3.0, 1.0]), "sparsemax"), [1.0, 0.0])


def test_an_unknown_projection_is_refused() -> None:
    with pytest.raises(UsageError, match="normalisation: unknown name 'sparse'"):
        head_weights(np.zeros(3), "sparse")


def test_the_page_imports_nothing_that_runs_models() -> None:
    # The background import of another run would meet such an import half way.
    code = f"import sys, {', '.join(PAGE)}; print(sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=240
    )
    assert done.stdout.strip() == "[]"
