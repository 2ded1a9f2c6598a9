"""Assignment of items to annotators and order of explanations, drawn by SHA-256 from the study's secret.

The draws are the same on every machine.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MIN_APART = 3
"""Minimum number of other items between two views of an item, where a study has enough of them."""
ALL = "all"
"""The one condition of a study of rankings: every explanation of the item is on the ballot."""

AnswerCells = Mapping[tuple[str, str], int]
"""The number of people who answered each item in each condition; missing cells have none."""


@dataclass(frozen=True)
class ItemView:
    """One person's view of an item. `repeat`: how often they saw it before. Practice does not count.

    `condition`: what is on the ballot beside the input. A person sees an item in one condition only, the repeat too.
    """

    item: str
    repeat: int = 0
    practice: bool = False
    condition: str = ALL


@dataclass(frozen=True)
class AssignmentPlan:
    """The parts of a study that assignment depends on. `secret` keeps people from working out their order.

    `per_annotator`: new items a person. `repeats`: how many of them they see twice. `votes_per_item`: an item with so
    many answers in a condition is assigned to nobody else in it; None: no limit. `conditions`: the plainest first.
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
    def new_items(self) -> int:
        """The number of items that one person sees, each counted once."""
        return min(self.per_annotator, len(self.items))

    @property
    def repeated_items(self) -> int:
        """The number of items that one person sees twice; never the last one: nothing would lie between."""
        return max(0, min(self.repeats, self.new_items - 1))

    @property
    def ballots(self) -> int:
        """The maximum number of ballots of one person, without practice."""
        return self.new_items + self.repeated_items

    @property
    def gap(self) -> int:
        """`MIN_APART`, or less where so many repeats leave no room for it."""
        return max(1, min(MIN_APART, self.new_items - self.repeated_items))


def order_methods(plan: AssignmentPlan, annotator: str, view: ItemView, methods: Sequence[str]) -> tuple[str, ...]:
    """The methods in the order of the places A, B, ...: a permutation by (study, annotator, item, repeat).

    It does not depend on the order of `methods`.
    """
    return tuple(sorted(methods, key=lambda method: _draw(plan, "place", annotator, view.item, view.repeat, method)))


def next_view(plan: AssignmentPlan, annotator: str, views: Sequence[ItemView], answers: AnswerCells) -> ItemView | None:
    """This person's next view; None at the end. `views`: those before, in order."""
    practiced = {view.item for view in views if view.practice}
    due = next((n for n, item in enumerate(plan.practice) if item not in practiced), None)
    if due is not None:
        # Practice takes the conditions in turn: the plainest, and the others in an order drawn for each person.
        plainest, *others = plan.conditions
        turns = [plainest, *sorted(others, key=lambda condition: _draw(plan, "practised", annotator, condition))]
        return ItemView(plan.practice[due], practice=True, condition=turns[due % len(turns)])
    first_views = [view for view in views if not view.practice and not view.repeat]
    for step, is_repeat in schedule(plan, annotator):
        if is_repeat and step < len(first_views) and _may_repeat(plan, first_views[step].item, views):
            return dataclasses.replace(first_views[step], repeat=1)
        if not is_repeat and step >= len(first_views):
            new = _next_new_item(plan, annotator, first_views, answers)
            if new is not None:
                return new
    return None


def _may_repeat(plan: AssignmentPlan, item: str, views: Sequence[ItemView]) -> bool:
    """Not repeated yet, and not just seen: other people may have answered the items that were to lie between."""
    repeated = any(view.item == item and view.repeat for view in views)
    return not repeated and all(view.item != item for view in views[-plan.gap :])


def schedule(plan: AssignmentPlan, annotator: str) -> list[tuple[int, bool]]:
    """(n, False): their n-th item for the first time; (n, True): the same item again, at least `gap` others later."""
    gap = plan.gap
    candidates = range(plan.new_items - gap)
    repeats = sorted(candidates, key=lambda n: _draw(plan, "again", annotator, n))[: plan.repeated_items]
    times = [(n, n, False) for n in range(plan.new_items)]
    times += [(n + gap + int(_draw(plan, "delay", annotator, n), 16) % (gap + 1), n, True) for n in repeats]
    return [(n, repeated) for _, n, repeated in sorted(times, key=lambda step: (step[0], step[2], step[1]))]


def _next_new_item(
    plan: AssignmentPlan, annotator: str, first_views: Sequence[ItemView], answers: AnswerCells
) -> ItemView | None:
    """A new item with the fewest answers, in the condition that the person saw least, if it needs answers.

    Conditions are tried from the one that this person saw least, then the one that all did. So a person who is through
    saw all of them equally often, and at no time one much more than another. Ties are drawn for each person.
    """
    views_by_condition = Counter(view.condition for view in first_views)
    by_item: Counter[str] = Counter()
    by_condition: Counter[str] = Counter()
    for (item, condition), count in answers.items():
        by_item[item] += count
        by_condition[condition] += count

    def need(condition: str) -> tuple[int, int, str]:
        draw = _draw(plan, "condition", annotator, len(first_views), condition)
        return views_by_condition[condition], by_condition[condition], draw

    viewed = {view.item for view in first_views}
    for condition in sorted(plan.conditions, key=need):
        counts = {item: answers.get((item, condition), 0) for item in plan.items if item not in viewed}
        if plan.votes_per_item is not None:
            counts = {item: count for item, count in counts.items() if count < plan.votes_per_item}
        if counts:
            fewest = min((count, by_item[item]) for item, count in counts.items())
            ties = [item for item, count in counts.items() if (count, by_item[item]) == fewest]
            item = min(ties, key=lambda item: _draw(plan, "item", annotator, item))
            return ItemView(item, condition=condition)
    return None


def _draw(plan: AssignmentPlan, *parts: str | int) -> str:
    """A hexadecimal number that looks random; JSON keeps the parts apart."""
    return hashlib.sha256(json.dumps([plan.secret, plan.study, *parts]).encode()).hexdigest()
