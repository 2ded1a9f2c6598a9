"""How much work an evaluation is, before it is done: about how often models run, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from components.numbers import count, duration
from engine.registry import Explainer, estimate_rows

if TYPE_CHECKING:
    from engine.evaluation.plan import Plan

TIMED = "That takes about {}, by what such work took before on this device."
UNTIMED = "How long that takes cannot be told before a job on the same {} has ended on this device."


def evaluations(plan: Plan, methods: Mapping[str, Explainer], size: int) -> int:
    """About how often the models run for all maps and for what is measured by removal."""
    maps = sum(estimate_rows(methods[id], plan.params_of(id)) for id in plan.company)
    removed = 2 * len(plan.percents) * len(plan.company) if not plan.metrics or plan.needs("removal") else 0
    moved = (plan.samples * maps) if plan.needs("perturbation") else 0
    return len(plan.models) * size * (maps + removed + moved)


def cost_words(plan: Plan, methods: Mapping[str, Explainer], size: int, pace: float | None = None) -> str:
    """What is asked for. `pace`: model evaluations a second of such work, None where that is not known."""
    of = f"{count(size, 'example')}, {count(len(plan.company), 'method')}, {count(len(plan.models), 'model')}"
    much = evaluations(plan, methods, size)
    time = (
        UNTIMED.format("model" if len(plan.models) == 1 else "models")
        if pace is None
        else TIMED.format(duration(much / pace))
    )
    return f"{of}: about {_rough(much)} model evaluations. {time} What is in the cache already is not computed again."


def added(plan: Plan) -> list[str]:
    """Methods that come along: members of ensembles, and a random order."""
    return [id for id in plan.company if id not in plan.methods]


def _rough(number: int) -> str:
    """Two digits are as much as is known."""
    digits = max(0, len(str(number)) - 2)
    return f"{round(number, -digits):,}"
