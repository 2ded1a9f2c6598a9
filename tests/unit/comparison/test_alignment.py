"""Maps of one input on common parts: by hand, where tokenizers and patches cut alike, otherwise, and not to the end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.comparison.alignment import (
    AlignedMaps,
    PictureBox,
    align_picture_maps,
    align_text_maps,
    patch_shares,
    to_common_grid,
    visible_box,
)
from engine.errors import ExegesisError
from engine.request import Example
from engine.result import Explanation, Prediction, Provenance, Token
from engine.vision.picture import read_view
from tests.unit.components.making import explanation
from tests.unit.vision.tiny_vit import save_vit

WARM = Example("warmth stays")
WHOLE, LETTERS_OF_TWO = r"\w+", r"\w{1,2}"


def texts(maps: AlignedMaps) -> list[str]:
    return [part.text for part in maps.parts]


def test_the_same_tokens_are_the_parts_as_they_are() -> None:
    maps = align_text_maps([explanation(WARM, [1.0, 2.0]), explanation(WARM, [-3.0, 4.0])], WARM, "token")
    assert texts(maps) == ["warmth", "stays"]
    assert maps.scores.tolist() == [[1.0, 2.0], [-3.0, 4.0]]
    assert (maps.joined, maps.unread(0)) == (0, 0)


def test_tokens_that_are_cut_otherwise_are_summed_where_they_overlap() -> None:
    cut = explanation(WARM, [1.0, 2.0, 4.0, 10.0, 20.0, 30.0], pieces=LETTERS_OF_TWO)
    maps = align_text_maps([explanation(WARM, [5.0, 6.0], pieces=WHOLE), cut], WARM, "token")
    assert texts(maps) == ["warmth", "stays"]
    assert maps.scores.tolist() == [[5.0, 6.0], [7.0, 60.0]]
    assert maps.joined == 2


def test_pieces_that_cross_each_other_are_one_part() -> None:
    """wa|rmth and warm|th: no cut is shared but the end."""
    one = explanation(WARM, [1.0, 2.0, 3.0], pieces=r"wa|rmth|stays")
    other = explanation(WARM, [4.0, 5.0, 6.0], pieces=r"warm|th|stays")
    maps = align_text_maps([one, other], WARM, "token")
    assert texts(maps) == ["warmth", "stays"]
    assert maps.scores.tolist() == [[3.0, 3.0], [9.0, 6.0]]


def test_a_cut_that_all_share_stays() -> None:
    one = explanation(WARM, [1.0, 2.0, 3.0], pieces=r"warm|th|stays")
    other = explanation(WARM, [4.0, 5.0, 6.0, 7.0], pieces=r"wa|rm|th|stays")
    assert texts(align_text_maps([one, other], WARM, "token")) == ["warm", "th", "stays"]
    assert texts(align_text_maps([one, other], WARM, "word")) == ["warmth", "stays"]


def test_a_text_that_is_cut_off_has_parts_without_a_score() -> None:
    maps = align_text_maps([explanation(WARM, [1.0, 2.0]), explanation(WARM, [3.0], pieces="warmth")], WARM)
    assert maps.unread(1) == 1
    assert np.isnan(maps.scores[1, 1])
    assert maps.scores[0].tolist() == [1.0, 2.0]


def test_texts_of_a_pair_never_mix() -> None:
    pair = Example("warmth", "warmth")
    maps = align_text_maps([explanation(pair, [1.0, 2.0]), explanation(pair, [3.0, 4.0])], pair)
    assert [(part.text, part.segment) for part in maps.parts] == [("warmth", 0), ("warmth", 1)]
    assert maps.scores.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_white_space_that_only_one_model_reads_is_a_part_of_its_own_so_that_nothing_is_lost() -> None:
    broken = Example("warmth\nstays")
    one = explanation(broken, [1.0, 9.0, 2.0], pieces=r"\w+|\n")
    other = explanation(broken, [3.0, 4.0])
    for unit in ("token", "word"):
        alone = align_text_maps([one, other], broken, unit)
        assert texts(alone) == ["warmth", "⏎", "stays"]
        np.testing.assert_array_equal(alone.scores, [[1.0, 9.0, 2.0], [3.0, np.nan, 4.0]])
        assert (alone.blanks, alone.unread(1)) == (1, 0)
    both = align_text_maps([one, one], broken, "token")
    assert [(part.text, part.blank) for part in both.parts] == [("warmth", False), ("⏎", True), ("stays", False)]


def test_words_of_a_baseline_get_an_order_of_their_own() -> None:
    """Summed, the ranks of many pieces would put the word first: it has the order of its first piece."""
    by_chance = explanation(WARM, [1.0, 6.0, 5.0, 2.0, 3.0, 4.0], pieces=LETTERS_OF_TWO, method="random")
    maps = align_text_maps([explanation(WARM, [5.0, 6.0], pieces=WHOLE), by_chance], WARM, "token")
    assert maps.scores[1].tolist() == [1.0, 2.0]


def test_an_unspaced_script_is_joined_only_where_it_is_cut_otherwise() -> None:
    text = Example("好的电影")
    one = explanation(text, [1.0, 2.0, 3.0, 4.0], pieces=".")
    other = explanation(text, [5.0, 6.0, 7.0], pieces="好的|电|影")
    assert texts(align_text_maps([one, other], text, "word")) == ["好的", "电", "影"]


def test_maps_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="one per part, 0 expected"):
        AlignedMaps((), np.zeros((1, 2)))


WHOLE_PICTURE = PictureBox(0.0, 0.0, 1.0, 1.0)
MIDDLE = PictureBox(0.25, 0.25, 0.75, 0.75)


def explained(scores: np.ndarray, method: str = "occlusion") -> Explanation:
    rows, columns = scores.shape
    places = [Token(f"{at}", at, at + 1, 0, False) for at in range(rows * columns)]
    return Explanation(
        (Token("[CLS]", 0, 0, -1, True), *places), np.array([0.0, *scores.ravel()]),
        Prediction(("cat", "dog"), (0.0, 1.0), (0.3, 0.7)),
        Provenance("model", "0123", method, 1, {}, 1, "dog", 0, "float32", "cpu"), 1, 0.1, grid=(rows, columns),
    )  # fmt: skip


def test_equal_grids_stay_as_they_are() -> None:
    one, other = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[5.0, -6.0], [7.0, 8.0]])
    maps = align_picture_maps([explained(one), explained(other)], [WHOLE_PICTURE, WHOLE_PICTURE])
    assert maps.scores.tolist() == [[1, 2, 3, 4], [5, -6, 7, 8]]
    assert (maps.grid, maps.joined) == ((2, 2), 0)
    assert [part.text for part in maps.parts][2] == "row 2, column 1"


def test_a_finer_grid_is_summed_on_the_coarser_one() -> None:
    fine = np.arange(16.0).reshape(4, 4)
    maps = align_picture_maps([explained(fine), explained(np.eye(2))], [WHOLE_PICTURE, WHOLE_PICTURE])
    blocks = [[fine[r : r + 2, c : c + 2].sum() for c in (0, 2)] for r in (0, 2)]
    assert maps.scores[0].tolist() == pytest.approx(np.ravel(blocks).tolist())
    assert maps.scores[1].tolist() == [1, 0, 0, 1]
    assert (maps.grid, maps.joined) == ((2, 2), 4)


def test_patches_that_cross_an_edge_are_shared_by_area() -> None:
    """Three patches on two: the middle one goes in halves to both."""
    assert patch_shares(0, 1, 3, 0, 1, 2) == pytest.approx(np.array([[1, 0.5, 0], [0, 0.5, 1]]))
    scores = np.random.default_rng(0).normal(size=(3, 5))
    assert to_common_grid(scores, WHOLE_PICTURE, WHOLE_PICTURE, 2, 2).sum() == pytest.approx(scores.sum())


def test_only_what_both_models_see_is_compared() -> None:
    fine = np.arange(16.0).reshape(4, 4)
    maps = align_picture_maps([explained(fine), explained(np.eye(2))], [WHOLE_PICTURE, MIDDLE])
    assert maps.grid == (2, 2)
    assert maps.scores[0].tolist() == pytest.approx(fine[1:3, 1:3].ravel().tolist())
    assert maps.scores[1].tolist() == [1, 0, 0, 1]


def test_equal_scores_stay_equal() -> None:
    maps = align_picture_maps([explained(np.full((7, 7), 0.1)), explained(np.eye(3))], [WHOLE_PICTURE, WHOLE_PICTURE])
    assert len(set(maps.scores[0].tolist())) == 1


def test_parts_that_do_not_overlap_cannot_be_compared() -> None:
    with pytest.raises(ExegesisError, match="do not overlap"):
        align_picture_maps([explained(np.eye(2))] * 2, [PictureBox(0.0, 0.0, 0.4, 1.0), PictureBox(0.5, 0.0, 1.0, 1.0)])


def test_what_a_model_sees_follows_from_its_preprocessing(tmp_path: Path) -> None:
    assert visible_box(read_view(str(save_vit(tmp_path / "whole"))), 50, 100) == WHOLE_PICTURE
    cut = {"size": {"shortest_edge": 32}, "do_center_crop": True, "crop_size": {"height": 24, "width": 24}}
    cropped = read_view(str(save_vit(tmp_path / "cut", processor=cut)))
    assert visible_box(cropped, 50, 100) == PictureBox(4 / 32, 20 / 64, 28 / 32, 44 / 64)
