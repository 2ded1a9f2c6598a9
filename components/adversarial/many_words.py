"""What attacks on many examples came to, in sentences of numbers and our own words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from components.adversarial.words import OBJECTIVE_TITLES
from components.numbers import count, plain
from engine.attacks.findings import METRICS

if TYPE_CHECKING:
    from engine.attacks.findings import Findings, Score


def how(found: Findings, size: int) -> str:
    """How it was done, in one sentence."""
    params = found.plan.chosen(found.plan.objectives[0])
    starts = f" from {count(params.starts, 'start')}" if params.starts > 1 else ""
    return (
        f"{count(size, 'example')}, at most {count(params.steps, 'step')} each{starts}; means over examples with 95 % "
        "intervals."
    )


def summary(scores: Sequence[Score], titles: Mapping[str, str]) -> str:
    """Which method's map changed least and which most, of means by one objective on one model."""
    having = [score for score in scores if score.value is not None]
    first = having[0].of if having else None
    own = [one for one in having if first and (one.of.model, one.of.objective) == (first.model, first.objective)]
    if first is None or len(own) < 2 or METRICS[first.metric].better == "neither":
        return ""
    ordered = sorted(own, key=lambda score: abs(score.value or 0.0))
    low, high = (
        f"{titles.get(one.of.method, one.of.method)} ({plain(one.value or 0.0)})" for one in (ordered[0], ordered[-1])
    )
    objective = OBJECTIVE_TITLES[first.objective].lower()
    return f"Least, {objective}: {low}; most: {high}. A map that withstands attacks need not be a faithful one."


def left_out(found: Findings, titles: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """For each reason: how many examples on each model, and by which methods."""
    seen: dict[tuple[str, str], set[int]] = {}
    by: dict[tuple[str, str], Counter[str]] = {}
    for skip in (*found.skips, *found.left_out):
        place = (skip.reason, skip.of.model)
        seen.setdefault(place, set()).add(skip.example)
        by.setdefault(place, Counter())[titles.get(skip.of.method, skip.of.method)] += 1
    return [
        (why, f"{count(len(examples), 'example')} on {model}", ", ".join(by[why, model]))
        for (why, model), examples in seen.items()
    ]
