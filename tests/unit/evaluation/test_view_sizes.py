"""Scores by size and by architecture: which models stand where, by hand."""

from __future__ import annotations

from pathlib import Path

from engine.evaluation.views.sizes import architectures, by_architecture, ladders, scaling, sizes_of, spread
from engine.models.sizes import ModelSize, format_parameters, model_size
from tests.unit.evaluation.by_hand import by_hand

MODELS = ("t5-big", "bert", "t5-mini", "gpt", "t5-twin")
SIZES = {
    "t5-big": ModelSize(2_000_000, 12, 4, "T5"),
    "bert": ModelSize(500_000, 4, 4, "BERT"),
    "t5-mini": ModelSize(200_000, 2, 4, "T5"),
    "gpt": ModelSize(600_000, 4, 4, "GPT-2"),
    "t5-twin": ModelSize(2_000_000, 6, 8, "T5"),
}
FOUND = by_hand(
    {(m, id, "complexity"): [place, place + 1] for place, m in enumerate(MODELS) for id in ("lime", "gradient")}
)


def test_a_ladder_is_an_architecture_of_several_sizes() -> None:
    assert ladders(SIZES) == {"T5": ["t5-mini", "t5-big", "t5-twin"]}
    assert ladders({name: SIZES[name] for name in ("t5-big", "t5-twin", "bert")}) == {}, "two models of one size"
    assert architectures(SIZES) == ["BERT", "GPT-2", "T5"]


def test_how_far_sizes_are_apart() -> None:
    assert spread(SIZES) == 10
    assert spread({}) == 1


def test_parameters_are_told_in_three_digits() -> None:
    told = {
        number: format_parameters(ModelSize(number, 1, 1, "T5"))
        for number in (987, 22_713_986, 999_600_000, 1_540_000_000)
    }
    assert list(told.values()) == [
        "987 parameters", "22.7 million parameters", "1 billion parameters", "1.54 billion parameters",
    ]  # fmt: skip


def test_scaling_goes_up_one_ladder() -> None:
    found = scaling(FOUND, "complexity", SIZES, methods=["lime"])
    assert [(one.score.model, one.score.value, one.size.parameters) for one in found] == [
        ("t5-mini", 2.5, 200_000), ("t5-big", 0.5, 2_000_000), ("t5-twin", 4.5, 2_000_000),
    ]  # fmt: skip
    assert all(one.score.n == 2 and one.score.interval is not None for one in found)
    assert scaling(FOUND, "complexity", SIZES, "T5", ["lime"]) == found
    assert scaling(FOUND, "complexity", SIZES, "BERT") == []
    assert scaling(FOUND, "complexity", {}) == []


def test_architectures_stand_together_the_smallest_model_first() -> None:
    found = by_architecture(FOUND, "complexity", SIZES)
    assert [one.score.model for one in found[::2]] == ["bert", "gpt", "t5-mini", "t5-big", "t5-twin"]
    assert [one.score.method for one in found[:2]] == ["lime", "gradient"], "as in the plan"


def test_sizes_are_those_of_the_files_and_what_has_none_says_why(tmp_path: Path) -> None:
    sizes, unknown = sizes_of(["reviews-minilm", str(tmp_path / "nothing")])
    assert sizes == {"reviews-minilm": model_size("reviews-minilm")}
    assert list(unknown) == [str(tmp_path / "nothing")]
    assert "\n" not in unknown[str(tmp_path / "nothing")]
