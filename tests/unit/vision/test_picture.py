"""Superpixels of whole patches: by hand, by counting, and on pictures where SLIC cannot err."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import UsageError
from engine.removal import FeatureGroups
from engine.vision.picture import EncodedPicture, assign_patches, segment_picture, superpixels


def encoded(pixels: np.ndarray) -> EncodedPicture:
    """A picture of 8 x 8 patches with one special token before them."""
    height, width = pixels.shape[:2]
    values = np.zeros((3, height, width), dtype=np.float32)
    return EncodedPicture(pixels, values, (height // 8, width // 8), (8, 8), 1)


def halves(height: int = 24, width: int = 40) -> np.ndarray:
    """Red above, blue below, the border between two rows of patches."""
    pixels = np.zeros((height, width, 3), dtype=np.uint8)
    pixels[:16, :, 0], pixels[16:, :, 2] = 230, 230
    return pixels


def test_every_patch_is_a_part_of_its_own() -> None:
    parts = segment_picture(encoded(halves()), "patch", 3)
    assert (parts.count, parts.of_feature.tolist()) == (15, list(range(15)))
    assert parts.sizes.tolist() == [1] * 15


def test_superpixels_respect_what_the_picture_shows() -> None:
    parts = segment_picture(encoded(halves()), "slic", 6)
    grid = parts.of_feature.reshape(3, 5)
    assert not set(grid[:2].flat) & set(grid[2].flat)
    assert 2 <= parts.count < 15


def test_a_patch_belongs_to_the_superpixel_that_covers_most_of_it() -> None:
    labels = np.array([
        [7, 7, 7, 2, 2, 9],
        [7, 2, 2, 2, 2, 2],
        [7, 7, 4, 4, 5, 5],
        [2, 2, 4, 4, 5, 5],
    ])  # fmt: skip
    parts = assign_patches(labels, (2, 2))
    # 7 covers three of four; 2 three; 2 three; then a tie of 7 and 2, which is 2's; 4; 5. The superpixel 9 vanishes.
    assert parts.of_feature.tolist() == [3, 0, 0, 0, 1, 2]
    assert parts.sizes.tolist() == [3, 1, 1, 1]


def test_pixels_beyond_the_last_whole_patch_do_not_count() -> None:
    labels = np.zeros((5, 7), dtype=int)
    labels[4:], labels[:, 6:] = 1, 2
    assert assign_patches(labels, (2, 3)).of_feature.tolist() == [0, 0, 0, 0]


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(0, 10_000))
def test_parts_are_numbered_without_gaps_by_a_count_in_loops(
    rows: int, columns: int, height: int, width: int, seed: int
) -> None:
    labels = np.random.default_rng(seed).integers(0, 6, (rows * height, columns * width))
    parts = assign_patches(labels, (height, width))
    assert sorted(set(parts.of_feature.tolist())) == list(range(parts.count))
    owners = []
    for row in range(rows):
        for column in range(columns):
            inside = labels[row * height : (row + 1) * height, column * width : (column + 1) * width].ravel().tolist()
            owners.append(min(set(inside), key=lambda label: (-inside.count(label), label)))
    named = sorted(set(owners))
    assert parts.of_feature.tolist() == [named.index(owner) for owner in owners]


def test_masks_and_scores_of_parts_are_those_of_their_patches() -> None:
    parts = FeatureGroups(np.array([0, 0, 1, 2, 2, 2]))
    visible = parts.features(np.array([[True, False, True], [False, True, False]]))
    assert visible.astype(int).tolist() == [[1, 1, 0, 1, 1, 1], [0, 0, 1, 0, 0, 0]]
    scores = parts.shared_out(np.array([4.0, -1.0, 1.5]))
    assert scores.tolist() == [2, 2, -1, 0.5, 0.5, 0.5]
    assert scores.sum() == 4.5


def test_the_same_picture_has_the_same_superpixels() -> None:
    pixels = np.random.default_rng(3).integers(0, 256, (32, 48, 3), dtype=np.uint8)
    assert np.array_equal(superpixels(pixels, 20), superpixels(pixels.copy(), 20))


@pytest.mark.parametrize("n_segments", [1, 2, 15, 10_000])
def test_any_number_of_superpixels_can_be_asked_for(n_segments: int) -> None:
    for pixels in (halves(), np.full((24, 40, 3), 128, dtype=np.uint8)):
        parts = segment_picture(encoded(pixels), "slic", n_segments)
        assert 1 <= parts.count <= min(15, max(2, n_segments))


def test_unknown_parts_are_named() -> None:
    with pytest.raises(UsageError, match=r"segments: unknown name 'quickshift'\. Known: patch, slic"):
        segment_picture(encoded(halves()), "quickshift", 5)
