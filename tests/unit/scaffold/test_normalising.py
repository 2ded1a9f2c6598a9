"""From coefficients to weights: against the `entmax` package, and twice differentiable everywhere it is used."""

from __future__ import annotations

from collections.abc import Callable

import entmax
import pytest
import torch
from torch import Tensor

from engine.errors import UsageError
from engine.scaffold.normalising import NORMALISATIONS, entmax15, normalisation, sparsemax

PEERS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[..., Tensor]]] = {
    "sparsemax": (sparsemax, entmax.sparsemax),
    "entmax15": (entmax15, entmax.entmax15),
}
SHAPES = ((1,), (2,), (7,), (72,), (5, 24), (2, 3, 16))
SPREADS = (0.02, 1.0, 30.0)


def drawn(shape: tuple[int, ...], spread: float, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * spread


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", PEERS)
def test_values_and_first_gradients_are_those_of_the_package(name: str, shape: tuple[int, ...], spread: float) -> None:
    ours, theirs = PEERS[name]
    phi, wanted = (drawn(shape, spread).requires_grad_() for _ in range(2))
    weights, peers = ours(phi), theirs(wanted, dim=-1)
    assert torch.allclose(weights, peers, atol=1e-12)
    direction = drawn(shape, 1.0, seed=1)
    (slope,), (peers_slope,) = (
        torch.autograd.grad((values * direction).sum(), leaf) for values, leaf in ((weights, phi), (peers, wanted))
    )
    assert torch.allclose(slope, peers_slope, atol=1e-10)


@pytest.mark.parametrize("name", PEERS)
def test_weights_are_shares_whatever_all_coefficients_are_moved_by(name: str) -> None:
    near = drawn((24,), 0.5).float()
    for moved in (-3e4, 0.0, 3e4):
        weights = PEERS[name][0](near + moved)
        assert weights.sum().item() == pytest.approx(1, abs=1e-5)
        assert (weights >= 0).all()
        assert torch.allclose(weights, PEERS[name][0]((near + moved).double()).float(), atol=1e-5)


INTERIOR = torch.tensor([0.21, 0.25, 0.3, 0.24], dtype=torch.float64)
BOUNDARY = torch.tensor([1.9, -0.4, 1.2, 1.5, -2.0, 1.3], dtype=torch.float64)
CORNER = torch.tensor([9.0, 0.0, -1.0], dtype=torch.float64)


@pytest.mark.parametrize("phi", [INTERIOR, BOUNDARY, CORNER], ids=["interior", "boundary", "corner"])
@pytest.mark.parametrize("name", NORMALISATIONS)
def test_first_and_second_derivatives_are_exact(name: str, phi: Tensor) -> None:
    function, leaf = normalisation(name), phi.clone().requires_grad_()
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
    assert normalisation("none")(BOUNDARY) is BOUNDARY


def test_forward_mode_agrees_with_reverse_mode() -> None:
    for name in NORMALISATIONS:
        function, direction = normalisation(name), drawn((6,), 1.0)
        moved = torch.func.jvp(function, (BOUNDARY,), (direction,))[1]
        assert torch.allclose(moved, torch.autograd.functional.jacobian(function, BOUNDARY) @ direction, atol=1e-12)


def test_an_unknown_name_is_told_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"normalisation: unknown name 'sparsemx'.*entmax15, none, softmax, sparsemax"):
        normalisation("sparsemx")
