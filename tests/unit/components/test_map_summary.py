"""The sentence on maps: counts and rank correlations of hand-computed cases."""

from __future__ import annotations

import numpy as np
import pytest

from components.questions import count_in_top, describe_agreement, summary_html
from engine.metrics.ranking import FeatureScores


def scores(*values: float) -> FeatureScores:
    return np.array(values, dtype=np.float64)


def test_a_feature_counts_where_it_is_surely_in_the_top() -> None:
    maps = [scores(4, 3, 2, 1), scores(1, 2, 3, 4), scores(4, 3, 2, 1)]
    assert count_in_top(maps, 3) == [2, 3, 3, 1]
    assert count_in_top([scores(5, 1, 1, 0)], 2) == [1, 0, 0, 0]  # the second and the third are tied across the limit


@pytest.mark.parametrize(
    ("maps", "sentence"),
    [
        ([scores(1, 2, 3), scores(2, 4, 6)], "Rankings largely agree: Spearman ρ 1.00."),
        ([scores(1, 2, 3), scores(1, 3, 2)], "Rankings agree in part: Spearman ρ 0.50."),
        (
            [scores(1, 2, 3), scores(3, 2, 1), scores(1, 2, 3)],
            "Rankings disagree: median ρ −1.00 (3 pairs: −1.00 to 1.00).",
        ),
        (
            [scores(1, 2, 3, 4), scores(2, 1, 4, 3), scores(4, 3, 2, 1)],  # ρ: 0.6, −1, −0.6
            "Rankings disagree: median ρ −0.60 (3 pairs: −1.00 to 0.60).",
        ),
        ([scores(1, 2, 3, 4), scores(2, 4, 1, 3)], "Rankings agree little: Spearman ρ 0.00."),
    ],
)
def test_agreement_is_the_median_over_all_pairs_with_its_range(maps: list[FeatureScores], sentence: str) -> None:
    assert describe_agreement(maps) == sentence


def test_the_sentence_names_the_feature_of_most_methods_and_of_those_the_highest() -> None:
    maps = [scores(3, 4, 2, 1, 0, 0), scores(1, 4, 2, 3, 0, 0), scores(4, 3, 2, 1, 0, 0), scores(*[1] * 6)]
    html = summary_html(maps, ["a", "<b>", "c", "d", "e", "f"], "token")
    assert html.startswith(
        '<div class="xg"><p class="xg-summary">All 3 methods rank '
        "“<bdi>&lt;b&gt;</bdi>” in the top 2 of 6 tokens. Rankings "
    )
    assert html.endswith("Not counted: 1 method with equal scores.</p></div>")


def test_the_sentence_names_the_baselines_that_are_shown_but_not_counted() -> None:
    maps = [scores(3, 2, 1), scores(3, 2, 1)]
    names = ["a", "b", "c"]
    assert summary_html(maps, names, "token", ["Random"]).endswith(" ρ 1.00. Not counted: Random.</p></div>")
    both = summary_html([*maps, scores(1, 1, 1)], names, "token", ["<Random>"])
    assert both.endswith(" Not counted: &lt;Random&gt;, 1 method with equal scores.</p></div>")
    assert "Not counted" not in summary_html(maps, names, "token")


def test_features_of_as_many_methods_are_all_named() -> None:
    """Both are in both top twos and once first. If one is first twice, it is named alone."""
    names = ["a", "b", "c", "d", "e", "f"]
    html = summary_html([scores(3, 4, 0, 1, 0, 0), scores(4, 3, 1, 0, 0, 0)], names, "word")
    assert "Both methods rank “<bdi>a</bdi>” (also “<bdi>b</bdi>”) in the top 2 of 6 words." in html
    html = summary_html([scores(3, 4, 0, 1, 0, 0), scores(3, 4, 1, 0, 0, 0)], names, "word")
    assert "Both methods rank “<bdi>b</bdi>” in the top 2 of 6 words." in html


def test_a_piece_of_a_word_is_named_with_its_word() -> None:
    maps = [scores(1, 0, 2), scores(0, 1, 2)]
    html = summary_html(maps, ["an", "in", "<vent>"], "token", (), ["", "inventive", "in<vent>ive"])
    assert "Both methods rank “<bdi>&lt;vent&gt;</bdi>” of “<bdi>in&lt;vent&gt;ive</bdi>” first of 3 tokens." in html
    assert "of “" not in summary_html(maps, ["an", "in", "vent"], "token", (), ["", "in", ""])


def test_a_short_text_has_a_top_of_one() -> None:
    html = summary_html([scores(1, 0), scores(2, 1)], ["good", "film"], "word")
    assert "Both methods rank “<bdi>good</bdi>” first of 2 words." in html


def test_without_a_shared_top_the_sentence_says_so() -> None:
    html = summary_html([scores(1, 0, 0), scores(0, 1, 0)], ["a", "b", "c"], "patch")
    assert "The two methods do not rank the same patch first of 3 patches." in html


@pytest.mark.parametrize("maps", [[], [scores(1, 2)], [scores(1, 2), scores(3, 3)], [scores(1), scores(2)]])
def test_fewer_than_two_rankings_give_no_sentence(maps: list[FeatureScores]) -> None:
    assert summary_html(maps, ["a", "b"], "token") == ""
