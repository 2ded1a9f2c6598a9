"""How like two maps are: scikit-image as the witness of SSIM, the rest by hand."""

from __future__ import annotations

import numpy as np
import pytest
from skimage.metrics import structural_similarity

from engine.randomization.result import FLAT_AFTER, FLAT_BEFORE, likeness, no_order, ssim


@pytest.mark.parametrize(("shape", "window"), [((14, 14), 7), ((8, 6), 5), ((9, 7), 7), ((3, 4), 3)])
@pytest.mark.parametrize("signed", [True, False])
def test_ssim_is_that_of_scikit_image(shape: tuple[int, int], window: int, signed: bool) -> None:
    draw = np.random.default_rng(0)
    one, noise = (draw.normal(size=shape) if signed else draw.random(shape) for _ in range(2))
    other, spread = one + noise / 2, 2.0 if signed else 1.0
    scaled = [picture / np.abs(picture).max() for picture in (one, other)]
    expected = structural_similarity(*scaled, win_size=window, data_range=spread)
    assert ssim(one, other, spread) == pytest.approx(float(expected), abs=1e-9)
    assert ssim(one, 3 * one, spread) == pytest.approx(1, abs=1e-12)


def test_a_grid_too_small_for_a_window_has_no_ssim() -> None:
    assert ssim(np.eye(2), np.eye(2), 1.0) is None


def test_rank_sizes_and_top_by_hand() -> None:
    before, after = np.array([3.0, 2.0, 1.0, -4.0]), np.array([-3.0, -2.0, -1.0, 4.0])
    rho, sizes, top, seen = likeness(before, after, None, signed=True)
    assert (rho, sizes, top) == pytest.approx((-1, 1, 0))
    assert np.isnan(seen)
    same = likeness(before, 2 * before, (2, 2), signed=True)
    assert same[:3] == pytest.approx(1)


def test_a_flat_map_is_no_map_to_compare() -> None:
    flat, other = np.ones(3), np.array([1.0, 2.0, 3.0])
    assert (no_order(flat, other), no_order(other, flat), no_order(other, other)) == (FLAT_BEFORE, FLAT_AFTER, "")
