"""What stands in an edited text for pinned tokens, and other characters in its place."""

from __future__ import annotations

import pytest

from components.replacing import replaceable, replaceable_in, with_replaced
from engine.request import Example
from tests.unit.components.making import encoded

PARENT = Example("the warm film was good", "a b c")


def test_neighbours_of_one_text_can_be_replaced() -> None:
    tokens = encoded(PARENT)
    assert replaceable(tokens, (2, 3)) == (0, 4, 13)
    assert replaceable(tokens, (2, 4)) is None
    assert replaceable(tokens, ()) is None
    assert replaceable(tokens, (8,)) == (1, 2, 3)


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
    span = replaceable_in(encoded(Example(edit, "a b c")), encoded(PARENT), pins)
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
    assert with_replaced(PARENT, span, new) == Example(expected, "a b c")


def test_the_second_text_can_be_replaced_too() -> None:
    assert with_replaced(PARENT, (1, 2, 3), "x") == Example(PARENT.text, "a x c")
