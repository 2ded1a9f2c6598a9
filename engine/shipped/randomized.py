"""The randomizations that their page opens with: a few reviews on a text model, a few scenes on a picture model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from engine.evaluation.sample import Sample
from engine.randomization.keeping import key_of
from engine.randomization.plan import MODES, Plan
from engine.randomization.run import carry_out, sample_of

PLANS: Mapping[str, Plan] = {
    "text": Plan(("reviews-minilm",), "reviews", examples=16),
    "image": Plan(("scenes-vit",), "scenes", examples=12),
}
"""By what the models read."""


def keys() -> tuple[str, ...]:
    """What is found, and of the maps those that the page opens with: of the cascade, by the first seed."""
    return tuple(key for plan in PLANS.values() for key in _keys(plan, sample_of(plan)))


def made() -> tuple[str, ...]:
    """The same, after it was computed where it was not there."""
    for plan in PLANS.values():
        carry_out(plan)
    return keys()


def _keys(plan: Plan, sample: Sample) -> Iterator[str]:
    from engine.randomization.work import Work

    for model in plan.models:
        yield key_of(plan, model, sample)
        work = Work(plan, model, sample)
        cascade = {(stage.parts, plan.seed) for stage in work.stages if stage.mode == MODES[0]}
        pieces = work.all_pieces()
        yield from (piece.key for piece in pieces if not piece.parts or (piece.parts, piece.seed) in cascade)
