"""Scores of heads: by hand on small matrices, and against loops over every query and key."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import spearmanr

from engine.heads.scores import agreement_with, attention_distance, entropy, received, special_share

NAN = np.nan
SPECIAL = np.array([True, False, False, True])


def heads(*matrices: list[list[float]]) -> np.ndarray:
    """One layer."""
    return np.array([matrices], dtype=np.float32)


def noisy(layers: int, count: int, n: int, causal: bool = False) -> np.ndarray:
    raw = np.random.default_rng(0).exponential(size=(layers, count, n, n))
    raw[..., ~np.tri(n, dtype=bool) & causal] = NAN
    return (raw / np.nansum(raw, -1, keepdims=True)).astype(np.float32)


def test_distance_by_hand_leaves_special_tokens_out() -> None:
    attention = heads([[0.1, 0.2, 0.3, 0.4], [0.5, 0.2, 0.3, 0.0], [0.0, 0.6, 0.0, 0.4], [0.2, 0.3, 0.1, 0.4]])
    assert attention_distance(attention, SPECIAL) == pytest.approx((0.3 + 0.6) / (0.2 + 0.3 + 0.6))


def test_distance_counts_a_special_token_that_stands_between() -> None:
    attention = heads([[0.0, 0.0, 1.0], [0.3, 0.3, 0.4], [1.0, 0.0, 0.0]])
    assert attention_distance(attention, np.array([False, True, False])).tolist() == [[2.0]]


def test_distance_of_patches_is_a_straight_line_in_the_grid() -> None:
    n = 1 + 2 * 3
    attention = np.zeros((1, 1, n, n), dtype=np.float32)
    attention[..., 0] = 1.0
    attention[0, 0, 1] = [0, 0, 0, 0, 0, 0, 1]  # from row 0, column 0 to row 1, column 2
    found = attention_distance(attention, np.arange(n) < 1, (2, 3))
    assert found == pytest.approx(math.sqrt(5))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("grid", [None, (2, 3)])
def test_scores_of_noisy_heads_against_loops(causal: bool, grid: tuple[int, int] | None) -> None:
    n, special = 8, np.arange(8) < 2
    attention = noisy(2, 3, n, causal)
    places = [(i // 3, i % 3) if grid else (i, 0) for i in range(n - 2)]
    for layer in range(2):
        for head in range(3):
            far = total = spread = share = 0.0
            for q in range(n):
                for k in range(q + 1 if causal else n):
                    p = float(attention[layer, head, q, k])
                    spread -= p * math.log(p) / n
                    if q > 1 and k > 1:
                        far, total = far + p * math.dist(places[q - 2], places[k - 2]), total + p
                    share += p / (n - 2) if q > 1 and k < 2 else 0
            assert attention_distance(attention, special, grid)[layer, head] == pytest.approx(far / total)
            assert entropy(attention)[layer, head] == pytest.approx(spread)
            assert special_share(attention, special)[layer, head] == pytest.approx(share)


def test_the_ends_of_the_scales() -> None:
    n = 5
    even, one = np.full((n, n), 1 / n), np.eye(n)
    attention = np.array([[even, one]], dtype=np.float64)
    np.testing.assert_allclose(entropy(attention), [[math.log(n), 0.0]], atol=1e-12)
    nothing = np.zeros(n, dtype=bool)
    assert attention_distance(attention, nothing)[0, 1] == 0
    assert np.isnan(special_share(attention, nothing)).all()
    only_special = np.array([[[[1.0, 0.0], [1.0, 0.0]]]])
    assert np.isnan(attention_distance(only_special, np.array([True, False]))).all()


def test_one_token_alone() -> None:
    attention = heads([[1.0]])
    one = np.array([False])
    assert attention_distance(attention, one).tolist() == [[0.0]]
    assert entropy(attention).tolist() == [[0.0]]
    assert received(attention, np.array([0])).tolist() == [[[1.0]]]
    assert np.isnan(agreement_with(received(attention, np.array([0])), np.array([0.3]))).all()


def test_what_a_token_receives_counts_only_those_who_may_attend_to_it() -> None:
    attention = heads([[1.0, NAN, NAN], [0.25, 0.75, NAN], [0.1, 0.3, 0.6]])
    np.testing.assert_allclose(received(attention, np.array([0, 1, 2]))[0, 0], [1.35 / 3, 1.05 / 2, 0.6], rtol=1e-6)
    np.testing.assert_array_equal(np.isnan(received(attention, np.array([0, 2]), query=1)[0, 0]), [False, True])


def test_agreement_is_spearmans_with_the_size_of_the_scores() -> None:
    maps = np.random.default_rng(1).normal(size=(2, 3, 9))
    scores = np.random.default_rng(2).normal(size=9)
    maps[1, 2] = 0.5
    maps[0, 1, 3] = NAN
    found = agreement_with(maps, scores)
    assert np.isnan(found[1, 2])
    kept = np.arange(9) != 3
    assert found[0, 1] == pytest.approx(spearmanr(maps[0, 1, kept], np.abs(scores[kept])).statistic)
    assert found[0, 0] == pytest.approx(spearmanr(maps[0, 0], np.abs(scores)).statistic)
    assert agreement_with(np.abs(scores)[None, None] ** 3, -scores)[0, 0] == pytest.approx(1)
