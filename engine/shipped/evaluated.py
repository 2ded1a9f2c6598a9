"""The evaluation that the Evaluate page opens with: the thesis's methods and ensembles on hand-written reviews."""

from __future__ import annotations

from engine.evaluation.evaluate import carry_out
from engine.evaluation.keeping import entries
from engine.evaluation.plan import MEMBERS, RANDOM, Plan
from engine.evaluation.sample import sample_of, with_metrics
from engine.explainers.ensemble import SEVEN

MODEL, DATA, EXAMPLES = "reviews-minilm", "reviews", 40


def plan() -> Plan:
    """What is evaluated."""
    return Plan((MODEL,), DATA, (*SEVEN, *MEMBERS, RANDOM), examples=EXAMPLES)


def keys() -> tuple[str, ...]:
    """Under which keys it is found; empty where it is not, or not current."""
    sample = sample_of(plan())
    return entries(with_metrics(plan(), sample), sample)


def made() -> tuple[str, ...]:
    """The same, after it was computed where it was not there."""
    carry_out(plan())
    return keys()
