"""Four hundred paraphrases, written beforehand by people who had not seen the grammar."""

from __future__ import annotations

import pytest

from tests.unit.query.paraphrases import EXACT, MISUNDERSTOOD, SETS, as_written, outcome


@pytest.mark.parametrize("name", SETS)
def test_nine_of_ten_paraphrases_are_understood_exactly_and_none_is_misunderstood(name: str) -> None:
    outcomes = list(map(outcome, SETS[name]))
    assert [line["text"] for line, one in zip(SETS[name], outcomes, strict=True) if one == MISUNDERSTOOD] == []
    assert outcomes.count(EXACT) >= 0.9 * len(SETS[name])


def test_a_corrected_line_says_why_and_keeps_what_its_author_wrote() -> None:
    corrected = [line for lines in SETS.values() for line in lines if "author_slots" in line]
    assert all(line["correction"] and line["author_slots"] != line["slots"] for line in corrected)


@pytest.mark.parametrize(
    ("name", "lines", "corrected", "as_is", "misunderstood", "exact"),
    [("first", 200, 22, 178, 17, 200), ("second", 100, 2, 98, 1, 100), ("held-out", 100, 4, 86, 1, 90)],
    ids=list(SETS),
)
def test_the_documented_numbers(
    name: str, lines: int, corrected: int, as_is: int, misunderstood: int, exact: int
) -> None:
    own = SETS[name]
    written = [outcome(as_written(line)) for line in own]
    assert (len(own), sum("author_slots" in line for line in own)) == (lines, corrected)
    assert (written.count(EXACT), written.count(MISUNDERSTOOD)) == (as_is, misunderstood)
    assert list(map(outcome, own)).count(EXACT) == exact
