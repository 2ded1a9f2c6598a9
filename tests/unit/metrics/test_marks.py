"""What is marked, unit by unit: tokens, words, pairs, patches, and what was cut off."""

from __future__ import annotations

import numpy as np
import pytest

from engine.data.examples import LabelledExample
from engine.data.images.examples import ImageExample
from engine.explain import explain
from engine.metrics.marks import ALL, NOTHING, cut_off, marks_of_picture, marks_of_text, segments, undecided
from engine.request import Request
from engine.result import Explanation
from engine.vision.view import view_of
from engine.words import unit_scores
from tests.explaining import checkpoint
from tests.unit.images.making import vit_folder

pytestmark = pytest.mark.usefixtures("home")

TEXT = "unbelievably warm and funny"
WARM = LabelledExample(TEXT, rationale=((13, 17),))


def probe(labelled: LabelledExample, family: str = "bert") -> Explanation:
    return explain(Request(str(checkpoint(family)), "random", labelled.example))


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_a_word_is_marked_whole_and_tokens_where_they_touch_the_span(family: str) -> None:
    made = probe(WARM, family)
    assert marks_of_text(made, WARM, "word").tolist() == [False, True, False, False]
    tokens = marks_of_text(made, WARM)
    assert len(tokens) == len(unit_scores(made, WARM.example)) == len(made.features)
    named = [made.tokens[place] for place, mark in zip(made.features, tokens, strict=True) if mark]
    assert "".join(token.text for token in named) == "warm"


def test_part_of_a_word_marks_it() -> None:
    part = LabelledExample(TEXT, rationale=((0, 2), (23, 24)))
    assert marks_of_text(probe(part), part, "word").tolist() == [True, False, False, True]


def test_the_texts_of_a_pair_have_their_own_spans() -> None:
    pair = LabelledExample("good food", "bad service", rationale=((0, 4),), rationale_pair=((4, 11),))
    made = probe(pair)
    assert marks_of_text(made, pair, "word").tolist() == [True, False, False, True]
    assert segments(made, pair, "word") == [0, 0, 1, 1]
    assert len(segments(made, pair, "token")) == len(made.features)


def test_patches_are_those_of_the_models_view() -> None:
    pixels, mask = np.zeros((40, 60, 3), dtype=np.uint8), np.zeros((40, 60), dtype=bool)
    mask[:20, :30] = True
    found = marks_of_picture(str(vit_folder()), ImageExample(pixels, mask=mask))
    assert found is not None
    np.testing.assert_array_equal(found, view_of(str(vit_folder())).patches(mask).ravel())
    assert 0 < found.sum() < len(found)
    assert marks_of_picture(str(vit_folder()), ImageExample(pixels)) is None


def test_marks_beyond_what_the_model_reads_are_noticed() -> None:
    text = "warm " * 100 + "funny"
    late, early = (LabelledExample(text, rationale=(span,)) for span in ((500, 505), (0, 4)))
    made = probe(late)
    assert made.truncated > 0
    assert cut_off(made, late)
    assert not cut_off(made, early)
    assert not cut_off(probe(WARM), WARM)


def test_all_or_nothing_decides_nothing() -> None:
    assert undecided(np.array([False, False])) == NOTHING
    assert undecided(np.array([True])) == ALL
    assert undecided(np.array([True, False])) is None
