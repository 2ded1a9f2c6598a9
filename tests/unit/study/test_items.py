"""Items go by numbers that an organizer counts, and by the start of their texts."""

from __future__ import annotations

import pytest

from engine.request import Example
from engine.study.items import ELLIPSIS, MAX_CHARACTERS, item_names, item_pictures, text_start
from tests.unit.study.polls import open_study

pytestmark = pytest.mark.usefixtures("store")


def test_practice_is_counted_apart() -> None:
    study = open_study(items=2, practice=2)
    found = item_names(study.id)
    assert {place: one.name for place, one in found.items()} == {
        "0": "Practice 1", "1": "Practice 2", "2": "Item 1", "3": "Item 2",
    }  # fmt: skip
    assert found["2"].title == "Item 1: Text 2."
    assert found["2"].prediction.label == "good"
    assert item_pictures(study.id) == {}


def test_the_start_of_a_text_is_one_line_and_says_where_it_was_cut() -> None:
    assert text_start(Example("one\n two", "three")) == "one two / three"
    assert text_start(Example("x" * MAX_CHARACTERS)) == "x" * MAX_CHARACTERS
    assert text_start(Example("x" * (MAX_CHARACTERS + 1))) == "x" * MAX_CHARACTERS + ELLIPSIS
