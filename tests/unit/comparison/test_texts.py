"""Two texts explained by one model: the same class in both, the units that they share, and the order of these."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from engine.comparison.texts import FEWEST_SHARED, TwoTextMaps, other_request, two_text_maps, two_texts_to_json
from engine.explain import explain
from engine.request import Example, Prompt, Request
from engine.word_units import Unit, align, unit_scores
from tests.tiny import save_causal, save_checkpoint


@pytest.fixture(scope="module")
def causal(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_causal("llama", tmp_path_factory.mktemp("causal")))


@pytest.fixture(scope="module")
def classifier(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", Path(tmp_path_factory.mktemp("bert"))))


def units(*words: str, scores: tuple[float, ...]) -> tuple[Unit, ...]:
    return tuple(
        Unit(word, place, place, 0, False, score, (place,), False)
        for place, (word, score) in enumerate(zip(words, scores, strict=True))
    )


def test_both_prompts_explain_the_token_that_the_first_is_continued_with(causal: str) -> None:
    first, other = Prompt("The film was good."), Prompt("The film was bad.")
    request = Request(causal, "gradient_x_input", first)
    one = explain(request)
    two = explain(other_request(request, other, one.provenance))
    assert two.provenance.target_label == one.provenance.target_label
    maps = two_text_maps(one, two, (first, other), "word")
    shared = [column for column in maps.columns if column.kind == "kept"]
    assert [maps.first[column.parent or 0].text for column in shared][-3:] == ["The", "film", "was"]
    assert np.array_equal(maps.shared[0], unit_scores(one, first, "word")[-4:-1])
    assert maps.agreement == pytest.approx(stats.spearmanr(*maps.shared).statistic)
    plain = two_texts_to_json("gradient_x_input@m", two, maps)
    assert [unit["texts"] for unit in plain["units"]] == [
        ["The", "The"], ["film", "film"], ["was", "was"], ["good.", "bad."],
    ]  # fmt: skip
    assert [unit["shared"] for unit in plain["units"]] == [True, True, True, False]
    assert (plain["shared"], plain["column"]) == (3, "gradient_x_input@m")


def test_target_and_contrast_hold_for_both_prompts(causal: str) -> None:
    request = Request(causal, "random", Prompt("The film was good.", target=" bad", contrast=" film"))
    again = other_request(request, Prompt("The film.", contrast=" film"), explain(request).provenance)
    assert again.example == Prompt("The film.", target=" bad", contrast=" film")
    assert again.target is None


def test_a_classifier_explains_the_class_of_the_first_even_where_the_second_has_another(classifier: str) -> None:
    request = Request(classifier, "random", Example("good"), {}, "LABEL_0")
    again = other_request(request, Example("bad"), explain(request).provenance)
    assert (again.example, again.target) == (Example("bad"), 0)


def test_too_few_shared_units_and_equal_scores_have_no_order() -> None:
    first, second = units("a", "b", "c", scores=(1.0, 2.0, 3.0)), units("a", "b", "c", scores=(4.0, 2.0, 3.0))
    assert TwoTextMaps(first, second, align(first, second)).agreement == pytest.approx(-0.5)
    equal = units("a", "b", "c", scores=(1.0, 1.0, 1.0))
    assert TwoTextMaps(first, equal, align(first, equal)).agreement is None
    short = first[: FEWEST_SHARED - 1]
    assert TwoTextMaps(short, second, align(short, second)).agreement is None


def test_a_unit_of_one_text_alone_has_no_score_in_the_other() -> None:
    first, second = units("a", "b", scores=(1.0, 2.0)), units("a", scores=(5.0,))
    maps = TwoTextMaps(first, second, align(first, second))
    assert [(column.parent, column.child) for column in maps.columns] == [(0, 0), (1, None)]
    assert maps.shared.tolist() == [[1.0], [5.0]]
