"""Two hundred paraphrases, written beforehand by somebody who had not seen the grammar."""

from __future__ import annotations

import pytest

from tests.unit.query.paraphrases import EXACT, HALVES, LINES, MISUNDERSTOOD, as_written, outcome

LEAST = {"development": 0.9, "held-out": 0.8}


def test_nine_of_ten_paraphrases_are_understood_exactly_and_none_is_misunderstood() -> None:
    outcomes = [outcome(line) for line in LINES]
    assert [line["text"] for line, one in zip(LINES, outcomes, strict=True) if one == MISUNDERSTOOD] == []
    assert len(LINES) == 200
    assert outcomes.count(EXACT) >= 0.9 * len(LINES)


@pytest.mark.parametrize("half", HALVES)
def test_each_half_by_itself(half: str) -> None:
    outcomes = list(map(outcome, HALVES[half]))
    assert outcomes.count(EXACT) >= LEAST[half] * len(outcomes)


def test_a_corrected_line_says_why_and_keeps_what_its_author_wrote() -> None:
    corrected = [line for line in LINES if "author_slots" in line]
    assert all(line["correction"] and line["author_slots"] != line["slots"] for line in corrected)
    assert [sum("author_slots" in line for line in half) for half in HALVES.values()] == [9, 13]


@pytest.mark.parametrize(
    ("half", "exact", "misunderstood"), [("development", 91, 6), ("held-out", 71, 10)], ids=list(HALVES)
)
def test_the_documented_numbers_by_the_answers_as_written(half: str, exact: int, misunderstood: int) -> None:
    outcomes = [outcome(as_written(line)) for line in HALVES[half]]
    assert (outcomes.count(EXACT), outcomes.count(MISUNDERSTOOD)) == (exact, misunderstood)
