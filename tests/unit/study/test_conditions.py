"""Who guesses with which explanation, or with none: balanced over people, items and time, drawn by the secret."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.study.ballots import AssignmentPlan, ItemView, next_view

CONDITIONS = ("nothing", "0", "1", "2")
ITEMS = tuple(f"item {n}" for n in range(12))
PLAN = AssignmentPlan("study 1", "salt", ITEMS, per_annotator=8, repeats=0, conditions=CONDITIONS)
Cells = Counter[tuple[str, str]]


def walk(plan: AssignmentPlan, annotator: str, answers: Cells) -> list[ItemView]:
    """Everything that one person sees; their answers are counted."""
    seen: list[ItemView] = []
    while look := next_view(plan, annotator, seen, answers):
        seen.append(look)
        answers[look.item, look.condition] += not look.practice and not look.repeat
    return seen


def counted(seen: list[ItemView]) -> list[str]:
    return [look.condition for look in seen if not look.practice and not look.repeat]


@settings(deadline=None)
@given(st.integers(1, 12), st.integers(1, 7), st.integers(0, 20))
def test_a_person_meets_all_conditions_equally_often_at_all_times(each: int, conditions: int, person: int) -> None:
    plan = dataclasses.replace(PLAN, per_annotator=each, conditions=tuple(map(str, range(conditions))))
    met = counted(walk(plan, f"p-{person}", Counter()))
    for end in range(1, each + 1):
        often = [met[:end].count(one) for one in plan.conditions]
        assert max(often) - min(often) <= 1


def test_each_item_gets_all_conditions_equally_often() -> None:
    answers: Cells = Counter()
    for person in range(30):
        walk(PLAN, f"p-{person}", answers)
    assert sum(answers.values()) == 30 * 8
    assert set(answers) == {(item, condition) for item in ITEMS for condition in CONDITIONS}
    assert set(answers.values()) == {30 * 8 // 48}


@pytest.mark.parametrize("each", [5, 7])
def test_the_balance_of_items_is_near_where_people_stop_in_the_middle(each: int) -> None:
    answers: Cells = Counter()
    for person in range(48):
        walk(dataclasses.replace(PLAN, per_annotator=each), f"p-{person}", answers)
    assert max(answers.values()) - min(answers.values()) <= 2


def test_a_person_sees_an_item_in_one_condition_the_repeat_too() -> None:
    plan = dataclasses.replace(PLAN, repeats=3)
    for person in range(10):
        seen = walk(plan, f"p-{person}", Counter())
        assert len(seen) == 11
        assert len({(look.item, look.condition) for look in seen}) == len({look.item for look in seen}) == 8


def test_practice_begins_without_an_explanation_and_goes_through_the_others() -> None:
    plan = dataclasses.replace(PLAN, practice=tuple(f"warm up {n}" for n in range(5)))
    orders = set()
    for person in range(30):
        practised = [look.condition for look in walk(plan, f"p-{person}", Counter()) if look.practice]
        assert practised[0] == practised[4] == "nothing"
        assert set(practised) == set(CONDITIONS)
        orders.add(tuple(practised))
    assert len(orders) == 6, "all orders of three"


def test_votes_wanted_are_counted_in_each_condition() -> None:
    plan = dataclasses.replace(PLAN, votes_per_item=2, per_annotator=12)
    answers: Cells = Counter()
    people = 0
    while walk(plan, f"p-{people}", answers):
        people += 1
    assert set(answers.values()) == {2}
    assert len(answers) == 48


def test_the_condition_depends_on_the_secret_and_the_person() -> None:
    draws = {
        (secret, person): tuple(counted(walk(dataclasses.replace(PLAN, secret=secret), person, Counter())))
        for secret in ("salt", "pepper")
        for person in ("p-1", "p-2", "p-3")
    }
    assert len(set(draws.values())) == 6


def test_no_condition_comes_first_more_often_than_others() -> None:
    looks = [next_view(PLAN, f"p-{person}", [], Counter()) for person in range(800)]
    firsts = Counter(look.condition for look in looks if look)
    chi_square = sum((firsts[one] - 200) ** 2 / 200 for one in CONDITIONS)
    assert chi_square < 16.3, "0.999 quantile of 3 degrees of freedom"
