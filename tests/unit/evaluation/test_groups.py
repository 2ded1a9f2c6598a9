"""Groups of an evaluation's scores: models by size and architecture, examples in slices."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import UsageError
from engine.evaluation.groups import (
    NO_LABEL,
    NOT_KNOWN,
    architectures,
    length_bins,
    read_sizes,
    scores_by_architecture,
    scores_by_size,
    size_ladders,
    size_ratio,
    split,
)
from engine.evaluation.result import Evaluation
from engine.evaluation.scores import compute_scores
from engine.models.summary import ModelSize, format_parameters, model_size
from tests.unit.evaluation.by_hand import by_hand, fact

MODELS = ("t5-big", "bert", "t5-mini", "gpt", "t5-twin")
SIZES = {
    "t5-big": ModelSize(2_000_000, 12, 4, "T5"),
    "bert": ModelSize(500_000, 4, 4, "BERT"),
    "t5-mini": ModelSize(200_000, 2, 4, "T5"),
    "gpt": ModelSize(600_000, 4, 4, "GPT-2"),
    "t5-twin": ModelSize(2_000_000, 6, 8, "T5"),
}
SIZED_MODELS = by_hand(
    {(m, id, "complexity"): [place, place + 1] for place, m in enumerate(MODELS) for id in ("lime", "gradient")}
)


def test_a_ladder_is_an_architecture_of_several_sizes() -> None:
    assert size_ladders(SIZES) == {"T5": ["t5-mini", "t5-big", "t5-twin"]}
    assert size_ladders({name: SIZES[name] for name in ("t5-big", "t5-twin", "bert")}) == {}, "two models of one size"
    assert architectures(SIZES) == ["BERT", "GPT-2", "T5"]


def test_how_far_sizes_are_apart() -> None:
    assert size_ratio(SIZES) == 10
    assert size_ratio({}) == 1


def test_parameters_are_told_in_three_digits() -> None:
    told = {
        number: format_parameters(ModelSize(number, 1, 1, "T5"))
        for number in (987, 22_713_986, 999_600_000, 1_540_000_000)
    }
    assert list(told.values()) == [
        "987 parameters", "22.7 million parameters", "1 billion parameters", "1.54 billion parameters",
    ]  # fmt: skip


def test_scaling_goes_up_one_ladder() -> None:
    found = scores_by_size(SIZED_MODELS, "complexity", SIZES, methods=["lime"])
    assert [(one.score.model, one.score.value, one.size.parameters) for one in found] == [
        ("t5-mini", 2.5, 200_000), ("t5-big", 0.5, 2_000_000), ("t5-twin", 4.5, 2_000_000),
    ]  # fmt: skip
    assert all(one.score.n == 2 and one.score.interval is not None for one in found)
    assert scores_by_size(SIZED_MODELS, "complexity", SIZES, "T5", ["lime"]) == found
    assert scores_by_size(SIZED_MODELS, "complexity", SIZES, "BERT") == []
    assert scores_by_size(SIZED_MODELS, "complexity", {}) == []


def test_architectures_stand_together_the_smallest_model_first() -> None:
    found = scores_by_architecture(SIZED_MODELS, "complexity", SIZES)
    assert [one.score.model for one in found[::2]] == ["bert", "gpt", "t5-mini", "t5-big", "t5-twin"]
    assert [one.score.method for one in found[:2]] == ["lime", "gradient"], "as in the plan"


def test_sizes_are_those_of_the_files_and_what_has_none_is_left_out(tmp_path: Path) -> None:
    sizes = read_sizes(["reviews-minilm", str(tmp_path / "nothing")])
    assert sizes == {"reviews-minilm": model_size("reviews-minilm")}


LENGTHS = [3, 3, 4, 9, 12, 12, 20, 40]
FACTS = [
    fact(place, ["bad", "good", None][place % 3], [True, False, None][place // 3], length)
    for place, length in enumerate(LENGTHS)
]
FOUND = by_hand({("m", "lime", "complexity"): [1, 2, 3, 4, 5, 6, 7, 8, "failed"]}, FACTS)


def parts(by: str) -> dict[str, Evaluation]:
    return {one.name: one.evaluation for one in split(FOUND, by)}


def members(by: str) -> dict[str, list[int]]:
    return {name: [row.example for row in one.rows] for name, one in parts(by).items()}


def test_examples_fall_apart_by_label_and_by_whether_the_model_is_right() -> None:
    assert members("label") == {"bad": [0, 3, 6], "good": [1, 4, 7], NO_LABEL: [2, 5]}
    assert members("correctness") == {"right": [0, 1, 2], "wrong": [3, 4, 5], NOT_KNOWN: [6, 7]}


def test_quarters_of_the_lengths_state_their_bounds() -> None:
    assert members("length") == {
        "3 tokens": [0, 1], "4 to 9 tokens": [2, 3], "10 to 12 tokens": [4, 5], "13 to 40 tokens": [6, 7],
    }  # fmt: skip


def test_a_slice_has_the_scores_of_its_examples_alone() -> None:
    (score,) = compute_scores(parts("label")["good"], "complexity")
    assert score.value == pytest.approx((2 + 5 + 8) / 3)
    assert score.n == 3
    assert parts("length")["4 to 9 tokens"].facts == tuple(FACTS[2:4])


def test_examples_that_could_not_be_explained_are_in_no_slice() -> None:
    for by in ("label", "correctness", "length"):
        assert sum(len(one.evaluation.facts) for one in split(FOUND, by)) == len(LENGTHS)
        assert not any(one.evaluation.skips for one in split(FOUND, by))


def test_units_are_named_as_they_are_ranked() -> None:
    one = by_hand({("m", "lime", "complexity"): [1]}, [fact(0, length=1)])
    assert [part.name for part in split(one, "length")] == ["1 token"]
    assert split(by_hand({("m", "lime", "complexity"): [1]}), "length") == []


def test_unknown_ways_to_slice_are_named() -> None:
    with pytest.raises(UsageError, match=r"slice by: unknown name 'size'\. Known: correctness, label, length"):
        split(FOUND, "size")


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
