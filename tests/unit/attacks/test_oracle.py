"""The batched attack against one plain loop, example by example, in double precision."""

from __future__ import annotations

import numpy as np
import pytest
import transformers

from engine.models.load import architecture
from tests.explaining import checkpoint, classifier
from tests.oracles.attack import Slow, rank_change
from tests.oracles.text import World
from tests.unit.attacks.making import TEXTS, asked, attacked

STEPS = 6
CASES = [
    ("bert", "gradient_l2", "unconstrained"),
    ("bert", "gradient_x_input", "constrained"),
    ("bert", "integrated_gradients", "unconstrained"),
    ("roberta", "integrated_gradients", "constrained"),
    ("gpt2", "gradient_x_input", "unconstrained"),
    ("t5", "gradient", "unconstrained"),
]
LOOSE = {"t5": 1e-4}
"""T5 takes its norms in single precision whatever the precision of the model."""


def world(family: str, text: str, target: int) -> World:
    folder = str(checkpoint(family))
    kind = architecture(classifier(family).adapter)
    module = kind.from_pretrained(folder, attn_implementation="eager").double().eval().requires_grad_(False)
    return World(family, module, transformers.AutoTokenizer.from_pretrained(folder), text, target, 0)


@pytest.mark.parametrize(("family", "method", "objective"), CASES)
def test_a_batch_is_attacked_as_one_plain_loop_would(family: str, method: str, objective: str) -> None:
    params = {"n_steps": 3, "quadrature": "riemann"} if method == "integrated_gradients" else {}
    requests = [asked(text, method, family, objective=objective, steps=STEPS, params=params) for text in TEXTS]
    for text, found in zip(TEXTS, attacked(requests), strict=True):
        target = found.provenance.target
        slow = Slow(world(family, text, target), method, objective == "constrained", epsilon=2, steps=STEPS).run()
        rtol, atol = LOOSE.get(family, 1e-7), LOOSE.get(family, 1e-9)
        np.testing.assert_allclose(found.trail.objective, slow.objectives, rtol=rtol, atol=atol)
        np.testing.assert_allclose(found.after, slow.scores, rtol=rtol, atol=atol)
        np.testing.assert_allclose(found.delta, slow.delta.numpy(), rtol=rtol, atol=atol)
        assert (found.best, found.steps) == (slow.step, slow.steps)
        assert found.prediction_after.probabilities[target] == pytest.approx(slow.probability, rel=1e-4)
        features = found.features
        before, after = found.before[features].tolist(), found.after[features].tolist()
        assert found.rank_change == rank_change(before, after, found.k)
