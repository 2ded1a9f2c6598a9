"""The randomizations that their page opens with: a few reviews on a text model, a few scenes on a picture model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from engine.evaluation.sample import Sample
from engine.experiments.run import carry_out, key_of, sample_of
from engine.randomization.plan import MODES, RANDOMIZE, RandomizationPlan

PLANS: Mapping[str, RandomizationPlan] = RANDOMIZE.opens_with
"""By what the models read."""


def keys() -> tuple[str, ...]:
    """What is found, and of the maps those that the page opens with: of the cascade, by the first seed."""
    return tuple(key for plan in PLANS.values() for key in _keys(plan, sample_of(plan)))


def made() -> tuple[str, ...]:
    """The same, after it was computed where it was not there."""
    for plan in PLANS.values():
        carry_out(plan)
    return keys()


def _keys(plan: RandomizationPlan, sample: Sample) -> Iterator[str]:
    from engine.randomization.work import ModelWork

    for model in plan.models:
        yield key_of(plan, model, sample)
        work = ModelWork(plan, model, sample)
        cascade = {(stage.parts, plan.seed) for stage in work.stages if stage.mode == MODES[0]}
        chunks = work.all_chunks()
        yield from (chunk.key for chunk in chunks if not chunk.parts or (chunk.parts, chunk.seed) in cascade)
