"""TrueSkill over many orders at once gives the numbers of the `trueskill` package."""

from __future__ import annotations

import numpy as np
import pytest
import trueskill

from engine.study.ratings import HEADLINE, NO_MATCH, SMAT, SkillSetting, play


def rate(ranks: np.ndarray, orders: np.ndarray, setting: SkillSetting = HEADLINE) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of each skill after all matches."""
    *_, (mu, variance) = play(ranks, orders, setting)
    return mu, np.sqrt(variance)


def by_package(ranks: np.ndarray, order: np.ndarray, s: SkillSetting) -> tuple[np.ndarray, np.ndarray]:
    """One match after the other, as the package plays them."""
    env = trueskill.TrueSkill(s.mu, s.sigma, s.beta, s.tau, s.draw_probability)
    held = [env.create_rating() for _ in range(ranks.shape[1])]
    for match in order[order != NO_MATCH]:
        held = [rating for (rating,) in env.rate([(one,) for one in held], ranks=ranks[match].tolist())]
    return np.array([one.mu for one in held]), np.array([one.sigma for one in held])


def votes(count: int, methods: int, seed: int = 0) -> np.ndarray:
    """Rankings with ties, some methods better than others."""
    chance = np.random.default_rng(seed)
    return chance.integers(1, methods + 1, (count, methods)) + np.arange(methods) // 2


@pytest.mark.parametrize("setting", [HEADLINE, SMAT, SkillSetting(25.0, 25 / 3, 25 / 6, 25 / 300)])
@pytest.mark.parametrize("methods", [2, 3, 4, 6])
def test_ratings_are_those_of_the_package(methods: int, setting: SkillSetting) -> None:
    ranks = votes(25, methods)
    orders = np.stack([np.random.default_rng(i).permutation(25) for i in range(4)])
    orders[2, 5:9] = NO_MATCH
    mu, sigma = rate(ranks, orders, setting)
    for replicate, order in enumerate(orders):
        wanted = by_package(ranks, order, setting)
        np.testing.assert_allclose(mu[replicate], wanted[0], atol=2e-5)
        np.testing.assert_allclose(sigma[replicate], wanted[1], atol=2e-5)


def test_everybody_tied_stays_where_it_was() -> None:
    mu, sigma = rate(np.ones((5, 4), dtype=int), np.arange(5)[None])
    np.testing.assert_allclose(mu, 0, atol=1e-3)
    assert (sigma < HEADLINE.sigma).all()


def test_without_matches_nothing_is_learned() -> None:
    mu, sigma = rate(votes(3, 4), np.full((2, 3), NO_MATCH))
    assert not mu.any()
    assert (sigma == HEADLINE.sigma).all()


def test_a_better_method_is_rated_higher() -> None:
    mu, _ = rate(np.tile([3, 1, 2], (40, 1)), np.arange(40)[None])
    assert mu[0, 1] > mu[0, 2] > mu[0, 0]
