"""Slices of an evaluation: who is in which, by hand; bins of lengths against a slow oracle."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import UsageError
from engine.evaluation.views.points import points
from engine.evaluation.views.slices import NO_LABEL, NOT_KNOWN, cut, length_bins, slices
from tests.unit.evaluation.by_hand import by_hand, fact

LENGTHS = [3, 3, 4, 9, 12, 12, 20, 40]
FACTS = [
    fact(place, ["bad", "good", None][place % 3], [True, False, None][place // 3], length)
    for place, length in enumerate(LENGTHS)
]
FOUND = by_hand({("m", "lime", "complexity"): [1, 2, 3, 4, 5, 6, 7, 8, "failed"]}, FACTS)


def members(by: str) -> dict[str, list[int]]:
    return {one.name: [row.example for row in one.found.rows] for one in slices(FOUND, by)}


def test_examples_fall_apart_by_label_and_by_whether_the_model_is_right() -> None:
    assert members("label") == {"bad": [0, 3, 6], "good": [1, 4, 7], NO_LABEL: [2, 5]}
    assert members("correctness") == {"right": [0, 1, 2], "wrong": [3, 4, 5], NOT_KNOWN: [6, 7]}


def test_quarters_of_the_lengths_state_their_bounds() -> None:
    assert members("length") == {
        "3 tokens": [0, 1], "4 to 9 tokens": [2, 3], "10 to 12 tokens": [4, 5], "13 to 40 tokens": [6, 7],
    }  # fmt: skip


def test_a_slice_has_the_scores_of_its_examples_alone() -> None:
    (score,) = points(cut(FOUND, "label", "good"), "complexity")
    assert score.value == pytest.approx((2 + 5 + 8) / 3)
    assert score.n == 3
    assert cut(FOUND, "length", "4 to 9 tokens").facts == tuple(FACTS[2:4])


def test_examples_that_could_not_be_explained_are_in_no_slice() -> None:
    for by in ("label", "correctness", "length"):
        assert sum(len(one.found.facts) for one in slices(FOUND, by)) == len(LENGTHS)
        assert not any(one.found.skips for one in slices(FOUND, by))


def test_units_are_named_as_they_are_ranked() -> None:
    one = by_hand({("m", "lime", "complexity"): [1]}, [fact(0, length=1)])
    assert [part.name for part in slices(one, "length")] == ["1 token"]
    assert slices(by_hand({("m", "lime", "complexity"): [1]}), "length") == []


def test_unknown_ways_and_slices_are_named() -> None:
    with pytest.raises(UsageError, match=r"slice by: unknown name 'size'\. Known: correctness, label, length"):
        slices(FOUND, "size")
    with pytest.raises(UsageError, match="slice: unknown name 'ugly'"):
        cut(FOUND, "label", "ugly")


@given(st.lists(st.integers(1, 60), min_size=1, max_size=40), st.integers(1, 6))
def test_bins_are_those_that_a_slow_search_finds(lengths: list[int], bins: int) -> None:
    """The end of the k-th bin is the least length that at least k/bins of all examples do not exceed."""
    ends = sorted(
        {
            min(
                end
                for end in lengths
                if sum(one <= end for one in lengths) >= math.ceil(len(lengths) * k / bins - 1e-9)
            )
            for k in range(1, bins + 1)
        }
    )
    found = length_bins(lengths, bins)
    assert [end for _, end in found] == ends
    assert found[0][0] == min(lengths)
    assert [start for start, _ in found[1:]] == [end + 1 for end in ends[:-1]], "each length is in one bin"
