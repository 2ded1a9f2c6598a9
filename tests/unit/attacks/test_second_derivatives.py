"""The gradient of the objective against finite differences of the objective, in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from engine.attacks.plan import AttackParams
from engine.attacks.saliency import Objective, SaliencyMapper, resolve_params
from engine.models.attention import twice_differentiable
from tests.explaining import classifier, task_for
from tests.unit.attacks.making import TEXTS
from tests.unit.vision.tiny_vit import blobs, vit

STEP = 1e-5
TEXT = [
    ("bert", "gradient_l2", "probability"),
    ("bert", "gradient_x_input", "probability"),
    ("bert", "integrated_gradients", "logit"),
    ("electra", "gradient_x_input", "mixed"),
    ("distilbert", "gradient_x_input", "logit"),
    ("xlm-roberta", "gradient_l2", "logit"),
    ("gpt2", "integrated_gradients", "probability"),
]
PICTURE = [
    ("gradient", "pixels", "logit"),
    ("gradient_x_input", "pixels", "probability"),
    ("gradient_l2", "embedding", "mixed"),
    ("integrated_gradients", "pixels", "probability"),
]


def given_to(method: str) -> dict[str, int]:
    return {"n_steps": 4} if method == "integrated_gradients" else {}


def _agree(model: Any, given: list[Any], method: str, place: str, quantity: str) -> None:
    params = AttackParams(place=place, epsilon=0.1, objective="constrained", quantity=quantity, starts=1)
    items = task_for(model, given).items
    everyone = np.arange(len(items))
    with twice_differentiable(model.module):
        mapper = SaliencyMapper(
            model, items, method, resolve_params(method, model.kind, given_to(method), params), params
        )
        start = mapper.space.clip(30 * mapper.space.draw_starts(items), torch.arange(len(items)))
        here = mapper.evaluate(torch.zeros_like(start), everyone)
        objective = Objective(here.scores > here.scores.median(), here.answer, 1.3, 20)
        found = mapper.evaluate(start, everyone, objective).gradient
        assert found is not None
        way = torch.from_numpy(np.random.default_rng(0).normal(size=tuple(start.shape))) * (mapper.space.high > 0)
        ends = [
            objective.value(mapper.evaluate(start + sign * STEP * way, everyone), torch.arange(len(items)))
            for sign in (1, -1)
        ]
    measured = (ends[0] - ends[1]) / (2 * STEP)
    np.testing.assert_allclose((found * way).sum((1, 2)), measured, rtol=1e-5, atol=1e-7)
    assert measured.abs().min() > 1e-4, "something to agree on"


@pytest.mark.parametrize(("family", "method", "quantity"), TEXT)
def test_of_text_models(family: str, method: str, quantity: str) -> None:
    _agree(classifier(family), list(TEXTS), method, "embedding", quantity)


@pytest.mark.parametrize(("method", "place", "quantity"), PICTURE)
def test_of_pictures(method: str, place: str, quantity: str) -> None:
    _agree(vit(), [blobs(0), blobs(1)], method, place, quantity)


def test_a_map_of_zeros_has_a_slope_of_zeros() -> None:
    """Where torch's own norm would have none."""
    from engine.attacks.saliency import _length

    zero = torch.zeros(2, 3, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(_length(zero, zero).sum(), zero)
    assert not slope.any()
    some = torch.tensor([[3.0, 4.0]], dtype=torch.float64)
    assert _length(some, some).tolist() == [5.0]
