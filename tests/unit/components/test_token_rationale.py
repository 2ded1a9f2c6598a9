"""The human rationale as a row: by characters, full or empty, only where people marked the very text."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest

from components.method_row import RATIONALE, describe_mismatch, mark_units, method_row_html, rationale_rows
from components.palette import STEPS
from components.widgets.token_map import tip
from engine.data.datasets import load
from engine.data.examples import Dataset, LabeledExample
from engine.result import OTHERS, Prediction
from tests.unit.components.making import encoded, explanation

MARKED = LabeledExample("the acting is warm", label=1, rationale=((4, 10), (16, 18)))


@pytest.fixture(scope="module")
def data() -> Dataset:
    return replace(load("reviews"), examples=(MARKED, replace(MARKED, rationale=())))


def drawn(data: Dataset, unit: str = "token") -> str:
    [row] = rationale_rows(data, 0, explanation(MARKED.example), unit)
    return method_row_html(row)


def test_whatever_shares_a_character_with_a_span_is_marked() -> None:
    units = mark_units(encoded(MARKED.example, "the|act|ing|is|wa|rm"), MARKED, "token")
    assert [(unit.text, unit.score) for unit in units] == [
        ("[CLS]", 0), ("the", 0), ("act", 1), ("ing", 1), ("is", 0), ("wa", 0), ("rm", 1), ("[SEP]", 0)
    ]  # fmt: skip


def test_a_word_of_several_marked_tokens_is_marked_once() -> None:
    units = mark_units(encoded(MARKED.example, "the|act|ing|is|wa|rm"), MARKED, "word")
    assert [unit.score for unit in units] == [0, 0, 1, 0, 1, 0]


def test_the_second_text_has_its_own_spans() -> None:
    pair = LabeledExample("a b", "a b", rationale=((0, 1),), rationale_pair=((2, 3),))
    scores = [unit.score for unit in mark_units(encoded(pair.example), pair, "token")]
    assert scores == [0, 1, 0, 0, 0, 1, 0]


@pytest.mark.parametrize("unit", ["token", "word"])
def test_the_row_is_full_or_empty_and_says_where_it_comes_from(data: Dataset, unit: str) -> None:
    html = unescape(drawn(data, unit))
    assert re.findall(r'<b class="?(?:(m\d+) )?j\w\b', html) == ["", f"m{STEPS}", "", f"m{STEPS}"]
    assert RATIONALE in html
    assert "marked in the data set" in html
    assert "2 spans · from Reviews" in html
    assert data.card.limits in html


def test_hovering_says_marked_or_not_and_no_rank(data: Dataset) -> None:
    [row] = rationale_rows(data, 0, explanation(MARKED.example), "token")
    assert [tip(row.view, position).partition(": ")[2] for position in range(6)] == [
        "special token · index 0", "not marked · index 1", "marked · index 2", "not marked · index 3",
        "marked · index 4", "special token · index 5",
    ]  # fmt: skip


@pytest.mark.parametrize("index", [None, 1], ids=["own text", "nothing marked"])
def test_there_is_no_row_without_marks(data: Dataset, index: int | None) -> None:
    assert rationale_rows(data, index, explanation(MARKED.example), "token") == []


def test_a_model_of_another_task_gets_a_sentence_and_no_marks(data: Dataset) -> None:
    entails = Prediction(("entailment", "neutral", "contradiction"), (0.0, 1.0, 0.0), (0.2, 0.6, 0.2))
    score = Prediction(("quality",), (0.5,), (0.5,), regression=True)
    other = replace(explanation(MARKED.example), prediction=entails)
    assert rationale_rows(data, 0, other, "token") == []
    assert describe_mismatch(data, entails) == (
        "This model predicts entailment, neutral, contradiction, but Reviews has the labels negative, positive. "
        "Choose another model."
    )
    assert describe_mismatch(data, score).startswith("This model predicts a score, but Reviews has the labels")
    assert describe_mismatch(data, Prediction(("Positive", "Negative"), (0.0, 1.0), (0.3, 0.7))) == ""
    assert describe_mismatch(data, Prediction(("LABEL_0", "LABEL_1"), (0.0, 1.0), (0.3, 0.7))) == ""
    assert describe_mismatch(replace(data, label_names=()), entails) == ""
    tokens = Prediction((" The", " I", OTHERS), (0.0, 1.0, 0.5), (0.2, 0.5, 0.3))
    assert describe_mismatch(data, tokens).startswith("The model predicts the next token, not the data set's classes")


def test_every_review_has_at_least_one_marked_word() -> None:
    for labeled in load("reviews").examples:
        words = mark_units(encoded(labeled.example), labeled, "word")
        assert any(unit.score for unit in words), labeled.text


def test_marks_that_follow_from_how_the_text_was_made_are_not_called_a_persons() -> None:
    made = load("reviews-generated", limit=1)
    [row] = rationale_rows(made, 0, explanation(made[0].example), "word")
    assert (made.exact, load("reviews", limit=1).exact) == (True, False)
    assert row.caution.startswith("These words determine the label")
    [row] = rationale_rows(load("reviews", limit=1), 0, explanation(load("reviews")[0].example), "word")
    assert row.caution.startswith("Marked by the authors of Reviews.")
