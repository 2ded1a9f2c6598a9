"""The batched attack against one plain loop, example by example, in double precision."""

from __future__ import annotations

import numpy as np
import pytest
import transformers

from engine.models.loading import classifier_class
from tests.explaining import checkpoint, classifier
from tests.oracles.attack import Slow, rank_change
from tests.oracles.text import World
from tests.unit.attacks.making import TEXTS, asked, attacked

STEPS = 6
CASES = [
    ("bert", "gradient_l2", "unconstrained", "probability", 1),
    ("bert", "gradient_x_input", "constrained", "probability", 3),
    ("bert", "gradient_x_input", "constrained", "mixed", 1),
    ("bert", "integrated_gradients", "unconstrained", "logit", 2),
    ("roberta", "integrated_gradients", "constrained", "probability", 1),
    ("roberta", "gradient_l2", "constrained", "logit", 3),
    ("gpt2", "gradient_x_input", "unconstrained", "mixed", 3),
    ("t5", "gradient", "unconstrained", "logit", 1),
]
LOOSE = {"t5": 1e-4}
"""T5 takes its norms in single precision whatever the precision of the model."""


def world(family: str, text: str, target: int) -> World:
    folder = str(checkpoint(family))
    kind = classifier_class(classifier(family).adapter)
    module = kind.from_pretrained(folder, attn_implementation="eager").double().eval().requires_grad_(False)
    return World(family, module, transformers.AutoTokenizer.from_pretrained(folder), text, target, 0)


@pytest.mark.parametrize(("family", "method", "objective", "quantity", "starts"), CASES)
def test_a_batch_is_attacked_as_one_plain_loop_would(
    family: str, method: str, objective: str, quantity: str, starts: int
) -> None:
    params = {"n_steps": 3, "quadrature": "riemann"} if method == "integrated_gradients" else {}
    given = {"objective": objective, "quantity": quantity, "starts": starts, "steps": STEPS}
    requests = [asked(text, method, family, params=params, **given) for text in TEXTS]
    for text, found in zip(TEXTS, attacked(requests), strict=True):
        target = found.provenance.target
        slow = Slow(
            world(family, text, target), method, objective == "constrained", epsilon=2, steps=STEPS, quantity=quantity,
            starts=starts,
        ).run()  # fmt: skip
        rtol, atol = LOOSE.get(family, 1e-7), LOOSE.get(family, 1e-9)
        np.testing.assert_allclose(found.trajectory.objective, slow.objectives, rtol=rtol, atol=atol)
        np.testing.assert_allclose(found.after, slow.scores, rtol=rtol, atol=atol)
        np.testing.assert_allclose(found.delta, slow.delta.numpy(), rtol=rtol, atol=atol)
        assert (found.start, found.best, found.steps) == (slow.start, slow.step, slow.steps)
        assert found.prediction_after.probabilities[target] == pytest.approx(slow.probability, rel=1e-4)
        features = found.features
        before, after = found.before[features].tolist(), found.after[features].tolist()
        assert found.rank_change == rank_change(before, after, found.k)
