"""Which examples a plan is about."""

from __future__ import annotations

from engine.data.sources import ExampleSource, load_source
from engine.errors import UsageError
from engine.scaffold.plan import SPLIT, Plan

WHOLE = "all"


def examples_of(plan: Plan) -> ExampleSource:
    """The part of the data set that the plan names, else its part for training, else all of a set without parts.

    Errors: those of reading it.
    """
    return part_of(plan)[1]


def part_of(plan: Plan) -> tuple[str, ExampleSource]:
    """The name of that part too."""
    wanted = plan.split or SPLIT
    try:
        return wanted, _read(plan, wanted)
    except UsageError as error:
        if plan.split is not None:
            raise
        try:
            return WHOLE, _read(plan, WHOLE)
        except UsageError:
            raise error from None


def _read(plan: Plan, split: str) -> ExampleSource:
    return load_source(plan.kind, plan.dataset, split, tolerant=True)
