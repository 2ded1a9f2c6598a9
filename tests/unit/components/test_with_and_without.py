"""Two maps of one input, without and with changed heads: whether they agree, in words."""

from __future__ import annotations

import pytest

from components.attention.with_and_without import SIDES, agreement_words, how_to_read_html
from components.widgets.token_map.edited import change_html, edited_map, edited_map_html, predictions_html
from engine.registry import explainer
from engine.request import Example
from engine.result import Prediction
from tests.unit.components.making import explanation

TEXT = Example("good food <b>")
OLD, NEW = [0.5, -0.25, 0.1, 0.3, 0.2], [0.2, -0.5, 0.1, 0.4, 0.25]


def test_the_maps_of_one_text_have_one_scale_and_all_their_tokens() -> None:
    made = explanation(TEXT, OLD), explanation(TEXT, NEW)
    view = edited_map(explainer("occlusion"), *made, TEXT, TEXT, "token")
    html = edited_map_html(view)
    assert view.before.scale == view.after.scale == 0.5
    assert "ρ = +0.7 over 5 tokens" in html
    assert "largest change: «<bdi>good</bdi>» +0.5 → +0.2" in html
    assert "xg-changed" not in html


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (OLD, "ρ = +1 between the 5 scores of the two maps"),
        (NEW, "ρ = +0.7 between the 5 scores of the two maps"),
        ([0.0] * 5, "5 scores: no order, because all scores of a map are equal"),
    ],
)
def test_agreement_of_the_patches_in_words(new: list[float], said: str) -> None:
    assert agreement_words(explanation(TEXT, OLD), explanation(TEXT, new)) == said


def test_a_flip_and_the_change_in_points_are_told() -> None:
    before, after = (Prediction(("no", "yes"), (0.0, a), (1 - b, b)) for a, b in ((1.0, 0.75), (-1.0, 0.25)))
    html = predictions_html(before, after, 1, SIDES)
    assert all(side in html for side in SIDES)
    assert "\u221250.0 percentage points" in html
    assert "The predicted class changes from <bdi>yes</bdi> to <bdi>no</bdi>." in html


def test_a_regression_head_has_a_score() -> None:
    before, after = (Prediction(("stars",), (value,), (value,), regression=True) for value in (3.5, 2.0))
    assert change_html(before, after, 0) == "The score <bdi>stars</bdi> goes from +3.5 to +2, by <b>\u22121.5</b>."


def test_the_class_is_named_and_escaped() -> None:
    html = how_to_read_html(explanation(TEXT, OLD, labels=("no", "<yes>")))
    assert "the same class, <bdi>&lt;yes&gt;</bdi>, whatever is predicted" in html
