"""Shapley values: exact against their definition, estimates against exact ones, and the axioms of both."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.errors import ExegesisError, UsageError
from engine.explainers import shapley as estimation
from engine.explainers.shapley import ShapleyEstimate, all_coalitions, exact, kernel_shap, least_budget, plan, solve
from engine.explainers.shapley.coalitions import (
    allocate,
    canonical_pairs,
    draw_pairs_of_size,
    kernel_by_size,
    odd_weights,
    pairs_by_size,
    signs,
)
from engine.explainers.shapley.log_odds import EPSILON, UNSEEN, fit_log_odds, log_odds, probability, unseen_pairs
from engine.explainers.shapley.surrogate import (
    Prior,
    fit_prior,
    interaction_kernel,
    interaction_shapley,
    log_evidence,
    typical_prior,
)
from tests.oracles.shapley import Game, shapley_by_permutations, table_game, unanimity_game

SIZES = st.integers(1, 7)
SEEDS = st.integers(0, 2**32 - 1)
few = settings(max_examples=20, deadline=None)


def random_values(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=2**n)


def smooth_game(n: int, seed: int, offset: float = 0.0) -> Game:
    """Like a classifier's probability: strong single words, weaker pairs and triples, squashed around `offset`."""
    generator = np.random.default_rng(seed)
    single = 0.5 * generator.normal(size=n)
    groups = [(generator.choice(n, k, replace=False), 0.15 * generator.normal()) for k in (2, 3) for _ in range(n)]

    def game(keep: np.ndarray) -> np.ndarray:
        x = signs(keep)
        return 1 / (1 + np.exp(-offset - x @ single - sum(w * x[:, g].prod(axis=1) for g, w in groups)))

    return game


def error(estimate: ShapleyEstimate, phi: np.ndarray) -> float:
    return float(np.linalg.norm(estimate.phi - phi) / np.linalg.norm(phi))


@few
@given(SIZES, SEEDS)
def test_exact_is_the_mean_over_all_orders(n: int, seed: int) -> None:
    game = table_game(random_values(n, seed))
    np.testing.assert_allclose(exact(n, game), shapley_by_permutations(n, game), atol=1e-12)


@few
@given(st.integers(1, 10), SEEDS)
def test_a_full_budget_is_exact(n: int, seed: int) -> None:
    game = table_game(random_values(n, seed))
    full = kernel_shap(n, game, 2**n, seed)
    np.testing.assert_allclose(full.phi, exact(n, game), atol=1e-12)
    assert full.evaluations == 2**n
    assert full.notes[0].startswith("Exact: ")


@pytest.mark.parametrize("order", ["auto", "1"])
@pytest.mark.parametrize(("n", "budget"), [(3, 5), (5, 9), (8, 60), (12, 512), (30, 60), (30, 300)])
def test_the_sum_is_exact_at_every_budget(n: int, budget: int, order: str) -> None:
    estimate = kernel_shap(n, smooth_game(n, 3), budget, 5, order)
    total = estimate.v_full - estimate.v_empty
    assert abs(estimate.phi.sum() - total) <= 1e-12


@few
@given(st.integers(3, 12), SEEDS, st.floats(-5, 5))
def test_an_additive_game_gives_its_weights(n: int, seed: int, start: float) -> None:
    weights = np.random.default_rng(seed).normal(size=n)
    estimate = kernel_shap(n, lambda keep: start + keep @ weights, 2 * n + 2, seed)
    np.testing.assert_allclose(estimate.phi, weights, atol=1e-6)


@few
@given(st.integers(4, 9), SEEDS)
def test_a_dummy_gets_nothing_and_twins_the_same(n: int, seed: int) -> None:
    values = random_values(n, seed).reshape((2,) * n)
    values[1] = values[0]
    values = (values + values.swapaxes(1, 2)) / 2
    phi = exact(n, table_game(values.ravel()))[::-1]
    assert abs(phi[0]) <= 1e-12
    assert abs(phi[1] - phi[2]) <= 1e-12


def test_a_dummy_of_a_smooth_game_is_small_in_an_estimate() -> None:
    game = smooth_game(10, 1)
    estimate = kernel_shap(11, lambda keep: game(keep[:, :10]), 256, 0)
    assert abs(estimate.phi[10]) <= 0.02 * np.abs(estimate.phi).max()


@few
@given(SIZES, SEEDS, st.floats(-3, 3))
def test_exact_is_linear(n: int, seed: int, factor: float) -> None:
    one, two = random_values(n, seed), random_values(n, seed + 1)
    mixed = exact(n, table_game(one + factor * two))
    np.testing.assert_allclose(mixed, exact(n, table_game(one)) + factor * exact(n, table_game(two)), atol=1e-11)


@few
@given(SEEDS, st.floats(-3, 3))
def test_order_one_is_linear(seed: int, factor: float) -> None:
    one, two = random_values(8, seed), random_values(8, seed + 1)
    parts = [kernel_shap(8, table_game(v), 64, seed, "1").phi for v in (one, two, one + factor * two)]
    np.testing.assert_allclose(parts[2], parts[0] + factor * parts[1], atol=1e-10)


def test_an_added_linear_game_only_adds_its_own_values() -> None:
    game, weights = smooth_game(12, 4), np.random.default_rng(0).normal(size=12)
    plain = kernel_shap(12, game, 128, 0, "1").phi
    shifted = kernel_shap(12, lambda keep: game(keep) + keep @ weights, 128, 0, "1").phi
    np.testing.assert_allclose(shifted - plain, weights, atol=1e-10)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_features(n: int) -> None:
    game = table_game(random_values(n, 7))
    for budget in range(least_budget(n), 2**n + 3):
        estimate = kernel_shap(n, game, budget)
        assert estimate.evaluations <= min(budget, 2**n)
        assert abs(estimate.phi.sum() - (estimate.v_full - estimate.v_empty)) <= 1e-12
    np.testing.assert_allclose(estimate.phi, shapley_by_permutations(n, game), atol=1e-12)


@pytest.mark.parametrize("members", [[0], [2, 5], [1, 4, 7], [0, 3, 6, 9], [0, 1, 2, 3, 4, 5, 6, 7]])
def test_unanimity_is_shared_by_its_members(members: list[int]) -> None:
    estimate = kernel_shap(12, unanimity_game(members), 256, 1)
    truth = np.zeros(12)
    truth[members] = 1 / len(members)
    assert error(estimate, truth) <= 0.02


@pytest.mark.parametrize("constant", [0.0, 3.5])
@pytest.mark.parametrize("order", ["auto", "1"])
def test_a_constant_game_gives_zeros(constant: float, order: str) -> None:
    estimate = kernel_shap(9, lambda keep: np.full(len(keep), constant), 40, 0, order)
    assert not estimate.phi.any()


def test_the_smallest_signals_keep_their_digits() -> None:
    game = smooth_game(10, 2)
    plain, tiny = (kernel_shap(10, lambda keep, s=s: s * game(keep), 100, 0).phi for s in (1.0, 1e-12))
    np.testing.assert_allclose(tiny * 1e12, plain, rtol=1e-6)


@pytest.mark.parametrize("peer", ["shap", "shapiq"])
def test_peers_agree_at_the_full_budget(peer: str) -> None:
    n, game = 8, smooth_game(8, 5)
    ours = kernel_shap(n, game, 2**n).phi
    np.testing.assert_allclose(ours, PEERS[peer](n, game), atol=1e-6)


def shap_values(n: int, game: Game) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # shap's import calls what matplotlib deprecates
        import shap
    explainer = shap.KernelExplainer(lambda rows: game(rows > 0.5), np.zeros((1, n)))
    return explainer.shap_values(np.ones((1, n)), nsamples=2**n, l1_reg=False, silent=True)[0]


def shapiq_values(n: int, game: Game) -> np.ndarray:
    import shapiq  # it takes long

    return shapiq.KernelSHAP(n, random_state=0).approximate(2**n, game).get_n_order_values(1)


PEERS: dict[str, Callable[[int, Game], np.ndarray]] = {"shap": shap_values, "shapiq": shapiq_values}


@pytest.mark.parametrize(("budget", "bound"), [(64, 0.25), (128, 0.12), (256, 0.05), (512, 0.02), (1024, 0.01)])
def test_the_error_falls_with_the_budget(budget: int, bound: float) -> None:
    games = [smooth_game(12, seed) for seed in range(4)]
    errors = [error(kernel_shap(12, g, budget, 0), exact(12, g)) for g in games]
    plain = [error(kernel_shap(12, g, budget, 0, "1"), exact(12, g)) for g in games]
    assert np.mean(errors) <= bound
    assert np.mean(errors) <= 0.75 * np.mean(plain)


def test_residuals_correct_what_the_surrogate_cannot_take(monkeypatch: pytest.MonkeyPatch) -> None:
    game = table_game(random_values(12, 0))
    truth = exact(12, game)
    errors = {}
    for fitted in (64, 100):
        monkeypatch.setattr("engine.explainers.shapley.FITTED", fitted)
        monkeypatch.setattr("engine.explainers.shapley.DESIGNED", 64)
        errors[fitted] = error(kernel_shap(12, game, 4000, 0), truth)
    assert max(errors.values()) <= 0.1


@pytest.mark.parametrize("order", ["auto", "1"])
@pytest.mark.parametrize(("n", "budget"), [(4, 11), (9, 200), (12, 1500), (13, 700), (25, 64), (60, 1024)])
def test_no_coalition_is_evaluated_twice(n: int, budget: int, order: str) -> None:
    keep = plan(n, budget, 3, order).keep
    assert len(np.unique(keep, axis=0)) == len(keep) == min(budget // 2 * 2, 2**n)
    assert keep[0].all()
    assert not keep[len(keep) // 2].any()


@pytest.mark.parametrize("budget", [64, 256, 1024])
def test_rounding_of_the_values_moves_the_estimate_as_little(budget: int) -> None:
    """Processors round differently: single precision is 1e-7 of a value."""
    for seed in range(6):
        planned, noise = plan(12, budget), np.random.default_rng(0)
        values = smooth_game(12, seed, offset=float(seed % 3 * 3))(planned.keep)
        phi = solve(planned, values).phi
        for _ in range(3):
            rounded = solve(planned, values * (1 + 1e-7 * noise.normal(size=len(values)))).phi
            assert np.abs(rounded - phi).max() <= 2e-5 * np.abs(phi).max()


@pytest.mark.parametrize("n", [12, 16, 49])
def test_rounding_does_not_choose_the_pairs(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding of double precision, magnified a thousand times, leaves the design as it is."""
    generator = np.random.default_rng(0)

    def jittered(*arguments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sinh, cosh = interaction_kernel(*arguments)
        return sinh * (1 + 1e-13 * generator.normal(size=sinh.shape)), cosh

    pairs = estimation.informative_pairs(n, 256)
    monkeypatch.setattr(estimation, "interaction_kernel", jittered)
    np.testing.assert_array_equal(estimation.informative_pairs.__wrapped__(n, 256), pairs)


@pytest.mark.parametrize("n", [12, 25])
def test_a_seed_fixes_every_bit(n: int) -> None:
    one, again, other = (kernel_shap(n, smooth_game(n, 0), 100, seed).phi for seed in (1, 1, 2))
    assert one.tobytes() == again.tobytes()
    assert one.tobytes() != other.tobytes()


def test_many_features_are_estimated_well() -> None:
    weights = np.random.default_rng(0).normal(size=60)
    pair = 0.5 * np.eye(60)[[3, 8]].sum(axis=0)
    estimate = kernel_shap(60, lambda keep: keep @ weights + keep[:, 3] * keep[:, 8], 512)
    assert error(estimate, weights + pair) <= 0.01


def test_counts_of_pairs_stay_finite_however_long_the_text_is() -> None:
    assert np.isfinite(pairs_by_size(3000)).all()
    assert allocate(3000, kernel_by_size(3000), pairs_by_size(3000)).sum() == 3000


def test_errors_say_what_is_allowed() -> None:
    with pytest.raises(UsageError, match=r"n: must be between 1 and 14 features .* got 15\. Use kernel_shap"):
        exact(15, unanimity_game([0]))
    with pytest.raises(UsageError, match=r"budget: must be at least 14 evaluations for 12 features, got 13\. Raise"):
        plan(12, 13)
    with pytest.raises(UsageError, match=r"order: unknown name 'third'\. Known: 1, auto"):
        plan(12, 64, order="third")
    with pytest.raises(UsageError, match=r"one number for each of 64 coalitions, got \(3,\)"):
        solve(plan(12, 64), np.zeros(3))
    with pytest.raises(ExegesisError, match="not finite"):
        solve(plan(12, 64), np.full(64, np.nan))


def test_a_small_budget_says_that_it_is_coarse() -> None:
    assert "42 cover each feature" in kernel_shap(20, smooth_game(20, 0), 30).notes[0]
    assert kernel_shap(20, smooth_game(20, 0), 42).notes == ()


def test_the_prior_covariances_are_those_of_its_fourier_terms() -> None:
    """The closed forms against the sum over all sets of odd size."""
    n, b = 5, np.array([0.1, 0.4, 0.9, 0.2, 1.5])
    x = signs(all_coalitions(n))
    sets = [s for s in all_coalitions(n) if s.sum() % 2]
    terms = np.stack([x[:, s].prod(axis=1) for s in sets], axis=1)
    variance = np.array([np.tanh(b)[s].prod() for s in sets])
    shapley = np.array([2 * s / s.sum() for s in sets])
    total = variance.sum()
    np.testing.assert_allclose(interaction_kernel(x, x, b)[0], (terms * variance) @ terms.T / total, atol=1e-12)
    np.testing.assert_allclose(interaction_shapley(x, b), (terms * variance) @ shapley / total, atol=1e-12)


def test_the_evidence_gradient_is_its_slope() -> None:
    n, generator = 6, np.random.default_rng(0)
    x, g = signs(generator.random((20, n)) < 0.5), generator.normal(size=20)
    center, theta = typical_prior(n), np.concatenate([generator.normal(-1, 0.3, n), [0.3, -1.0]])

    def evidence(at: np.ndarray) -> tuple[float, np.ndarray]:
        return log_evidence(x, g, Prior(at[:n], float(at[n]), float(at[n + 1])), center)

    slopes = [(evidence(theta + d)[0] - evidence(theta - d)[0]) / 2e-5 for d in 1e-5 * np.eye(n + 2)]
    np.testing.assert_allclose(evidence(theta)[1], slopes, rtol=1e-4, atol=1e-4)


def test_the_fit_finds_which_features_interact() -> None:
    pairs = plan(12, 256, 0).pairs
    x = signs(pairs)
    prior = fit_prior(x, x @ np.linspace(-1, 1, 12) + x[:, 2] * x[:, 5] * x[:, 9])
    assert set(np.argsort(prior.b)[-3:]) == {2, 5, 9}
    assert prior.order() == 3


def test_pairs_weigh_as_the_shapley_value() -> None:
    values = random_values(6, 0)
    keep = all_coalitions(6)
    pairs = keep[keep[:, 0]]
    game = table_game(values)
    odd = (game(pairs) - game(~pairs)) / 2
    np.testing.assert_allclose(odd_weights(pairs).T @ odd, shapley_by_permutations(6, game), atol=1e-12)


def test_places_are_shared_out_in_full() -> None:
    free = pairs_by_size(12)
    quota = allocate(100, np.array([6.0, 5, 4, 3, 2, 1]), free)
    assert quota.sum() == 100
    assert quota[0] == free[0]
    assert (quota <= free).all()


SHARES = np.array([0.0, 1e-9, 1e-3, 0.5, 0.9, 1.0])


def test_log_odds_are_finite_and_have_an_inverse() -> None:
    np.testing.assert_allclose(probability(log_odds(SHARES)), SHARES, atol=1e-12)
    np.testing.assert_allclose(log_odds(SHARES[[0, 3, 5]]), [-np.log(1 / EPSILON - 1), 0, np.log(1 / EPSILON - 1)])


def test_additive_log_odds_are_predicted_everywhere() -> None:
    """The surrogate's linear part is free, so that additive log odds have no error but that of ε."""
    weights = np.random.default_rng(0).normal(size=12)

    def game(keep: np.ndarray) -> np.ndarray:
        return probability(signs(keep) @ weights)

    pairs = plan(12, 40, 0).pairs
    unseen = unseen_pairs(pairs)
    predict = fit_log_odds(pairs, game(pairs), game(~pairs), 128)
    np.testing.assert_allclose(predict(unseen), (game(unseen) - game(~unseen)) / 2, atol=1e-3)
    assert error(kernel_shap(12, game, 40, 0, probabilities=True), exact(12, game)) <= 2e-3


@pytest.mark.parametrize(("budget", "share"), [(64, 0.9), (128, 0.9), (256, 0.8), (512, 0.7)])
def test_log_odds_lower_the_error_of_a_probability(budget: int, share: float) -> None:
    games = [smooth_game(12, seed, offset=seed % 3) for seed in range(6)]
    by_kind = {
        kind: np.mean([error(kernel_shap(12, g, budget, 0, probabilities=kind), exact(12, g)) for g in games])
        for kind in (False, True)
    }
    assert by_kind[True] <= share * by_kind[False]


def test_log_odds_lower_the_error_of_many_features() -> None:
    """Independent features of one weight: φ is a share of v(N) - v(∅) each."""
    estimates = [
        kernel_shap(30, lambda keep: 1 / (1 + np.exp(-0.4 * signs(keep).sum(axis=1) - 1)), 128, 0, probabilities=kind)
        for kind in (False, True)
    ]
    wrong = [error(e, np.full(30, (e.v_full - e.v_empty) / 30)) for e in estimates]
    assert wrong[1] <= 0.5 * wrong[0]


@pytest.mark.parametrize(("n", "budget"), [(3, 5), (5, 9), (8, 60), (12, 512), (14, 100), (30, 60), (30, 300)])
def test_the_sum_of_a_probability_is_exact_at_every_budget(n: int, budget: int) -> None:
    estimate = kernel_shap(n, smooth_game(n, 3), budget, 5, probabilities=True)
    assert abs(estimate.phi.sum() - (estimate.v_full - estimate.v_empty)) <= 1e-12


def test_a_full_budget_of_a_probability_is_exact() -> None:
    game = smooth_game(8, 1)
    np.testing.assert_allclose(kernel_shap(8, game, 256, probabilities=True).phi, exact(8, game), atol=1e-12)


def test_one_missing_pair_of_a_probability_is_filled_in() -> None:
    game = smooth_game(8, 1)
    assert error(kernel_shap(8, game, 254, probabilities=True), exact(8, game)) <= 1e-4


def test_a_dummy_of_a_probability_is_small() -> None:
    game = smooth_game(10, 1)
    estimate = kernel_shap(11, lambda keep: game(keep[:, :10]), 256, 0, probabilities=True)
    assert abs(estimate.phi[10]) <= 0.01 * np.abs(estimate.phi).max()


def test_twins_of_a_probability_get_the_same_over_seeds() -> None:
    game = smooth_game(10, 2)

    def twins(keep: np.ndarray) -> np.ndarray:
        merged = keep[:, :10].copy()
        merged[:, 0] = keep[:, 0] & keep[:, 10]
        return game(merged)

    phi = np.array([kernel_shap(11, twins, 64, seed, probabilities=True).phi for seed in range(24)])
    gap = phi[:, 0] - phi[:, 10]
    assert abs(gap.mean()) <= 3 * gap.std() / np.sqrt(len(gap))
    assert gap.std() > 0


@pytest.mark.parametrize("budget", [64, 256, 1024])
def test_rounding_of_a_probability_moves_the_estimate_as_little(budget: int) -> None:
    for seed in range(6):
        planned, noise = plan(12, budget), np.random.default_rng(0)
        values = smooth_game(12, seed, offset=float(seed % 3 * 3))(planned.keep)
        phi = solve(planned, values, probabilities=True).phi
        rounded = solve(planned, (values * (1 + 1e-7 * noise.normal(size=len(values)))).clip(0, 1), True).phi
        assert np.abs(rounded - phi).max() <= 1e-4 * np.abs(phi).max()


def test_probabilities_that_hardly_differ_are_estimated_without_log_odds() -> None:
    game = smooth_game(10, 2)
    plain, tiny = (
        kernel_shap(10, lambda keep, s=s: s * game(keep), 100, 0, probabilities=s < 1).phi for s in (1, 1e-30)
    )
    np.testing.assert_allclose(tiny * 1e30, plain, rtol=1e-6)


def test_order_one_knows_no_log_odds() -> None:
    game = smooth_game(10, 2)
    plain, odds = (kernel_shap(10, game, 100, 0, "1", probabilities=kind).phi for kind in (False, True))
    np.testing.assert_array_equal(plain, odds)


def test_a_probability_beyond_one_is_refused() -> None:
    with pytest.raises(UsageError, match=r"values: must be between 0 and 1 with probabilities=True, got .* to 2\.0"):
        solve(plan(8, 32), np.linspace(0, 2, 32), probabilities=True)


@pytest.mark.parametrize(("n", "budget", "count"), [(8, 32, 112), (12, 64, 2016), (13, 64, 4064), (30, 64, UNSEEN)])
def test_unseen_pairs_are_distinct_and_new(n: int, budget: int, count: int) -> None:
    pairs = plan(n, budget, 3).pairs
    unseen = unseen_pairs(pairs)
    rows = np.concatenate([unseen, ~unseen, pairs, ~pairs])
    assert len(unseen) == count
    assert len(np.unique(rows, axis=0)) == len(rows)


@pytest.mark.parametrize(("n", "size", "count"), [(7, 3, 30), (7, 1, 6), (33, 16, 300), (60, 2, 500)])
def test_pairs_are_drawn_by_the_ranks_of_random_keys(n: int, size: int, count: int) -> None:
    generator, drawn = np.random.default_rng(5), list[bytes]()
    while len(drawn) < count:  # as versions 1 to 3 of the method drew them: results depend on it
        ranks = generator.random((max(64, 2 * (count - len(drawn))), n)).argsort(axis=1).argsort(axis=1)
        for row in canonical_pairs(ranks < size):
            if row.tobytes() not in drawn and len(drawn) < count:
                drawn.append(row.tobytes())
    own, existing = np.random.default_rng(5), set[bytes]()
    assert [row.tobytes() for row in draw_pairs_of_size(n, size, count, own, existing)] == drawn
    assert existing == {*drawn}
    assert own.random() == generator.random()


def test_a_regression_of_many_pairs_is_that_of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = np.concatenate([plan(9, 40, 1).pairs, unseen_pairs(plan(9, 40, 1).pairs)])
    g = np.random.default_rng(0).normal(size=len(pairs))
    assert len(pairs) > estimation.MANY * 9
    fast = estimation.regression(pairs, g, 20)
    monkeypatch.setattr(estimation, "MANY", len(pairs))
    np.testing.assert_allclose(fast, estimation.regression(pairs, g, 20), rtol=0, atol=1e-12)
    assert fast.sum() == pytest.approx(2 * g[0])


def test_the_prior_covariance_of_the_even_part_is_that_of_its_fourier_terms() -> None:
    n, b = 5, np.array([0.1, 0.4, 0.9, 0.2, 1.5])
    x, sets = signs(all_coalitions(n)), all_coalitions(n)
    variance = np.array([np.tanh(b)[s].prod() for s in sets])
    is_even = sets.sum(axis=1) % 2 == 0
    terms = np.stack([x[:, s].prod(axis=1) for s in sets], axis=1)[:, is_even]
    expected = (terms * variance[is_even]) @ terms.T / variance[~is_even].sum()
    np.testing.assert_allclose(interaction_kernel(x, x, b)[1], expected, atol=1e-12)


def test_the_evidence_gradient_of_both_parts_is_its_slope() -> None:
    n, generator = 6, np.random.default_rng(0)
    x, g, even = signs(generator.random((20, n)) < 0.5), generator.normal(size=20), generator.normal(size=20)
    center, theta = typical_prior(n), np.concatenate([generator.normal(-1, 0.3, n), [0.3, -1.0]])

    def evidence(at: np.ndarray) -> tuple[float, np.ndarray]:
        return log_evidence(x, g, Prior(at[:n], float(at[n]), float(at[n + 1])), center, even)

    slopes = [(evidence(theta + d)[0] - evidence(theta - d)[0]) / 2e-5 for d in 1e-5 * np.eye(n + 2)]
    np.testing.assert_allclose(evidence(theta)[1], slopes, rtol=1e-4, atol=1e-4)
