"""Attention as bytes for a browser: how far a value can be off, what is shrunk, and that it is small and quick."""

from __future__ import annotations

import time
import zlib

import numpy as np
import pytest

from engine.errors import ExegesisError, UsageError
from engine.heads.grids import LIMIT, MASKED, from_bytes, grids, note_of, packed, shrunk, to_bytes, values

BANDS = (slice(0, 3), slice(3, 6))


def noisy(layers: int, heads: int, n: int, causal: bool = False, sharp: float = 1.0) -> np.ndarray:
    """Attention of random logits, in half precision as it is kept."""
    raw = np.exp(np.random.default_rng(0).normal(scale=sharp, size=(layers, heads, n, n)).astype(np.float32))
    raw[..., ~np.tri(n, dtype=bool) & causal] = np.nan
    return (raw / np.nansum(raw, -1, keepdims=True)).astype(np.float16)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scale", ["own", "shared"])
def test_a_value_comes_back_within_half_a_level(scale: str, causal: bool) -> None:
    attention = noisy(3, 4, 30, causal)
    again = from_bytes(to_bytes(grids(attention, scale)))
    tops = np.nanmax(attention, axis=(2, 3)).astype(float)
    tops = tops if scale == "own" else np.full_like(tops, tops.max())
    np.testing.assert_allclose(again.scale, tops, rtol=1e-6)
    found, expected = values(again), attention.astype(float)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    off = np.nanmax(np.abs(found - expected), axis=(2, 3))
    assert (off <= tops / 508 * (1 + 1e-4)).all()
    assert ((again.levels == MASKED) == np.isnan(expected)).all()
    assert (again.length, again.factor, grids(attention).note) == ((30, 30), 1, "")


def test_blocks_are_shrunk_to_their_largest_value() -> None:
    attention = noisy(1, 2, 7, causal=True)
    found = shrunk(attention, 3)
    assert found.shape == (1, 2, 3, 3)
    for row in range(3):
        for column in range(3):
            block = attention[..., row * 3 : row * 3 + 3, column * 3 : column * 3 + 3]
            expected = np.full((1, 2), np.nan) if column > row else np.nanmax(block, axis=(2, 3))
            np.testing.assert_array_equal(found[..., row, column], expected)


def test_a_long_text_is_shrunk_and_that_is_said() -> None:
    made = grids(noisy(1, 1, 512), side=200)
    assert made.levels.shape == (1, 1, 171, 171)
    assert made.note == "512 positions are drawn as 171 x 171 cells; each shows the largest of 3 x 3 values."


def test_a_rectangle_is_shrunk_by_one_factor_and_comes_back() -> None:
    rectangle = noisy(2, 3, 50)[:, :, :7]
    made = from_bytes(to_bytes(grids(rectangle, side=20)))
    assert (made.levels.shape, made.length, made.factor) == ((2, 3, 3, 17), (7, 50), 3)
    assert made.note == "7 queries and 50 keys are drawn as 3 x 17 cells; each shows the largest of 3 x 3 values."
    assert note_of(to_bytes(made)) == made.note
    expected = [rectangle[..., rows, columns].max((2, 3)) for rows in BANDS for columns in BANDS]
    corner = values(made)[:, :, :2, :2].reshape(2, 3, 4)
    np.testing.assert_allclose(corner, np.stack(expected, -1), atol=made.scale.max() / 507)
    whole = from_bytes(packed(rectangle))
    assert (whole.levels.shape, whole.factor) == ((2, 3, 7, 50), 1)


def test_a_rectangle_where_nothing_may_be_attended_to_is_masked() -> None:
    made = grids(noisy(1, 2, 6, causal=True)[:, :, :3, 3:])
    assert (made.levels == MASKED).all()
    assert made.scale.tolist() == [[1.0, 1.0]]


def test_a_noisy_base_model_fits_whole_and_fast() -> None:
    attention = noisy(12, 12, 197)
    started = time.process_time()
    body = packed(attention)
    assert time.process_time() - started < 3
    assert len(body) < LIMIT
    assert from_bytes(body).factor == 1


def test_what_no_compression_makes_smaller_is_shrunk_to_the_limit() -> None:
    chance = np.random.default_rng(0).random((4, 4, 100, 100)).astype(np.float16)
    body = packed(chance, limit=100_000)
    assert len(body) <= 100_000
    assert from_bytes(body).factor == 2
    assert packed(chance[:1, :1], limit=1)[:4] == b"EXH1"


def test_the_bytes_are_as_a_browser_reads_them() -> None:
    body = to_bytes(grids(np.array([[[[0.25, 0.75], [1.0, 0.0]]]], dtype=np.float32)))
    length = int.from_bytes(body[4:8], "little")
    assert (8 + length) % 4 == 0
    assert np.frombuffer(body[8 + length : 12 + length], "<f4").tolist() == [1.0]
    assert list(zlib.decompress(body[12 + length :])) == [64, 190, 254, 0]


def test_one_token_and_a_head_without_any_attention() -> None:
    assert values(grids(np.ones((1, 1, 1, 1)))).tolist() == [[[[1.0]]]]
    assert values(grids(np.zeros((1, 1, 2, 2)))).max() == 0


def test_what_is_wrong_is_told() -> None:
    with pytest.raises(UsageError, match="scale: unknown name 'mine'"):
        grids(noisy(1, 1, 2), "mine")
    with pytest.raises(ExegesisError, match=r"must have a value at least, got shape \(1, 1, 0, 2\)"):
        grids(noisy(1, 1, 2)[:, :, :0])
    with pytest.raises(ExegesisError, match="these bytes are none"):
        from_bytes(b"something else")
