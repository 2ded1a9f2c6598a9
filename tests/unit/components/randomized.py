"""A hand-made finding for the tests of the Randomization page: two blocks, two seeds, three examples of a text."""

from __future__ import annotations

import numpy as np

from engine.randomization.plan import RandomizationPlan
from engine.randomization.result import FINE, MEASURES, ModelRandomization, stages_of

METHODS = ("gradient_x_input", "gradient")
FLAT = "its original map is constant, so it has no ranking"
PLAN = RandomizationPlan(("model-a",), "reviews", METHODS, examples=3, seeds=2)
STAGES = stages_of(PLAN, 2)
EXAMPLES = (4, 1, 9)


def found(**more: object) -> ModelRandomization:
    """Input x gradient: rho of stage s, seed k and the n-th example is 0.8 - 0.2 s + 0.1 k - 0.1 n.

    The plain gradient never has an order; the other class is predicted at the last stage of each mode.
    """
    company = PLAN.methods_with_baselines
    shape = len(STAGES), 2, len(company), len(MEASURES), len(EXAMPLES)
    stage, seed, example = np.meshgrid(np.arange(len(STAGES)), np.arange(2), np.arange(3), indexing="ij")
    values = np.full(shape, np.nan)
    values[:, :, 0, 0] = 0.8 - 0.2 * stage + 0.1 * seed - 0.1 * example
    values[:, :, 2, :3] = 0.0
    why = np.full((len(STAGES), 2, len(company), 3), FINE)
    why[:, :, 1] = 0
    after = np.full((len(STAGES), 2, 3), 0.6)
    changed = np.zeros(after.shape, dtype=bool)
    changed[[1, 3]] = True
    given: dict[str, object] = {
        "model": "model-a", "dataset": "reviews", "stages": STAGES, "seeds": (0, 1), "methods": company,
        "examples": EXAMPLES, "targets": ("positive",) * 3, "likeness": values, "why": why, "reasons": (FLAT,),
        "before": np.array([0.9, 0.8, 0.7]), "after": after, "changed": changed, "failed": {}, "regression": False,
        "complete": True,
    }  # fmt: skip
    return ModelRandomization(**(given | more))  # type: ignore[arg-type]
