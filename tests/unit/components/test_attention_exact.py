"""The exact matrix of one head on its way to the browser, read back by hand."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from components.attention.exact import MAGIC, exact
from engine.errors import UsageError
from engine.heads.matrices import MatrixSelection


def attention() -> np.ndarray:
    """Two layers of three heads over four positions, each value its own; a query sees no later key."""
    values = (np.arange(2 * 3 * 4 * 4) / 128).reshape(2, 3, 4, 4)
    values[..., ~np.tri(4, dtype=bool)] = np.nan
    return values.astype(np.float16)


def read(body: bytes) -> tuple[tuple[int, ...], list[float]]:
    """By the standard library alone: rows and columns, then halves, little end first."""
    assert body[:4] == MAGIC
    return struct.unpack("<2I", body[4:12]), list(struct.unpack(f"<{len(body[12:]) // 2}e", body[12:]))


def test_the_values_of_the_part_come_in_half_precision_row_by_row() -> None:
    shape, found = read(exact(attention(), (1, 2), MatrixSelection((1, 3), (0, 1, 2))))
    first = (1 * 3 + 2) * 16
    assert shape == (2, 3)
    assert found[:2] == [(first + 4) / 128, (first + 5) / 128]
    assert np.isnan(found[2]), "the second position may not attend to the third"
    assert found[3:] == [(first + 12 + column) / 128 for column in range(3)]


def test_one_position_is_a_matrix_too() -> None:
    assert read(exact(np.ones((1, 1, 1, 1), np.float16), (0, 0), MatrixSelection((0,), (0,)))) == ((1, 1), [1.0])


@pytest.mark.parametrize("head", [(2, 0), (0, 3), (-1, 0)])
def test_a_head_that_the_model_has_not_is_refused(head: tuple[int, int]) -> None:
    with pytest.raises(UsageError, match=r"head: must be a layer from 0 to 1 and a head from 0 to 2, got"):
        exact(attention(), head, MatrixSelection((0,), (0,)))
