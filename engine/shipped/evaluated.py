"""The evaluations that the Evaluate page opens with: methods on hand-written reviews, and on marked pictures."""

from __future__ import annotations

from engine.evaluation.keeping import entries
from engine.evaluation.plan import MEMBERS, RANDOM, Plan
from engine.evaluation.sample import sample_of, with_metrics
from engine.explainers.ensemble import SEVEN

QUICK = ("gradient_x_input", "integrated_gradients", "attention_rollout", "attn_lrp", RANDOM)
"""Methods that are not the thesis's seven alone, and none of them slow."""


def plans() -> dict[str, Plan]:
    """What is evaluated, by what is explained."""
    return {
        "text": Plan(("reviews-minilm",), "reviews", (*SEVEN, *MEMBERS, RANDOM), examples=40),
        "image": Plan(("scenes-marked-vit",), "scenes-marked", QUICK, examples=20),
    }


def keys(plan: Plan) -> tuple[str, ...]:
    """Under which keys one is found; empty where it is not, or not current."""
    sample = sample_of(plan)
    return entries(with_metrics(plan, sample), sample)


def made() -> list[str]:
    """The keys of all, after what was not there was computed."""
    # Here and not above: the page that lists the plans runs no model.
    from engine.evaluation.evaluate import carry_out

    for plan in plans().values():
        carry_out(plan)
    return [key for plan in plans().values() for key in keys(plan)]
