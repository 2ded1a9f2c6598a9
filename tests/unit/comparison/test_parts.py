"""Maps of one text on common parts: by hand, where tokenizers cut alike, otherwise, and not to the end."""

from __future__ import annotations

import numpy as np
import pytest

from engine.comparison.parts import Sheet, text_sheet
from engine.request import Example
from tests.unit.components.making import explanation

WARM = Example("warmth stays")
WHOLE, LETTERS_OF_TWO = r"\w+", r"\w{1,2}"


def texts(sheet: Sheet) -> list[str]:
    return [part.text for part in sheet.parts]


def test_the_same_tokens_are_the_parts_as_they_are() -> None:
    sheet = text_sheet([explanation(WARM, [1.0, 2.0]), explanation(WARM, [-3.0, 4.0])], WARM, "token")
    assert texts(sheet) == ["warmth", "stays"]
    assert sheet.scores.tolist() == [[1.0, 2.0], [-3.0, 4.0]]
    assert (sheet.joined, sheet.unread(0)) == (0, 0)


def test_tokens_that_are_cut_otherwise_are_summed_where_they_overlap() -> None:
    cut = explanation(WARM, [1.0, 2.0, 4.0, 10.0, 20.0, 30.0], pieces=LETTERS_OF_TWO)
    sheet = text_sheet([explanation(WARM, [5.0, 6.0], pieces=WHOLE), cut], WARM, "token")
    assert texts(sheet) == ["warmth", "stays"]
    assert sheet.scores.tolist() == [[5.0, 6.0], [7.0, 60.0]]
    assert sheet.joined == 2


def test_pieces_that_cross_each_other_are_one_part() -> None:
    """wa|rmth and warm|th: no cut is shared but the end."""
    one = explanation(WARM, [1.0, 2.0, 3.0], pieces=r"wa|rmth|stays")
    other = explanation(WARM, [4.0, 5.0, 6.0], pieces=r"warm|th|stays")
    sheet = text_sheet([one, other], WARM, "token")
    assert texts(sheet) == ["warmth", "stays"]
    assert sheet.scores.tolist() == [[3.0, 3.0], [9.0, 6.0]]


def test_a_cut_that_all_share_stays() -> None:
    one = explanation(WARM, [1.0, 2.0, 3.0], pieces=r"warm|th|stays")
    other = explanation(WARM, [4.0, 5.0, 6.0, 7.0], pieces=r"wa|rm|th|stays")
    assert texts(text_sheet([one, other], WARM, "token")) == ["warm", "th", "stays"]
    assert texts(text_sheet([one, other], WARM, "word")) == ["warmth", "stays"]


def test_a_text_that_is_cut_off_has_parts_without_a_score() -> None:
    sheet = text_sheet([explanation(WARM, [1.0, 2.0]), explanation(WARM, [3.0], pieces="warmth")], WARM)
    assert sheet.unread(1) == 1
    assert np.isnan(sheet.scores[1, 1])
    assert sheet.scores[0].tolist() == [1.0, 2.0]


def test_texts_of_a_pair_never_mix() -> None:
    pair = Example("warmth", "warmth")
    sheet = text_sheet([explanation(pair, [1.0, 2.0]), explanation(pair, [3.0, 4.0])], pair)
    assert [(part.text, part.segment) for part in sheet.parts] == [("warmth", 0), ("warmth", 1)]
    assert sheet.scores.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_white_space_that_only_one_model_reads_is_a_part_of_its_own_so_that_nothing_is_lost() -> None:
    broken = Example("warmth\nstays")
    one = explanation(broken, [1.0, 9.0, 2.0], pieces=r"\w+|\n")
    other = explanation(broken, [3.0, 4.0])
    for unit in ("token", "word"):
        alone = text_sheet([one, other], broken, unit)
        assert texts(alone) == ["warmth", "⏎", "stays"]
        np.testing.assert_array_equal(alone.scores, [[1.0, 9.0, 2.0], [3.0, np.nan, 4.0]])
        assert (alone.blanks, alone.unread(1)) == (1, 0)
    both = text_sheet([one, one], broken, "token")
    assert [(part.text, part.blank) for part in both.parts] == [("warmth", False), ("⏎", True), ("stays", False)]


def test_words_of_a_baseline_get_an_order_of_their_own() -> None:
    """Summed, the ranks of many pieces would put the word first: it has the order of its first piece."""
    by_chance = explanation(WARM, [1.0, 6.0, 5.0, 2.0, 3.0, 4.0], pieces=LETTERS_OF_TWO, method="random")
    sheet = text_sheet([explanation(WARM, [5.0, 6.0], pieces=WHOLE), by_chance], WARM, "token")
    assert sheet.scores[1].tolist() == [1.0, 2.0]


def test_an_unspaced_script_is_joined_only_where_it_is_cut_otherwise() -> None:
    text = Example("好的电影")
    one = explanation(text, [1.0, 2.0, 3.0, 4.0], pieces=".")
    other = explanation(text, [5.0, 6.0, 7.0], pieces="好的|电|影")
    assert texts(text_sheet([one, other], text, "word")) == ["好的", "电", "影"]


def test_a_sheet_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="one a part, 0 expected"):
        Sheet((), np.zeros((1, 2)))
