"""Changed heads: one more change, a layer as one change, and two maps of one input, without and with the changes."""

from __future__ import annotations

import pytest

from components.attention.switches import (
    SIDES,
    describe_change,
    describe_map_agreement,
    head_scale,
    how_to_read_html,
    is_off,
    layer_heads,
    list_changes,
    set_scale,
)
from components.widgets.token_map.edited import change_html, edited_map, edited_map_html, predictions_html
from engine.registry import explainer
from engine.request import PLAIN, Example, HeadScales
from engine.result import Prediction
from tests.unit.components.making import explanation

SCALES = HeadScales(((0, 1, 0.0), (2, 0, 0.5), (2, 1, 0.5), (1, 1, 1.5)))


def test_a_head_that_is_not_named_is_as_it_is() -> None:
    assert head_scale(SCALES, (0, 1)) == 0
    assert head_scale(SCALES, (0, 0)) == 1


def test_one_more_change_leaves_the_others_as_they_are() -> None:
    assert set_scale(SCALES, [(0, 0)], 2.0).scales == ((0, 0, 2.0), *SCALES.scales)
    assert set_scale(SCALES, [(0, 1)], 0.25).scales[0] == (0, 1, 0.25)
    assert set_scale(PLAIN, layer_heads(3, 2), 0.0) == HeadScales.off([(3, 0), (3, 1)])


def test_every_change_taken_back_is_the_plain_model() -> None:
    left = SCALES
    for change in list_changes(SCALES, 2):
        left = set_scale(left, change.heads, 1.0)
    assert left == PLAIN
    assert not left


def test_a_layer_of_one_scale_is_one_change() -> None:
    told = [describe_change(change) for change in list_changes(SCALES, 2)]
    assert told == ["0.1 off", "1.1 × 1.5", "layer 2 × 0.5"]
    assert [describe_change(change) for change in list_changes(SCALES, 3)][2:] == ["2.0 × 0.5", "2.1 × 0.5"]
    assert [describe_change(change) for change in list_changes(HeadScales.off(layer_heads(0, 12)), 12)] == [
        "layer 0 off"
    ]
    assert [change.name for change in list_changes(HeadScales(((0, 0, 0.0), (0, 1, 0.5))), 2)] == ["0.0", "0.1"]


def test_a_layer_of_one_head_is_named_by_its_head() -> None:
    assert [change.name for change in list_changes(HeadScales(((4, 0, 0.0),)), 1)] == ["4.0"]
    assert list_changes(PLAIN, 4) == []


@pytest.mark.parametrize(("head", "off"), [((0, 1), True), ((0, 0), False), ((1, 1), False)])
def test_off_is_a_scale_of_nothing(head: tuple[int, int], off: bool) -> None:
    assert is_off(SCALES, [head]) is off


TEXT = Example("good food <b>")
OLD, NEW = [0.5, -0.25, 0.1, 0.3, 0.2], [0.2, -0.5, 0.1, 0.4, 0.25]


def test_the_maps_of_one_text_have_one_scale_and_all_their_tokens() -> None:
    made = explanation(TEXT, OLD), explanation(TEXT, NEW)
    view = edited_map(explainer("occlusion"), *made, TEXT, TEXT, "token")
    html = edited_map_html(view)
    assert view.before.scale == view.after.scale == 0.5
    assert "ρ = +0.7 over 5 tokens" in html
    assert "largest change: “<bdi>good</bdi>” +0.5 → +0.2" in html
    assert "xg-changed" not in html


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (OLD, "ρ = +1 between the 5 scores of the two maps"),
        (NEW, "ρ = +0.7 between the 5 scores of the two maps"),
        ([0.0] * 5, "5 scores: undefined, because all scores of a map are equal"),
    ],
)
def test_agreement_of_the_patches_in_words(new: list[float], said: str) -> None:
    assert describe_map_agreement(explanation(TEXT, OLD), explanation(TEXT, new)) == said


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
    html = how_to_read_html(explanation(TEXT, OLD, labels=("no", "<yes>")), TEXT)
    assert "the same class, <bdi>&lt;yes&gt;</bdi>, even where another is predicted" in html
