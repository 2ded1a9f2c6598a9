"""The map of layers and heads by each score: its numbers, its sign, and the words for its meaning."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from components.attention.readings import (
    CAUTION,
    HeadAgreement,
    ablation_score_map,
    agreement_html,
    agreement_score_map,
    answer_html,
)
from components.widgets.attention_board import (
    BoardOptions,
    HeadScoreMap,
    describe_view,
    feature_maps,
    query_position,
)
from engine.heads import scores as head_scores
from engine.heads.readings import HeadAblation, HeadReading
from engine.request import Example
from engine.result import OTHERS
from tests.head_readings import reading, text_tokens
from tests.unit.components.making import explanation

EXAMPLE = Example("good food bad service here")
MAPS = [[[0.1, 0.2, 0.3, 0.15, 0.05], [0.3, 0.1, 0.2, 0.05, 0.15]], [[0.1] * 5, [0.05, 0.1, 0.2, 0.25, 0.3]]]
SCORES = [0.5, -0.9, 0.1, -0.2, 0.3]


def attending(causal: bool = False) -> HeadReading:
    """`MAPS`, alike from every query: what [CLS], five words and [SEP] receive."""
    tokens = text_tokens(["[CLS]", *EXAMPLE.text.split(), "[SEP]"])
    attention = np.full((2, 2, len(tokens), len(tokens)), 0.1)
    attention[..., 1:-1] = np.array(MAPS)[:, :, None]
    return reading(attention.astype(np.float16), tokens, causal=causal)


def score_map(id: str, values: list[list[float]]) -> HeadScoreMap:
    score = head_scores.SCORES.get(id, head_scores.AGREES)
    return HeadScoreMap(id, score.title, score.unit, score.signed, np.array(values), "", "")


def answer(id: str, values: list[list[float]], **options: object) -> str:
    return answer_html(score_map(id, values), replace(BoardOptions(), **options), attending(), EXAMPLE)  # type: ignore[arg-type]


def test_the_answer_names_the_head_with_the_largest_score_and_compares_it_with_the_median() -> None:
    # Sizes 0.1, 0.2, 0.4, 0.8: the median is 0.3, and 0.8 / 0.3 = 2.67.
    label = attending().explanation.provenance.target_label
    said = answer("importance", [[0.1, 0.2], [0.8, 0.4]])
    assert (
        f"<b>Layer 1, head 0 matters most for <i>{label}</i>: importance 0.8 logit, 2.67 times the median of " in said
    )
    assert said.endswith("of 4 heads.</b></p></div>")
    assert "Layer 0, head 1 has the largest value of entropy: 0.5 nats, 5 times the median of 3 heads." in (
        answer("entropy", [[0.1, 0.5], [np.nan, 0.1]])
    )  # fmt: skip


def test_the_answer_names_a_close_second_or_counts_the_close_ones() -> None:
    assert "heads. Close second: layer 1, head 1 (0.75).</b>" in answer("importance", [[0.1, 0.2], [0.8, 0.75]])
    assert "heads. 2 other heads are within 10% of it.</b>" in answer("importance", [[0.1, 0.8], [0.8, 0.75]])
    assert "lose" not in answer("importance", [[0.1, 0.2], [0.8, 0.7]])


def test_the_answer_says_the_direction_of_a_score_with_a_sign() -> None:
    said = answer("off", [[-0.3, 0.1], [0.1, 0.1]])
    assert "rises most without layer 0, head 0: by 0.3, 3 times the median size of 4 heads." in said
    assert "falls most without layer 0, head 0: by 0.3; the median size of 4 heads is 0." in (
        answer("off", [[0.3, 0.0], [0.0, 0.0]])
    )  # fmt: skip
    assert "in the opposite order: ρ = −0.6" in answer("agreement", [[-0.6, 0.1], [0.1, 0.1]])


def test_the_answer_is_about_visible_heads_and_does_not_make_up_a_difference() -> None:
    said = answer("importance", [[0.1, 0.2], [0.8, 0.4]], layers=(0,), heads=(1,))
    assert "Layer 0, head 1 matters most" in said
    assert "median" not in said
    for values in ([[0.0, 0.0], [0.0, 0.0]], [[np.nan, np.nan], [np.nan, np.nan]]):
        assert "No head differs from the others" in answer("importance", values)


def test_agreement_is_with_the_size_of_the_scores_of_words_alone() -> None:
    made, found = explanation(EXAMPLE, SCORES, method="integrated_gradients"), attending()
    shown = agreement_score_map(found, made, BoardOptions(view="received"))
    sizes = np.abs(SCORES)
    assert shown.values[0, 1] == pytest.approx(spearmanr(MAPS[0][1], sizes).statistic)
    assert shown.values[1, 1] == pytest.approx(spearmanr(MAPS[1][1], sizes).statistic)
    assert np.isnan(shown.values[1, 0])
    assert shown.signed
    assert shown.title == "Agreement with Integrated gradients"
    assert "received" in shown.words
    assert "and the absolute scores of Integrated gradients: +1" in shown.words


def test_maps_from_one_position_are_those_of_the_position_that_the_model_reads_unless_another_is_asked_for() -> None:
    found, options = attending(causal=True), BoardOptions(view="query")
    assert query_position(found, options) == 6
    assert not np.isnan(feature_maps(found, options)).any()
    asked = replace(options, query=3)
    shown = feature_maps(found, asked)[0, 0]
    np.testing.assert_allclose(shown[:3] / shown[0], np.array(MAPS[0][0][:3]) / MAPS[0][0][0], rtol=1e-2)
    assert np.isnan(feature_maps(found, asked)[..., 3:]).all()
    assert query_position(found, replace(options, query=99)) == 6
    assert describe_view(found, asked) == "the attention from “bad”"


def switched(off: list[list[list[float]]]) -> HeadAblation:
    return HeadAblation(np.array([0.2, 0.8]), np.array(off), 1, ("no", "yes"))


def test_without_a_head_the_probability_falls_and_flips_are_counted() -> None:
    shown = ablation_score_map(switched([[[0.6, 0.4], [0.1, 0.9]], [[0.2, 0.8], [0.7, 0.3]]]), regression=False)
    np.testing.assert_allclose(shown.values, [[0.4, -0.1], [0.0, 0.5]], atol=1e-12)
    assert shown.signed
    assert shown.unit == "probability"
    assert "The predicted class changes for 2 heads." in shown.words
    one = ablation_score_map(switched([[[0.6, 0.4], [0.1, 0.9]]]), regression=False)
    assert "The predicted class changes for 1 head." in one.words
    none = ablation_score_map(switched([[[0.3, 0.7]]]), regression=False)
    assert "The predicted class changes for no head." in none.words


def test_a_regression_head_has_a_score_and_no_classes() -> None:
    shown = ablation_score_map(
        HeadAblation(np.array([1.5]), np.array([[[2.0], [0.5]]]), 0, ("score",)), regression=True
    )
    np.testing.assert_allclose(shown.values, [[-0.5, 1.0]])
    assert shown.unit == "score"
    assert "predicted" not in shown.words


RHO = np.array([[0.9, 0.2], [np.nan, -0.85]])
FOUND = HeadAgreement("Integrated gradients", "the attention received", "token", 9, RHO, 0.8)


def text(found: HeadAgreement, head: tuple[int, int], kind: str = "text") -> str:
    return re.sub(r"<[^>]+>", "", agreement_html(found, head, kind))


def test_a_head_beyond_chance() -> None:
    said = text(FOUND, (0, 0))
    assert "Head 0.0, shown above: ρ = +0.9. Best: head 0.0, ρ = +0.9." in said
    assert "By chance, at least one of 4 heads has ρ above 0.8 or below −0.8 in 5% of texts." in said
    assert (
        "Here 1 head has ρ above 0.8 (the same order as Integrated gradients), and 1 head has ρ below −0.8 (the "
        "opposite order)." in said
    )
    verdict = "Head 0.0 agrees with Integrated gradients on the order of the tokens, significantly more than chance."
    assert verdict in said


@pytest.mark.parametrize("head", [(0, 1), (1, 0), (1, 1)])
def test_a_head_that_does_not_agree_is_said_to_be_no_explanation(head: tuple[int, int]) -> None:
    said = text(FOUND, head)
    assert (
        f"Head {head[0]}.{head[1]} does not agree with Integrated gradients significantly: do not read its map as an "
        "explanation." in said
    )
    assert ("its map is constant" in said) == (head == (1, 0))


def test_where_no_head_agrees() -> None:
    said = text(replace(FOUND, limit=0.95), (0, 0))
    assert (
        "Here no heads have ρ above 0.95 (the same order as Integrated gradients), and no heads have ρ below −0.95 "
        "(the opposite order)." in said
    )
    assert "No head agrees with Integrated gradients significantly: do not read attention as an explanation." in said


def test_too_few_features_are_said_to_be_too_few() -> None:
    said = text(replace(FOUND, limit=None, n=3, unit="patch"), (0, 0), "picture")
    assert "With 3 patches, not even the best of 4 heads can differ significantly from chance." in said
    assert "This picture is too short for the test" not in said
    assert "too few patches" in said


def test_flat_maps_and_flat_attributions() -> None:
    said = text(replace(FOUND, rho=np.full((2, 2), np.nan), limit=None), (0, 0))
    assert said == "Nothing to rank: all scores of Integrated gradients, or of each head's map, are equal."


def test_names_are_letters_and_no_markup() -> None:
    assert "<script>" not in agreement_html(replace(FOUND, view="the attention from “<script>”"), (0, 0), "text")


def test_the_caution_names_both_sides_of_the_question() -> None:
    assert "Jain and Wallace, 2019" in CAUTION
    assert "Wiegreffe and Pinter, 2019" in CAUTION


def test_other_tokens_together_are_never_the_class_that_is_predicted() -> None:
    off = np.array([[[0.3, 0.2, 0.5], [0.2, 0.3, 0.5]]])
    found = HeadAblation(np.array([0.4, 0.35, 0.25]), off, 0, (" a", " b", OTHERS))
    assert found.flipped.tolist() == [[False, True]]
