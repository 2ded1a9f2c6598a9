"""Who sees what and in which order: drawn by SHA-256 from the study's secret, the same on every machine."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

APART = 3
"""How many other items lie at least between two looks at the same item, where a study has enough of them."""


@dataclass(frozen=True)
class Look:
    """One person looks at one item. `repeat`: how often they saw it before. Practice counts for nothing."""

    item: str
    repeat: int = 0
    practice: bool = False


@dataclass(frozen=True)
class Plan:
    """What assignment needs to know of a study. `secret` keeps people from working out the order they get.

    `per_annotator`: fresh items a person. `repeats`: how many of them they see twice. `votes_per_item`: an item with so
    many answers is given to nobody else; None gives it to all.
    """

    study: str
    secret: str
    items: tuple[str, ...]
    practice: tuple[str, ...] = ()
    per_annotator: int = 20
    repeats: int = 0
    votes_per_item: int | None = None

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


def next_look(plan: Plan, annotator: str, seen: Sequence[Look], answers: Mapping[str, int]) -> Look | None:
    """What this person sees next; None when they are through.

    `seen`: their looks so far, the first one first. `answers`: how many people answered each item.
    """
    had = set(seen)
    practice = (Look(item, practice=True) for item in plan.practice)
    due = next((look for look in practice if look not in had), None)
    return due or _next_counted(plan, annotator, seen, answers)


def _next_counted(plan: Plan, annotator: str, seen: Sequence[Look], answers: Mapping[str, int]) -> Look | None:
    """The first step of the person's schedule that they have not taken and that can be taken."""
    met = [look.item for look in seen if not look.practice and not look.repeat]
    for step, again in schedule(plan, annotator):
        if again and step < len(met) and _may_repeat(plan, met[step], seen):
            return Look(met[step], repeat=1)
        if not again and step >= len(met) and (item := _neediest(plan, annotator, met, answers)) is not None:
            return Look(item)
    return None


def _may_repeat(plan: Plan, item: str, seen: Sequence[Look]) -> bool:
    """Not repeated yet, and not just seen: other people may have answered the items that were to lie between."""
    return Look(item, repeat=1) not in seen and all(look.item != item for look in seen[-_gap(plan) :])


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


def _neediest(plan: Plan, annotator: str, met: Sequence[str], answers: Mapping[str, int]) -> str | None:
    """Of the items they did not meet, one with the fewest answers; ties are drawn for each person."""
    open_items = [item for item in plan.items if item not in met and not _has_enough(plan, answers.get(item, 0))]
    return min(open_items, key=lambda item: (answers.get(item, 0), _draw(plan, "item", annotator, item)), default=None)


def _has_enough(plan: Plan, answers: int) -> bool:
    return plan.votes_per_item is not None and answers >= plan.votes_per_item


def _draw(plan: Plan, *parts: str | int) -> str:
    """A number in hexadecimal that looks random; JSON keeps the parts apart."""
    return hashlib.sha256(json.dumps([plan.secret, plan.study, *parts]).encode()).hexdigest()
