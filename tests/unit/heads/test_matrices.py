"""Attention matrices for a browser: which positions are shown, how far a value can be off, what is shrunk."""

from __future__ import annotations

import dataclasses
import time
import zlib

import numpy as np
import pytest

from engine.errors import ExegesisError, UsageError
from engine.heads.matrices import (
    LIMIT,
    MASKED,
    OTHER_TEXT,
    UNSEEN,
    WITHOUT_SPECIAL,
    from_bytes,
    pack_heads,
    quantize,
    read_note,
    select,
    select_positions,
    shrink,
    to_bytes,
)
from engine.heads.readings import HeadReading, read_heads
from engine.request import Example, Request
from engine.result import Explanation, Token
from tests.explaining import checkpoint
from tests.head_readings import dequantize
from tests.unit.vision.tiny_vit import blobs, vit_folder

pytestmark = pytest.mark.usefixtures("home")

PAIR = Example("good food", "bad view")
A_TO_B = OTHER_TEXT.format("the first text", "the second text")
B_TO_A = OTHER_TEXT.format("the second text", "the first text")


def reading(kind: str = "bert", example: Example = PAIR) -> HeadReading:
    return read_heads(Request(str(checkpoint(kind)), "random", example))


def texts(found: HeadReading) -> list[str]:
    return [token.text for token in found.explanation.tokens]


def test_a_pair_is_cut_between_its_texts() -> None:
    found = reading()
    assert texts(found) == ["[CLS]", "good", "food", "[SEP]", "bad", "view", "[SEP]"]
    whole = select_positions(found)
    assert (whole.rows, whole.columns, whole.note) == (tuple(range(7)), tuple(range(7)), "")
    assert select(found.attention, whole) is found.attention
    there, back = select_positions(found, "a_to_b"), select_positions(found, "b_to_a")
    assert (there.rows, there.columns, there.note) == ((0, 1, 2, 3), (4, 5, 6), A_TO_B)
    assert (back.rows, back.columns, back.note) == ((4, 5, 6), (0, 1, 2, 3), B_TO_A)
    shown = select(found.attention, back)
    assert shown.shape == (3, 4, 3, 4)
    np.testing.assert_array_equal(shown, found.attention[:, :, 4:7, 0:4])


def test_special_tokens_are_left_out_and_nothing_is_normalised() -> None:
    found = reading()
    part = select_positions(found, special=False)
    assert (part.rows, part.columns, part.note) == ((1, 2, 4, 5), (1, 2, 4, 5), WITHOUT_SPECIAL)
    shown = select(found.attention, part)
    assert shown[2, 1, 3, 0] == found.attention[2, 1, 5, 1]
    assert (shown.sum(-1, dtype=float) < 1).all()
    between = select_positions(found, "a_to_b", special=False)
    assert (between.rows, between.columns, between.note) == ((1, 2), (4, 5), A_TO_B)


def test_a_causal_model_says_that_the_first_text_cannot_see_the_second() -> None:
    found = reading("gpt2")
    part = select_positions(found, "a_to_b")
    assert np.isnan(select(found.attention, part)).all()
    assert part.note == f"{A_TO_B} {UNSEEN}"
    assert UNSEEN not in select_positions(found, "b_to_a").note
    assert select_positions(found, special=False).note == ("" if not found.special.any() else WITHOUT_SPECIAL)


def test_a_picture_has_patches_and_no_second_text() -> None:
    found = read_heads(Request(str(vit_folder()), "random", blobs()))
    n = len(found.explanation.tokens)
    assert select_positions(found, special=False).rows == tuple(range(1, n))
    with pytest.raises(UsageError, match="between: must be 'all' for a picture"):
        select_positions(found, "a_to_b")


def test_what_cannot_be_shown_is_told() -> None:
    with pytest.raises(UsageError, match="between: must be 'all' if there is no second text"):
        select_positions(reading(example=Example("good food")), "a_to_b")
    with pytest.raises(UsageError, match=r"between: unknown name 'a_to_c'.*Did you mean 'a_to_b'"):
        select_positions(reading(), "a_to_c")
    empty = of_tokens(reading(), "special", "special")
    with pytest.raises(ExegesisError, match="special: this input has special tokens only"):
        select_positions(empty, special=False)
    with pytest.raises(ExegesisError, match="between: the first text has no tokens"):
        select_positions(of_tokens(empty, "special", "b"), "b_to_a")


def of_tokens(found: HeadReading, *kinds: str) -> HeadReading:
    """The reading with other tokens: special ones, or of the first or the second text."""
    segments = {"special": -1, "a": 0, "b": 1}
    tokens = tuple(Token(kind, 0, 1, segments[kind], kind == "special") for kind in kinds)
    made: Explanation = dataclasses.replace(found.explanation, tokens=tokens, scores=np.zeros(len(tokens)))
    return dataclasses.replace(found, explanation=made)


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
    again = from_bytes(to_bytes(quantize(attention, scale)))
    tops = np.nanmax(attention, axis=(2, 3)).astype(float)
    tops = tops if scale == "own" else np.full_like(tops, tops.max())
    np.testing.assert_allclose(again.scale, tops, rtol=1e-6)
    found, expected = dequantize(again), attention.astype(float)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    off = np.nanmax(np.abs(found - expected), axis=(2, 3))
    assert (off <= tops / 508 * (1 + 1e-4)).all()
    assert ((again.levels == MASKED) == np.isnan(expected)).all()
    assert (again.length, again.factor, quantize(attention).note) == ((30, 30), 1, "")


def test_blocks_are_shrunk_to_their_largest_value() -> None:
    attention = noisy(1, 2, 7, causal=True)
    found = shrink(attention, 3)
    assert found.shape == (1, 2, 3, 3)
    for row in range(3):
        for column in range(3):
            block = attention[..., row * 3 : row * 3 + 3, column * 3 : column * 3 + 3]
            expected = np.full((1, 2), np.nan) if column > row else np.nanmax(block, axis=(2, 3))
            np.testing.assert_array_equal(found[..., row, column], expected)


def test_a_long_text_is_shrunk_and_that_is_said() -> None:
    made = quantize(noisy(1, 1, 512), side=200)
    assert made.levels.shape == (1, 1, 171, 171)
    assert made.note == "512 positions are drawn as 171 x 171 cells; each shows the largest of 3 x 3 values."


def test_a_rectangle_is_shrunk_by_one_factor_and_comes_back() -> None:
    rectangle = noisy(2, 3, 50)[:, :, :7]
    made = from_bytes(to_bytes(quantize(rectangle, side=20)))
    assert (made.levels.shape, made.length, made.factor) == ((2, 3, 3, 17), (7, 50), 3)
    assert made.note == "7 queries and 50 keys are drawn as 3 x 17 cells; each shows the largest of 3 x 3 values."
    assert read_note(to_bytes(made)) == made.note
    expected = [rectangle[..., rows, columns].max((2, 3)) for rows in BANDS for columns in BANDS]
    corner = dequantize(made)[:, :, :2, :2].reshape(2, 3, 4)
    np.testing.assert_allclose(corner, np.stack(expected, -1), atol=made.scale.max() / 507)
    whole = from_bytes(pack_heads(rectangle))
    assert (whole.levels.shape, whole.factor) == ((2, 3, 7, 50), 1)


def test_a_rectangle_where_nothing_may_be_attended_to_is_masked() -> None:
    made = quantize(noisy(1, 2, 6, causal=True)[:, :, :3, 3:])
    assert (made.levels == MASKED).all()
    assert made.scale.tolist() == [[1.0, 1.0]]


def test_a_noisy_base_model_fits_whole_and_fast() -> None:
    attention = noisy(12, 12, 197)
    started = time.process_time()
    body = pack_heads(attention)
    assert time.process_time() - started < 3
    assert len(body) < LIMIT
    assert from_bytes(body).factor == 1


def test_what_no_compression_makes_smaller_is_shrunk_to_the_limit() -> None:
    chance = np.random.default_rng(0).random((4, 4, 100, 100)).astype(np.float16)
    body = pack_heads(chance, limit=100_000)
    assert len(body) <= 100_000
    assert from_bytes(body).factor == 2
    assert pack_heads(chance[:1, :1], limit=1)[:4] == b"EXH1"


def test_the_bytes_are_as_a_browser_reads_them() -> None:
    body = to_bytes(quantize(np.array([[[[0.25, 0.75], [1.0, 0.0]]]], dtype=np.float32)))
    length = int.from_bytes(body[4:8], "little")
    assert (8 + length) % 4 == 0
    assert np.frombuffer(body[8 + length : 12 + length], "<f4").tolist() == [1.0]
    assert list(zlib.decompress(body[12 + length :])) == [64, 190, 254, 0]


def test_one_token_and_a_head_without_any_attention() -> None:
    assert dequantize(quantize(np.ones((1, 1, 1, 1)))).tolist() == [[[[1.0]]]]
    assert dequantize(quantize(np.zeros((1, 1, 2, 2)))).max() == 0


def test_what_is_wrong_is_told() -> None:
    with pytest.raises(UsageError, match="scale: unknown name 'mine'"):
        quantize(noisy(1, 1, 2), "mine")
    with pytest.raises(ExegesisError, match=r"must have at least one value, got shape \(1, 1, 0, 2\)"):
        quantize(noisy(1, 1, 2)[:, :, :0])
    with pytest.raises(ExegesisError, match="the bytes are not encoded grids"):
        from_bytes(b"something else")
