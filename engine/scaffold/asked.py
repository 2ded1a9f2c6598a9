"""What finished explainers are asked about: examples of a data set, and the learned explainer among them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from engine import runtime
from engine.data.sources import ExampleSource, load_source
from engine.errors import ExegesisError, not_allowed
from engine.evaluation.sample import drawn
from engine.input_kinds import kind_of_model
from engine.models import catalog
from engine.scaffold.examples import part_of
from engine.scaffold.plan import Plan
from engine.scaffold.result import Outcome
from engine.scaffold.splits import splits_of
from engine.scaffold.weighing import weights_of

EXAMPLES = 50
"""Of a data set, unless told otherwise."""


@dataclass(frozen=True, eq=False)
class Learned:
    """A learned explainer: its coefficients, the first layer's heads first, and how they become weights."""

    phi: Float[np.ndarray, "head"]
    normalisation: str = "sparsemax"

    @property
    def weights(self) -> Float[np.ndarray, "head"]:
        """λ, in double precision. Errors: a normalisation that is not known."""
        return weights_of(self.phi, self.normalisation)

    def as_key(self) -> list[str]:
        """What tells it from every other, for a cache key."""
        numbers = np.ascontiguousarray(self.phi, dtype="<f8").tobytes()
        return [hashlib.sha256(numbers).hexdigest(), self.normalisation]


@dataclass(frozen=True)
class Asked:
    """Examples by their places in a data set, which the teacher's explanations are judged on. `split`: None: its usual.

    `source`: the data set, read once for all that is asked about it.
    """

    teacher: str
    dataset: str
    split: str | None
    places: tuple[int, ...]
    source: ExampleSource = field(repr=False, compare=False)

    @property
    def kind(self) -> str:
        """What the teacher reads, "text" or "image"."""
        return kind_of_model(self.teacher)

    @property
    def as_key(self) -> dict[str, Any]:
        """All that its numbers depend on, for a cache key."""
        return {
            "teacher": [self.teacher, catalog.revision(self.teacher)],
            "data": [self.source.name, self.source.revision, self.source.count],
            "places": list(self.places),
            "device": runtime.device_type(),
        }


def asked_of(plan: Plan, examples: int = EXAMPLES, dataset: str | None = None) -> Asked:
    """Examples to judge a plan's explainers on: of its own data set those of the test split, of another any.

    Errors: no examples wanted; a data set that holds none, or too few for the plan's splits.
    """
    if type(examples) is not int or examples < 1:
        raise not_allowed("examples", "a whole number of at least 1", examples)
    if dataset is None or dataset == plan.dataset:
        return _of_test(plan, examples)
    source = load_source(plan.kind, dataset, None, tolerant=True)
    if not source.count:
        raise ExegesisError(f"dataset: {dataset} has no examples. Name another.")
    return Asked(plan.teacher, dataset, None, tuple(drawn(source.count, examples, 0)), source)


def learned_of(plan: Plan, outcome: Outcome | None) -> Learned | None:
    """The explainer that a student of the plan was taught by; None where it is static, or there is no student."""
    if outcome is None or outcome.phi is None:
        return None
    return Learned(outcome.phi, plan.recipe.normalisation)


def _of_test(plan: Plan, examples: int) -> Asked:
    split, source = part_of(plan)
    return Asked(plan.teacher, plan.dataset, split, splits_of(source.count, plan).test[:examples], source)
