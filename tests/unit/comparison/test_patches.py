"""Maps of one picture on common patches: by hand, with the sum kept, and the part of the picture that all see."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engine.comparison.patches import Box, on_common, picture_sheet, seen_box, shares
from engine.errors import ExegesisError
from engine.result import Explanation, Prediction, Provenance, Token
from engine.vision.view import read_view
from tests.unit.vision.tiny_vit import save_vit

WHOLE = Box(0.0, 0.0, 1.0, 1.0)
MIDDLE = Box(0.25, 0.25, 0.75, 0.75)


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
    sheet = picture_sheet([explained(one), explained(other)], [WHOLE, WHOLE])
    assert sheet.scores.tolist() == [[1, 2, 3, 4], [5, -6, 7, 8]]
    assert (sheet.grid, sheet.joined) == ((2, 2), 0)
    assert [part.text for part in sheet.parts][2] == "row 2, column 1"


def test_a_finer_grid_is_summed_on_the_coarser_one() -> None:
    fine = np.arange(16.0).reshape(4, 4)
    sheet = picture_sheet([explained(fine), explained(np.eye(2))], [WHOLE, WHOLE])
    blocks = [[fine[r : r + 2, c : c + 2].sum() for c in (0, 2)] for r in (0, 2)]
    assert sheet.scores[0].tolist() == pytest.approx(np.ravel(blocks).tolist())
    assert sheet.scores[1].tolist() == [1, 0, 0, 1]
    assert (sheet.grid, sheet.joined) == ((2, 2), 4)


def test_patches_that_cross_an_edge_are_shared_by_area() -> None:
    """Three patches on two: the middle one goes in halves to both."""
    assert shares(0, 1, 3, 0, 1, 2) == pytest.approx(np.array([[1, 0.5, 0], [0, 0.5, 1]]))
    scores = np.random.default_rng(0).normal(size=(3, 5))
    assert on_common(scores, WHOLE, WHOLE, 2, 2).sum() == pytest.approx(scores.sum())


def test_only_what_both_models_see_is_compared() -> None:
    fine = np.arange(16.0).reshape(4, 4)
    sheet = picture_sheet([explained(fine), explained(np.eye(2))], [WHOLE, MIDDLE])
    assert sheet.grid == (2, 2)
    assert sheet.scores[0].tolist() == pytest.approx(fine[1:3, 1:3].ravel().tolist())
    assert sheet.scores[1].tolist() == [1, 0, 0, 1]


def test_equal_scores_stay_equal() -> None:
    sheet = picture_sheet([explained(np.full((7, 7), 0.1)), explained(np.eye(3))], [WHOLE, WHOLE])
    assert len(set(sheet.scores[0].tolist())) == 1


def test_parts_that_do_not_overlap_cannot_be_compared() -> None:
    with pytest.raises(ExegesisError, match="do not overlap"):
        picture_sheet([explained(np.eye(2))] * 2, [Box(0.0, 0.0, 0.4, 1.0), Box(0.5, 0.0, 1.0, 1.0)])


def test_what_a_model_sees_follows_from_its_preprocessing(tmp_path: Path) -> None:
    assert seen_box(read_view(str(save_vit(tmp_path / "whole"))), 50, 100) == WHOLE
    cut = {"size": {"shortest_edge": 32}, "do_center_crop": True, "crop_size": {"height": 24, "width": 24}}
    cropped = read_view(str(save_vit(tmp_path / "cut", processor=cut)))
    assert seen_box(cropped, 50, 100) == Box(4 / 32, 20 / 64, 28 / 32, 44 / 64)
