"""The prediction without tokens: the meaning of each number, text that stays text, substitutes for pinned tokens."""

from __future__ import annotations

import re
from html import unescape

import pytest

from components.ablation import (
    PICTURE_WORDS,
    TEXT_WORDS,
    MethodClaim,
    ablation_html,
    change_bar,
    measure_claim,
    names_html,
    pinned_span,
    pinned_span_in_edit,
    removable_pins,
    substitute,
)
from engine.metrics.ablation import AblatedPrediction
from engine.registry import explainer
from engine.removal_operators import PATCH_OPERATORS
from engine.request import Example
from engine.result import Prediction
from tests.unit.components.making import encoded, explanation

TOKENS = encoded(Example("good food and bad service"))
WHOLE = Prediction(("negative", "positive"), (0.0, 1.0), (0.2, 0.8))


def left(positive: float) -> Prediction:
    return Prediction(WHOLE.labels, (1 - positive, positive), (1 - positive, positive))


def drawn(*answers: AblatedPrediction, claims: tuple[MethodClaim, ...] = (), chosen: tuple[int, ...] = (1,)) -> str:
    return ablation_html(TEXT_WORDS, 5, chosen, answers, claims, [TOKENS[place].text for place in chosen])


def rows(html: str) -> list[list[str]]:
    """The text of each cell of each row in the tables' bodies."""
    found = re.findall(r"<tr>(.*?)</tr>", "".join(re.findall(r"<tbody>(.*?)</tbody>", html)))
    return [
        [unescape(re.sub(r"<[^>]+>", "", one)) for one in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)]
        for row in found
    ]


def test_a_row_an_operator_below_the_whole_text() -> None:
    html = drawn(AblatedPrediction("mask", WHOLE, left(0.7), 1), AblatedPrediction("delete", WHOLE, left(0.35), 1))
    assert rows(html) == [
        ["not removed: the whole text", "80.0%", "", "positive"],
        ["the mask token in its place", "70.0%", "\u221210.0", "positive"],
        ["removed from the text", "35.0%", "\u221245.0", "negative, changed"],
    ]
    assert "<b><bdi>negative</bdi>, changed</b>" in html
    assert "probability of <bdi>positive</bdi>" in html
    assert "1 of 5 tokens, 20.0% of them." in html


def test_the_change_is_that_of_the_explained_class() -> None:
    [_, row] = rows(drawn(AblatedPrediction("mask", WHOLE, left(0.7), 0)))
    assert row[1:3] == ["30.0%", "+10.0"]


def test_a_regression_head_has_scores_and_no_class() -> None:
    whole, after = (Prediction(("quality",), (value,), (value,), regression=True) for value in (0.625, 0.5))
    html = drawn(AblatedPrediction("zero", whole, after, 0))
    assert rows(html)[1] == ["a zero embedding in its place", "+0.5", "\u22120.125"]
    assert "predicted" not in html


def test_next_to_no_change_is_next_to_no_bar_and_the_unit_is_said() -> None:
    html = drawn(AblatedPrediction("mask", WHOLE, left(0.7997), 1))
    assert "<th>change, percentage points</th>" in html
    assert "width:1.5%" in html, "0.03 percentage points of 1, in half a bar"
    whole, after = (Prediction(("quality",), (value,), (value,), regression=True) for value in (4.0, 3.99))
    assert "width:12.5%" in drawn(AblatedPrediction("zero", whole, after, 0)), "0.01 of 1% of the score"


def test_bars_start_in_the_middle_and_the_largest_fills_its_half() -> None:
    assert "xg-bar-for" in change_bar(0.1, 0.4)
    assert "inset-inline-start:50.0%;width:12.5%" in change_bar(0.1, 0.4)
    assert "xg-bar-against" in change_bar(-0.4, 0.4)
    assert "inset-inline-start:0.0%;width:50.0%" in change_bar(-0.4, 0.4)
    assert "width:0.0%" in change_bar(0.0, 0.0)


def test_a_claim_is_the_sum_and_the_share_by_size() -> None:
    made = explanation(Example("a b c d"), [1.0, -2.0, 3.0, -4.0])
    found = measure_claim(explainer("occlusion"), made, [2, 3])
    assert (found.total, found.share, found.signed) == (1.0, 0.5, True)
    assert measure_claim(explainer("occlusion"), explanation(Example("a b"), [0.0, 0.0]), [1]).share is None


def test_claims_stand_beside_the_facts() -> None:
    claims = (MethodClaim("Occlusion", -0.25, 0.125, True), MethodClaim("Random", 3.0, None, False))
    html = drawn(AblatedPrediction("mask", WHOLE, left(0.7), 1), claims=claims)
    assert rows(html)[2:] == [["Occlusion", "\u22120.25", "12.5%"], ["Random", "3", "none"]]
    assert html.count("<table") == 2
    assert drawn(AblatedPrediction("mask", WHOLE, left(0.7), 1)).count("<table") == 1


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["good"], "“good”"),
        (["good", "food"], "“good”, “food”"),
        (["a" * 30, "b" * 30, "c", "d"], f"“{'a' * 30}”, “{'b' * 30}” and 2 more"),
        (["a" * 80, "b"], f"“{'a' * 59}…” and 1 more"),
    ],
)
def test_as_many_names_as_fit(texts: list[str], expected: str) -> None:
    assert unescape(re.sub(r"</?bdi>", "", names_html(texts))) == expected


def test_text_and_labels_stay_text() -> None:
    evil = Prediction(("<i>x</i>", "b"), (1.0, 0.0), (0.9, 0.1))
    answers, names = [AblatedPrediction("mask", evil, evil, 0)], ["<script>alert(1)</script>", "&lt;"]
    html = ablation_html(TEXT_WORDS, 2, (1, 2), answers, [MethodClaim("<b>", 1.0, 1.0, True)], names)
    assert "<script" not in html
    assert "<i>x" not in html
    assert "“<bdi>&lt;script&gt;alert(1)&lt;/script&gt;</bdi>”, “<bdi>&amp;lt;</bdi>”" in html
    assert "<th>&lt;b&gt;</th>" in html


def test_only_tokens_of_the_text_count_as_pinned() -> None:
    assert removable_pins((0, 2, 6, 99), TOKENS) == (2,)
    assert removable_pins((), TOKENS) == ()


def test_a_picture_has_patches_and_its_own_operators() -> None:
    answers = [AblatedPrediction(removal, WHOLE, left(0.7), 1) for removal in PATCH_OPERATORS]
    html = ablation_html(PICTURE_WORDS, 196, (5,), answers, (), ["row 1, column 5"])
    assert [row[0] for row in rows(html)] == [
        "not removed: the whole picture",
        "the mean color in its place",
        "a zero embedding in its place",
        "blurred",
        "hidden from attention",
    ]
    assert "a removed patch is" in html
    assert "1 of 196 patches, 0.5% of them." in html
    assert "A picture with removed patches is unlike" in html


PARENT = Example("the warm film was good", "a b c")


def test_neighbors_of_one_text_can_be_replaced() -> None:
    tokens = encoded(PARENT)
    assert pinned_span(tokens, (2, 3)) == (0, 4, 13)
    assert pinned_span(tokens, (2, 4)) is None
    assert pinned_span(tokens, ()) is None
    assert pinned_span(tokens, (8,)) == (1, 2, 3)


@pytest.mark.parametrize(
    ("edit", "pins", "expected"),
    [
        ("the warm film was good", (5,), "good"),
        ("the cold film was good", (5,), "good"),
        ("the cold film was good", (2,), "cold"),
        ("a cold film was very bad", (5,), "very bad"),
        ("the warm film was good too", (5,), "good"),
        ("the cold soup was good", (2, 3), "cold soup"),
        ("the film was good", (2,), None),
        ("the film was good", (2, 3), "film"),
    ],
)
def test_pins_are_found_in_the_edited_text(edit: str, pins: tuple[int, ...], expected: str | None) -> None:
    span = pinned_span_in_edit(encoded(Example(edit, "a b c")), encoded(PARENT), pins)
    assert (None if span is None else edit[span[1] : span[2]]) == expected
    assert span is None or span[0] == 0


@pytest.mark.parametrize(
    ("span", "new", "expected"),
    [
        ((0, 4, 8), "cold", "the cold film was good"),
        ((0, 4, 8), " ", "the film was good"),
        ((0, 0, 3), "  ", "warm film was good"),
        ((0, 5, 6), " ", "the wrm film was good"),
    ],
)
def test_a_blank_deletes(span: tuple[int, int, int], new: str, expected: str) -> None:
    assert substitute(PARENT, span, new) == Example(expected, "a b c")


def test_the_second_text_can_be_replaced_too() -> None:
    assert substitute(PARENT, (1, 2, 3), "x") == Example(PARENT.text, "a x c")
