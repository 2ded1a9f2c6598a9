"""Who sees what: fewest answers first, repeats a few items later, places drawn by the study's secret."""

from __future__ import annotations

import dataclasses
import itertools
import os
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.study.ballots import ALL, MIN_APART, AssignmentPlan, ItemView, next_view, order_methods, schedule

ITEMS = tuple(f"item {n}" for n in range(12))
PLAN = AssignmentPlan("study 1", "salt", ITEMS, practice=("warm up", "warm up 2"), per_annotator=8, repeats=3)
METHODS = ("gradient", "attention", "lime", "random")


def walk(plan: AssignmentPlan, annotator: str = "p-1", answers: dict[str, int] | None = None) -> list[ItemView]:
    """Everything that one person sees while nobody else answers."""
    seen: list[ItemView] = []
    cells = {(item, ALL): count for item, count in (answers or {}).items()}
    while look := next_view(plan, annotator, seen, cells):
        seen.append(look)
    return seen


def test_practice_comes_first_then_each_item_once_then_the_repeats() -> None:
    seen = walk(PLAN)
    assert [look.item for look in seen[:2]] == ["warm up", "warm up 2"]
    assert [look.practice for look in seen] == [True] * 2 + [False] * (len(seen) - 2)
    fresh = [look.item for look in seen[2:] if not look.repeat]
    again = [look.item for look in seen[2:] if look.repeat]
    assert (len(fresh), len(set(fresh)), len(again), len(set(again))) == (8, 8, 3, 3)
    assert set(again) <= set(fresh)
    assert PLAN.ballots == 11


@settings(deadline=None)
@given(st.integers(0, 12), st.integers(1, 12), st.integers(0, 12), st.integers(0, 50))
def test_other_items_lie_between_two_looks(items: int, each: int, repeats: int, person: int) -> None:
    plan = AssignmentPlan("s", "salt", ITEMS[:items], per_annotator=each, repeats=repeats)
    seen = walk(plan, f"p-{person}")
    assert len(seen) == len(set(seen)) == plan.ballots
    fresh = min(items, each)
    at_least = max(1, min(MIN_APART, fresh - max(0, min(repeats, fresh - 1))))
    first = {look.item: place for place, look in enumerate(seen) if not look.repeat}
    for place, look in enumerate(seen):
        assert not look.repeat or place - first[look.item] > at_least


def test_repeats_come_at_distances_that_nobody_can_count_on() -> None:
    distances = set()
    for person in range(30):
        seen = walk(PLAN, f"p-{person}")
        first = {look.item: place for place, look in enumerate(seen) if not look.repeat}
        distances |= {place - first[look.item] for place, look in enumerate(seen) if look.repeat}
    assert len(distances) >= 3


def test_the_item_with_the_fewest_answers_is_next() -> None:
    answers = dict.fromkeys(ITEMS, 4) | {"item 5": 2, "item 7": 3}
    seen = walk(dataclasses.replace(PLAN, practice=(), repeats=0), answers=answers)
    assert [look.item for look in seen[:2]] == ["item 5", "item 7"]


def test_answers_spread_evenly_over_the_items() -> None:
    plan = dataclasses.replace(PLAN, practice=(), repeats=0, per_annotator=5)
    answers: Counter[tuple[str, str]] = Counter()
    for person in range(24):
        seen: list[ItemView] = []
        while look := next_view(plan, f"p-{person}", seen, answers):
            seen.append(look)
            answers[look.item, look.condition] += 1
    assert set(answers.values()) == {24 * 5 // 12}


def test_ties_are_drawn_for_each_person() -> None:
    firsts = {walk(PLAN, f"p-{person}")[2].item for person in range(60)}
    assert len(firsts) > 8


def test_an_item_with_all_its_votes_goes_to_nobody_else() -> None:
    plan = dataclasses.replace(PLAN, practice=(), votes_per_item=3)
    answers = dict.fromkeys(ITEMS, 3) | {"item 2": 2}
    assert walk(plan, answers=answers) == [ItemView("item 2")], "and its repeat does not follow directly"
    assert walk(plan, answers=dict.fromkeys(ITEMS, 3)) == []


def test_what_was_begun_decides_what_comes_next_whenever_it_is_asked() -> None:
    seen = walk(PLAN)
    for cut in range(len(seen)):
        assert next_view(PLAN, "p-1", seen[:cut], {}) == seen[cut]


def test_every_permutation_comes_about_equally_often() -> None:
    drawn = Counter(order_methods(PLAN, f"p-{n}", ItemView("item 1"), METHODS) for n in range(4800))
    assert set(drawn) == set(itertools.permutations(METHODS))
    expected = 4800 / 24
    chi_square = sum((count - expected) ** 2 / expected for count in drawn.values())
    assert chi_square < 49.7, "0.999 quantile of 23 degrees of freedom"


@pytest.mark.parametrize(
    ("plan", "annotator", "look"),
    [
        (dataclasses.replace(PLAN, study="study 2"), "p-1", ItemView("item 1")),
        (dataclasses.replace(PLAN, secret="pepper"), "p-1", ItemView("item 1")),
        (PLAN, "p-2", ItemView("item 1")),
        (PLAN, "p-1", ItemView("item 2")),
        (PLAN, "p-1", ItemView("item 1", repeat=1)),
    ],
)
def test_the_order_depends_on_study_secret_person_item_and_repeat(
    plan: AssignmentPlan, annotator: str, look: ItemView
) -> None:
    many = tuple(f"method {n}" for n in range(12))
    assert order_methods(plan, annotator, look, many) != order_methods(PLAN, "p-1", ItemView("item 1"), many)


def test_the_order_is_the_same_however_the_methods_are_listed() -> None:
    assert order_methods(PLAN, "p-1", ItemView("item 1"), METHODS) == order_methods(
        PLAN, "p-1", ItemView("item 1"), METHODS[::-1]
    )


def test_the_draw_is_the_same_in_another_process_with_another_hash_seed() -> None:
    script = (
        "from engine.study.ballots import *;"
        "p = AssignmentPlan('study 1', 'salt', tuple(f'item {n}' for n in range(12)), per_annotator=8, repeats=3);"
        "methods = ('gradient', 'attention', 'lime', 'random');"
        "print(schedule(p, 'p-1'), order_methods(p, 'p-1', ItemView('item 1'), methods))"
    )
    plan = dataclasses.replace(PLAN, practice=())
    here = f"{schedule(plan, 'p-1')} {order_methods(plan, 'p-1', ItemView('item 1'), METHODS)}"
    for seed in ("1", "2"):
        env = os.environ | {"PYTHONHASHSEED": seed}
        told = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True)
        assert told.stdout.strip() == here
