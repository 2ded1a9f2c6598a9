"""The outer gradient of eq. 8 and 9: against finite differences, and against differentiating twice."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional

from engine.scaffold.student import PROJECTIONS, Student, head_count, projection
from engine.scaffold.training import (
    StepRates,
    TeachingObjective,
    clip_gradients,
    inner_step,
    outer_gradient,
    student_loss,
    trainable,
)
from tests.oracles import scaffold as oracle
from tests.unit.scaffold.making import KINDS as ALL
from tests.unit.scaffold.making import base, batch, fingerprint, student

KINDS = ("bert", "gpt2", "electra", "t5", "vit")
CLIPS = {"not clipped": 0.0, "clipped": 0.5}
DIRECTIONS = 3
others = pytest.mark.slow(reason="each family with each normalization: they meet nowhere")
EACH = [
    (kind, name) if kind == KINDS[0] or name == "sparsemax" else pytest.param(kind, name, marks=others)
    for kind, name in itertools.product(KINDS, PROJECTIONS)
]
"""All normalizations on one family, all families by one normalization."""


def points(name: str, count: int) -> dict[str, Tensor]:
    """φ_T at its start, inside, and where some heads have exactly no weight."""
    draw = torch.Generator().manual_seed(3)
    near = 1 / count + 0.02 * torch.randn(count, generator=draw, dtype=torch.float64)
    far = 0.6 * torch.randn(count, generator=draw, dtype=torch.float64)
    weights = projection(name)(far)
    if name in ("sparsemax", "entmax15"):
        assert (weights == 0).any()
        assert (weights > 0).sum() > 1
    else:
        far[::2] = 0.0
    return {"interior": near, "boundary": far}


class World:
    """A student, its explainer and two batches; `loss(φ_T)` is what the outer step makes smaller."""

    def __init__(self, kind: str, name: str, clip: float, regression: bool = False, **objective: Any) -> None:
        model, outputs = base(kind), 1 if regression else 2
        self.student: Student = student(model, outputs)
        self.count = head_count(model)
        self.inner, self.outer = batch(model, 3, outputs), batch(model, 4, outputs, seed=5)
        self.objective = TeachingObjective(projection(name), 5.0, regression, **objective)
        self.rates = StepRates(inner=0.05, clip=clip)
        draw = torch.Generator().manual_seed(1)
        self.phi_s = 1 / self.count + 0.05 * torch.randn(self.count, generator=draw, dtype=torch.float64)

    def gradient(self, phi_t: Tensor) -> Tensor:
        return outer_gradient(self.student, self.phi_s, phi_t, self.inner, self.outer, self.objective, self.rates)[0]

    def loss(self, phi_t: Tensor, again: bool = False) -> Tensor:
        return oracle.pilot_loss(
            self.student, self._inner, self._outer, phi_t, self.rates.inner, self.rates.clip, again
        )

    def _inner(self, weights: oracle.Weights, phi_t: Tensor | None) -> Tensor:
        said = functional_call(self.student, dict(weights), (self.inner, True), tie_weights=False)
        taught, ours = (self._explained(p, h) for p, h in ((phi_t, self.inner.heads), (self.phi_s, said.heads)))
        there = self.inner.features
        apart = sum((t[f] * (t[f].log() - s[f].log())).sum() for t, s, f in zip(taught, ours, there, strict=True))
        return self._simulated(said.logits, self.inner) + self.objective.beta * apart / len(there)

    def _outer(self, weights: oracle.Weights, _: Tensor | None) -> Tensor:
        said = functional_call(self.student, dict(weights), (self.outer,), tie_weights=False)
        return self._simulated(said.logits, self.outer)

    def _explained(self, phi: Tensor | None, heads: Tensor | None) -> Tensor:
        assert phi is not None
        assert heads is not None
        scores = torch.einsum("h,bhk->bk", self.objective.normalize(phi), heads)
        return torch.softmax(scores.masked_fill(~self.inner.features, -1e300), -1)

    def _simulated(self, logits: Tensor, there: Any) -> Tensor:
        if self.objective.regression:
            return ((logits - there.teacher_logits) ** 2).mean()
        chosen = logits.log_softmax(-1)[torch.arange(len(logits)), there.teacher_logits.argmax(-1)]
        return -chosen.mean()

    def check(self, phi_t: Tensor) -> None:
        """Against both; a gradient that is all zeros would say nothing."""
        found = self.gradient(phi_t)
        assert found.abs().max() > 1e-9
        leaf = phi_t.clone().requires_grad_()
        (twice,) = torch.autograd.grad(self.loss(leaf, again=True), leaf)
        assert (found - twice).norm() <= 1e-9 * twice.norm()
        draw = torch.Generator().manual_seed(2)
        for _ in range(DIRECTIONS):
            direction = torch.randn(self.count, generator=draw, dtype=torch.float64)
            wanted = oracle.central(self.loss, phi_t, direction)
            assert (found @ direction).item() == pytest.approx(wanted, rel=1e-4, abs=1e-4 * found.norm().item())


@pytest.mark.parametrize("clip", CLIPS.values(), ids=CLIPS)
@pytest.mark.parametrize("where", ["interior", "boundary"])
@pytest.mark.parametrize(("kind", "name"), EACH)
def test_the_outer_gradient_is_exact(kind: str, name: str, where: str, clip: float) -> None:
    world = World(kind, name, clip)
    world.check(points(name, world.count)[where])


@pytest.mark.parametrize("kind", [kind for kind in ALL if kind not in KINDS])
def test_the_outer_gradient_is_exact_for_every_other_family(kind: str) -> None:
    world = World(kind, "sparsemax", 0.5)
    world.check(points("sparsemax", world.count)["boundary"])


@pytest.mark.parametrize("clip", CLIPS.values(), ids=CLIPS)
@pytest.mark.parametrize("name", PROJECTIONS)
def test_the_outer_gradient_is_exact_for_a_score(name: str, clip: float) -> None:
    world = World("bert", name, clip, regression=True)
    world.check(points(name, world.count)["boundary"])


def test_the_two_clips_are_two_cases() -> None:
    factors = {}
    for name, clip in CLIPS.items():
        world = World("bert", "sparsemax", clip)
        loss = student_loss(world.student, world.phi_s, world.inner, world.objective, world.phi_s)
        factors[name] = clip_gradients(torch.autograd.grad(loss, trainable(world.student)), clip).factor.item()
    assert factors["not clipped"] == 1
    assert factors["clipped"] < 0.9


def test_heads_without_weight_get_no_gradient() -> None:
    world = World("bert", "sparsemax", 5.0)
    phi = points("sparsemax", world.count)["boundary"]
    off = projection("sparsemax")(phi) == 0
    assert not world.gradient(phi)[off].any()


@pytest.mark.parametrize("kind", ALL)
def test_the_student_is_left_as_it_was(kind: str) -> None:
    world = World(kind, "sparsemax", 0.5)
    before, phi_s = list(fingerprint(world.student)), world.phi_s.clone()
    same = [id(parameter) for parameter in world.student.parameters()]
    world.gradient(points("sparsemax", world.count)["interior"])
    assert list(fingerprint(world.student)) == before
    assert [id(parameter) for parameter in world.student.parameters()] == same
    assert torch.equal(world.phi_s, phi_s)
    assert all(parameter.grad is None for parameter in world.student.parameters())


def test_an_inner_step_is_one_of_plain_descent_on_student_and_explainer() -> None:
    world, phi_t = World("electra", "softmax", 0.5), torch.linspace(-1, 1, 12, dtype=torch.float64)
    phi_s = world.phi_s.clone().requires_grad_()
    weights = [*trainable(world.student), phi_s]
    loss = student_loss(world.student, phi_s, world.inner, world.objective, phi_t)
    moved = [tensor.detach() for tensor in oracle.stepped(weights, loss, 0.05, 0.5, again=False)]
    returned = inner_step(world.student, phi_s, world.inner, world.objective, world.rates, phi_t)
    assert returned.item() == pytest.approx(loss.item(), abs=1e-12)
    for now, then in zip([*trainable(world.student), phi_s], moved, strict=True):
        assert torch.allclose(now, then, atol=1e-14)


def test_the_loss_of_a_student_is_that_of_equation_3() -> None:
    world, phi_t = World("gpt2", "sparsemax", 0.0), points("sparsemax", 12)["boundary"]
    named = dict(world.student.named_parameters())
    ours = student_loss(world.student, world.phi_s, world.inner, world.objective, phi_t)
    assert ours.item() == pytest.approx(world._inner(named, phi_t).item(), abs=1e-10)
    alone = student_loss(world.student, None, world.inner, world.objective, None)
    assert alone.item() == pytest.approx(world._simulated(world.student(world.inner).logits, world.inner).item())


def test_static_maps_are_shown_as_they_are() -> None:
    world = World("bert", "sparsemax", 0.0)
    assert world.objective.target_maps(world.inner, None) is world.inner.maps
    loss = student_loss(world.student, world.phi_s, world.inner, world.objective, None)
    assert loss > student_loss(world.student, None, world.inner, world.objective, None)


def test_soft_targets_are_the_probabilities_of_the_teacher() -> None:
    world = World("bert", "sparsemax", 0.0, soft=True)
    logits = world.student(world.inner).logits
    wanted = functional.cross_entropy(logits, world.inner.teacher_logits.softmax(-1))
    assert world.objective.simulation(logits, world.inner).item() == pytest.approx(wanted.item())
    hard = TeachingObjective(world.objective.normalize, 5.0).simulation(logits, world.inner)
    assert hard.item() != pytest.approx(wanted.item(), abs=1e-3)
