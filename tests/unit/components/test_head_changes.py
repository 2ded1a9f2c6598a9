"""Which heads are changed, and what one more change makes of that."""

from __future__ import annotations

import pytest

from components.attention.head_changes import changes, in_words, is_off, of_layer, scale_of, with_scale
from engine.heads.scales import PLAIN, HeadScales

SCALES = HeadScales(((0, 1, 0.0), (2, 0, 0.5), (2, 1, 0.5), (1, 1, 1.5)))


def test_a_head_that_is_not_named_is_as_it_is() -> None:
    assert scale_of(SCALES, (0, 1)) == 0
    assert scale_of(SCALES, (0, 0)) == 1


def test_one_more_change_leaves_the_others_as_they_are() -> None:
    assert with_scale(SCALES, [(0, 0)], 2.0).scales == ((0, 0, 2.0), *SCALES.scales)
    assert with_scale(SCALES, [(0, 1)], 0.25).scales[0] == (0, 1, 0.25)
    assert with_scale(PLAIN, of_layer(3, 2), 0.0) == HeadScales.off([(3, 0), (3, 1)])


def test_every_change_taken_back_is_the_plain_model() -> None:
    left = SCALES
    for change in changes(SCALES, 2):
        left = with_scale(left, change.heads, 1.0)
    assert left == PLAIN
    assert not left


def test_a_layer_of_one_scale_is_one_change() -> None:
    told = [in_words(change) for change in changes(SCALES, 2)]
    assert told == ["0.1 off", "1.1 × 1.5", "layer 2 × 0.5"]
    assert [in_words(change) for change in changes(SCALES, 3)][2:] == ["2.0 × 0.5", "2.1 × 0.5"]
    assert [in_words(change) for change in changes(HeadScales.off(of_layer(0, 12)), 12)] == ["layer 0 off"]
    assert [change.name for change in changes(HeadScales(((0, 0, 0.0), (0, 1, 0.5))), 2)] == ["0.0", "0.1"]


def test_a_layer_of_one_head_is_named_by_its_head() -> None:
    assert [change.name for change in changes(HeadScales(((4, 0, 0.0),)), 1)] == ["4.0"]
    assert changes(PLAIN, 4) == []


@pytest.mark.parametrize(("head", "off"), [((0, 1), True), ((0, 0), False), ((1, 1), False)])
def test_off_is_a_scale_of_nothing(head: tuple[int, int], off: bool) -> None:
    assert is_off(SCALES, [head]) is off
