"""Students taught in one pass come out as one by one."""

from __future__ import annotations

import pytest
import torch

from benchmarks.scaffold import VmappedStudents
from engine.errors import ExegesisError
from engine.scaffold.student import PROJECTIONS, head_count, projection
from engine.scaffold.training import StepRates, TeachingObjective, inner_step, outer_gradient
from tests.tiny import FAMILIES
from tests.unit.scaffold.making import base, fingerprint, student, taught

SEEDS = (0, 1, 2)
ROWS = ((0, 2, 4), (1, 3, 5), (4, 0, 2))
"""Of each student: the second's texts are longer than the others'."""


def check(kind: str, name: str, clip: float, regression: bool = False) -> None:
    """Two steps, so that the second starts from stacked weights that have moved apart."""
    model, outputs = base(kind), 1 if regression else 2
    split, held = taught(model, 6, outputs), taught(model, 6, outputs, seed=5)
    objective, rates = TeachingObjective(projection(name), 5.0, regression), StepRates(inner=0.05, clip=clip)
    count, draw = head_count(model), torch.Generator().manual_seed(1)
    phi_s, phi_t = (torch.randn(len(SEEDS), count, generator=draw, dtype=torch.float64) / 4 for _ in range(2))
    alone = [student(model, outputs, seed) for seed in SEEDS]
    own = [phi.clone().requires_grad_() for phi in phi_s]
    together = VmappedStudents([student(model, outputs, seed) for seed in SEEDS], phi_s, objective, rates)
    for turn in range(2):
        inner = [split.batch(rows, model) for rows in ROWS]
        outer = [held.batch(rows, model) for rows in ROWS[turn:] + ROWS[:turn]]
        found = together.step(phi_t, inner, outer)
        for at, one in enumerate(alone):
            loss = inner_step(one, own[at], inner[at], objective, rates, phi_t[at])
            gradient, outer_loss = outer_gradient(one, own[at], phi_t[at], inner[at], outer[at], objective, rates)
            assert torch.allclose(found.losses[at], loss, atol=1e-9)
            assert torch.allclose(found.outer_losses[at], outer_loss, atol=1e-9)
            assert gradient.any()
            assert torch.allclose(found.gradients[at], gradient, rtol=1e-7, atol=1e-12)
            assert torch.allclose(together.phi_s[at], own[at], atol=1e-10)
            for weight, value in one.learning.items():
                assert torch.allclose(together.weights[weight][at], value, atol=1e-10), weight


@pytest.mark.parametrize("kind", FAMILIES)
def test_every_family_of_texts(kind: str) -> None:
    check(kind, "sparsemax", clip=0.5)


@pytest.mark.parametrize("clip", [0.0, 0.5])
@pytest.mark.parametrize("name", PROJECTIONS)
def test_every_normalisation_clipped_and_not(name: str, clip: float) -> None:
    check("bert", name, clip)


def test_scores() -> None:
    check("bert", "softmax", clip=5.0, regression=True)


def test_the_students_that_are_given_stay_as_they_are() -> None:
    model = base("bert")
    given, split = [student(model, 2, seed) for seed in SEEDS], taught(model, 6)
    before = [list(fingerprint(one)) for one in given]
    phi = torch.full((len(SEEDS), 12), 1 / 12, dtype=torch.float64)
    batches = [split.batch(rows, model) for rows in ROWS]
    VmappedStudents(given, phi, TeachingObjective(projection("sparsemax"), 5.0), StepRates()).step(
        phi, batches, batches
    )
    assert [list(fingerprint(one)) for one in given] == before


def test_what_cannot_stand_side_by_side_is_refused() -> None:
    model, pictures = base("bert"), base("vit")
    phi, objective = torch.full((2, 12), 1 / 12, dtype=torch.float64), TeachingObjective(projection("sparsemax"), 5.0)
    split = taught(model, 6)
    uneven = [split.batch(rows, model) for rows in ((0, 1), (2,))]
    together = VmappedStudents([student(model), student(model)], phi, objective, StepRates())
    with pytest.raises(ExegesisError, match=r"batches: must have equally many rows, got \[1, 2\]"):
        together.step(phi, uneven, uneven)
    shown = [taught(pictures, 2).batch(range(2), pictures)] * 2
    with pytest.raises(ExegesisError, match="must be texts"):
        together.step(phi, shown, shown)
