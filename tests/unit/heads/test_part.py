"""Which positions a matrix shows: a pair's texts and special tokens, against places counted by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from engine.errors import ExegesisError, UsageError
from engine.heads.part import OTHER_TEXT, UNSEEN, WITHOUT_SPECIAL, cut, part_of
from engine.heads.reading import HeadReading, read_heads
from engine.request import Example, Request
from engine.result import Explanation, Token
from tests.explaining import checkpoint
from tests.unit.images.making import blobs, vit_folder

pytestmark = pytest.mark.usefixtures("home")

PAIR = Example("good food", "bad view")
A_TO_B = OTHER_TEXT.format("the first text", "the second text")
B_TO_A = OTHER_TEXT.format("the second text", "the first text")


def reading(kind: str = "bert", example: Example = PAIR) -> HeadReading:
    return read_heads(Request(str(checkpoint(kind)), "random", example))


def texts(found: HeadReading) -> list[str]:
    return [token.text for token in found.of.tokens]


def test_a_pair_is_cut_between_its_texts() -> None:
    found = reading()
    assert texts(found) == ["[CLS]", "good", "food", "[SEP]", "bad", "view", "[SEP]"]
    whole = part_of(found)
    assert (whole.rows, whole.columns, whole.note) == (tuple(range(7)), tuple(range(7)), "")
    assert cut(found.attention, whole) is found.attention
    there, back = part_of(found, "a_to_b"), part_of(found, "b_to_a")
    assert (there.rows, there.columns, there.note) == ((0, 1, 2, 3), (4, 5, 6), A_TO_B)
    assert (back.rows, back.columns, back.note) == ((4, 5, 6), (0, 1, 2, 3), B_TO_A)
    shown = cut(found.attention, back)
    assert shown.shape == (3, 4, 3, 4)
    np.testing.assert_array_equal(shown, found.attention[:, :, 4:7, 0:4])


def test_special_tokens_are_left_out_and_nothing_is_normalised() -> None:
    found = reading()
    part = part_of(found, special=False)
    assert (part.rows, part.columns, part.note) == ((1, 2, 4, 5), (1, 2, 4, 5), WITHOUT_SPECIAL)
    shown = cut(found.attention, part)
    assert shown[2, 1, 3, 0] == found.attention[2, 1, 5, 1]
    assert (shown.sum(-1, dtype=float) < 1).all()
    between = part_of(found, "a_to_b", special=False)
    assert (between.rows, between.columns, between.note) == ((1, 2), (4, 5), A_TO_B)


def test_a_causal_model_says_that_the_first_text_cannot_see_the_second() -> None:
    found = reading("gpt2")
    part = part_of(found, "a_to_b")
    assert np.isnan(cut(found.attention, part)).all()
    assert part.note == f"{A_TO_B} {UNSEEN}"
    assert UNSEEN not in part_of(found, "b_to_a").note
    assert part_of(found, special=False).note == ("" if not found.special.any() else WITHOUT_SPECIAL)


def test_a_picture_has_patches_and_no_second_text() -> None:
    found = read_heads(Request(str(vit_folder()), "random", blobs()))
    n = len(found.of.tokens)
    assert part_of(found, special=False).rows == tuple(range(1, n))
    with pytest.raises(UsageError, match="between: must be 'all' for a picture"):
        part_of(found, "a_to_b")


def test_what_cannot_be_shown_is_told() -> None:
    with pytest.raises(UsageError, match="between: must be 'all' where there is no second text"):
        part_of(reading(example=Example("good food")), "a_to_b")
    with pytest.raises(UsageError, match=r"between: unknown name 'a_to_c'.*Did you mean 'a_to_b'"):
        part_of(reading(), "a_to_c")
    empty = of_tokens(reading(), "special", "special")
    with pytest.raises(ExegesisError, match="special: this input has special tokens only"):
        part_of(empty, special=False)
    with pytest.raises(ExegesisError, match="between: the first text has no tokens"):
        part_of(of_tokens(empty, "special", "b"), "b_to_a")


def of_tokens(found: HeadReading, *kinds: str) -> HeadReading:
    """The reading with other tokens: special ones, or of the first or the second text."""
    segments = {"special": -1, "a": 0, "b": 1}
    tokens = tuple(Token(kind, 0, 1, segments[kind], kind == "special") for kind in kinds)
    made: Explanation = dataclasses.replace(found.of, tokens=tokens, scores=np.zeros(len(tokens)))
    return dataclasses.replace(found, of=made)
