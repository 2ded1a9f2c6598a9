"""Who sees what and in which order: drawn by SHA-256 from the study's secret, the same on every machine."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

APART = 3
"""How many other items lie at least between two looks at the same item, where a study has enough of them."""
ALL = "all"
"""The one condition of a study of rankings: every explanation of the item is shown."""

Answers = Mapping[tuple[str, str], int]
"""How many people answered each item in each condition; what is not there has none."""


@dataclass(frozen=True)
class Look:
    """One person looks at one item. `repeat`: how often they saw it before. Practice counts for nothing.

    `condition`: what they see beside the input. A person sees an item in one condition only, the repeat too.
    """

    item: str
    repeat: int = 0
    practice: bool = False
    condition: str = ALL


@dataclass(frozen=True)
class Plan:
    """What assignment needs to know of a study. `secret` keeps people from working out the order they get.

    `per_annotator`: fresh items a person. `repeats`: how many of them they see twice. `votes_per_item`: an item with so
    many answers in a condition is given to nobody else in it; None gives it to all. `conditions`: the plainest first.
    """

    study: str
    secret: str
    items: tuple[str, ...]
    practice: tuple[str, ...] = ()
    per_annotator: int = 20
    repeats: int = 0
    votes_per_item: int | None = None
    conditions: tuple[str, ...] = (ALL,)

    @property
    def fresh(self) -> int:
        """How many items one person sees, each counted once."""
        return min(self.per_annotator, len(self.items))

    @property
    def looks(self) -> int:
        """How many ballots one person gets at most, practice not counted."""
        return self.fresh + _repeated(self)


def places(plan: Plan, annotator: str, look: Look, shown: Sequence[str]) -> tuple[str, ...]:
    """`shown` in the order of the places A, B, ...: a permutation of (study, annotator, item, repeat).

    It does not depend on the order in which `shown` lists them.
    """
    return tuple(sorted(shown, key=lambda one: _draw(plan, "place", annotator, look.item, look.repeat, one)))


def next_look(plan: Plan, annotator: str, seen: Sequence[Look], answers: Answers) -> Look | None:
    """What this person sees next; None when they are through. `seen`: their looks so far, the first one first."""
    had = {look.item for look in seen if look.practice}
    due = next((n for n, item in enumerate(plan.practice) if item not in had), None)
    if due is not None:
        turn = _practised(plan, annotator)
        return Look(plan.practice[due], practice=True, condition=turn[due % len(turn)])
    return _next_counted(plan, annotator, seen, answers)


def _practised(plan: Plan, annotator: str) -> list[str]:
    """The conditions as practice takes them in turn: the plainest, and the others in an order drawn for each person."""
    plainest, *others = plan.conditions
    return [plainest, *sorted(others, key=lambda one: _draw(plan, "practised", annotator, one))]


def _next_counted(plan: Plan, annotator: str, seen: Sequence[Look], answers: Answers) -> Look | None:
    """The first step of the person's schedule that they have not taken and that can be taken."""
    met = [look for look in seen if not look.practice and not look.repeat]
    for step, again in schedule(plan, annotator):
        if again and step < len(met) and _may_repeat(plan, met[step].item, seen):
            return dataclasses.replace(met[step], repeat=1)
        if not again and step >= len(met) and (fresh := _fresh(plan, annotator, met, answers)) is not None:
            return fresh
    return None


def _may_repeat(plan: Plan, item: str, seen: Sequence[Look]) -> bool:
    """Not repeated yet, and not just seen: other people may have answered the items that were to lie between."""
    again = any(look.item == item and look.repeat for look in seen)
    return not again and all(look.item != item for look in seen[-_gap(plan) :])


def schedule(plan: Plan, annotator: str) -> list[tuple[int, bool]]:
    """(n, False): their n-th item for the first time; (n, True): that item again, at least `_gap` others later."""
    gap = _gap(plan)
    candidates = range(plan.fresh - gap)
    again = sorted(candidates, key=lambda n: _draw(plan, "again", annotator, n))[: _repeated(plan)]
    times = [(n, n, False) for n in range(plan.fresh)]
    times += [(n + gap + int(_draw(plan, "delay", annotator, n), 16) % (gap + 1), n, True) for n in again]
    return [(n, repeated) for _, n, repeated in sorted(times, key=lambda step: (step[0], step[2], step[1]))]


def _repeated(plan: Plan) -> int:
    """The last item is not repeated: nothing would lie between."""
    return max(0, min(plan.repeats, plan.fresh - 1))


def _gap(plan: Plan) -> int:
    """`APART`, or less where so many repeats leave no room for it."""
    return max(1, min(APART, plan.fresh - _repeated(plan)))


def _fresh(plan: Plan, annotator: str, met: Sequence[Look], answers: Answers) -> Look | None:
    """An item that they did not meet, in the condition that they met least, so far as it needs answers."""
    had = {look.item for look in met}
    rest = [item for item in plan.items if item not in had]
    for condition in _by_need(plan, annotator, met, answers):
        wanting = [item for item in rest if not _has_enough(plan, answers.get((item, condition), 0))]
        if wanting:
            return Look(_neediest(plan, annotator, wanting, condition, answers), condition=condition)
    return None


def _by_need(plan: Plan, annotator: str, met: Sequence[Look], answers: Answers) -> list[str]:
    """The conditions, first the one that this person met least, then the one that all did; ties are drawn.

    So a person who is through met all of them equally often, and at no time of their work one much more than another.
    """
    own, total = Counter(look.condition for look in met), _totals(answers, 1)
    draw = {one: _draw(plan, "condition", annotator, len(met), one) for one in plan.conditions}
    return sorted(plan.conditions, key=lambda one: (own[one], total[one], draw[one]))


def _neediest(plan: Plan, annotator: str, items: Sequence[str], condition: str, answers: Answers) -> str:
    """The item with the fewest answers in this condition, then in all; ties are drawn for each person."""
    total = _totals(answers, 0)
    fewest = min((answers.get((item, condition), 0), total[item]) for item in items)
    tied = [item for item in items if (answers.get((item, condition), 0), total[item]) == fewest]
    return min(tied, key=lambda item: _draw(plan, "item", annotator, item))


def _totals(answers: Answers, part: int) -> Counter[str]:
    """Answers by item (part 0) or by condition (part 1)."""
    total: Counter[str] = Counter()
    for cell, count in answers.items():
        total[cell[part]] += count
    return total


def _has_enough(plan: Plan, answers: int) -> bool:
    return plan.votes_per_item is not None and answers >= plan.votes_per_item


def _draw(plan: Plan, *parts: str | int) -> str:
    """A number in hexadecimal that looks random; JSON keeps the parts apart."""
    return hashlib.sha256(json.dumps([plan.secret, plan.study, *parts]).encode()).hexdigest()
