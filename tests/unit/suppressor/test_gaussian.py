"""The Gaussian problem: closed forms against large samples and integration, explainers against closed forms."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from jaxtyping import Float
from sklearn.linear_model import LogisticRegression

from engine.errors import UsageError
from engine.suppressor import gaussian
from engine.suppressor.criterion import CREDITS, NEITHER, PASSES
from engine.suppressor.gaussian import CLOSED_FORMS, GaussianProblem
from engine.suppressor.linear import REMOVAL, EncodedFeatures, LinearClassifier
from engine.suppressor.measurement import EXACT, METHODS, measure_gaussian, run_explainer

PROBLEMS = [GaussianProblem(0.8), GaussianProblem(-0.5, 1.5, 0.7), GaussianProblem(0.95, 0.5, 2.0)]
MANY = 400_000


@pytest.fixture(params=PROBLEMS, ids=str, name="problem")
def _problem(request: pytest.FixtureRequest) -> GaussianProblem:
    return request.param


def test_the_suppressor_is_independent_of_the_class_and_of_the_output(problem: GaussianProblem) -> None:
    x, classes = problem.sample(MANY, 0)
    f = x @ problem.weights
    for other in (classes, f):
        assert abs(np.corrcoef(x[:, 1], other)[0, 1]) < 4 / np.sqrt(MANY)
    assert abs(np.corrcoef(x[:, 0], classes)[0, 1]) > 0.4
    noise = x - np.outer(classes, [1, 0, 0])
    np.testing.assert_allclose(np.cov(noise.T), problem.noise, atol=0.03)


def test_the_weights_are_those_of_the_log_odds(problem: GaussianProblem) -> None:
    """By densities of both classes, and by a logistic regression, which knows no formula."""
    x = problem.sample(20, 1)[0]
    precision = np.linalg.inv(problem.noise)

    def log_density(mean: float) -> Float[np.ndarray, "example"]:
        at = x - [mean, 0, 0]
        return -np.einsum("ij,jk,ik->i", at, precision, at) / 2

    np.testing.assert_allclose(x @ problem.weights, log_density(1) - log_density(-1), rtol=1e-9, atol=1e-9)
    assert problem.weights[1] / problem.weights[0] == pytest.approx(
        -problem.correlation * problem.scale / problem.suppressor_scale
    )


def test_a_trained_classifier_uses_the_suppressor_alike() -> None:
    problem = GaussianProblem(0.8)
    fitted = LogisticRegression(C=1e6).fit(*problem.sample(50_000, 2)).coef_[0]
    np.testing.assert_allclose(fitted, problem.weights, atol=0.25)
    assert fitted[1] < -4


def test_pattern_is_haufes_covariance_and_zero_for_the_suppressor(problem: GaussianProblem) -> None:
    x = problem.sample(MANY, 3)[0]
    f = x @ problem.weights
    estimated = np.array([np.cov(x[:, column], f)[0, 1] for column in range(3)]) / f.var()
    closed = gaussian.pattern(problem, x)[0]
    np.testing.assert_allclose(estimated, closed, atol=0.005)
    full = problem.noise + np.outer([1, 0, 0], [1, 0, 0])
    np.testing.assert_allclose(closed, full @ problem.weights / (problem.weights @ full @ problem.weights), atol=1e-12)
    assert closed[1] == closed[2] == 0
    assert closed[0] > 0
    relevance = gaussian.pattern_relevance(problem, x[:5])
    np.testing.assert_allclose(relevance, f[:5, None] * problem.weights * closed, atol=1e-10)


def test_permutation_importance_is_the_rise_of_the_error_of_a_large_sample(problem: GaussianProblem) -> None:
    x, classes = problem.sample(MANY, 4)
    error = (x @ problem.weights * classes < 0).mean()
    closed = gaussian.error_increase(problem, x)[0]
    for column in range(3):
        moved = x.copy()
        moved[:, column] = np.random.default_rng(column).permutation(x[:, column])
        assert (moved @ problem.weights * classes < 0).mean() - error == pytest.approx(closed[column], abs=0.004)


def test_conditional_expectations_are_those_of_near_examples(problem: GaussianProblem) -> None:
    """E[f | x1] by the mean of a large sample in narrow windows; v of the formula by undoing the Shapley value."""
    x = problem.sample(5 * MANY, 5)[0]
    f = x @ problem.weights
    for at in (-1.0, 0.0, 0.8):
        near = np.abs(x[:, 0] - at) < 0.02
        mean, error = f[near].mean(), f[near].std() / np.sqrt(near.sum())
        shapley = gaussian.conditional_shapley(problem, np.array([[at, 0.3, 0.0]]))[0]
        alone = shapley[0] - shapley[1]  # v({1}) - v({2}), and v({2}) is 0
        assert alone == pytest.approx(mean, abs=5 * error + 0.02 * problem.weights[0])
        beside = np.abs(x[:, 1] - at * problem.suppressor_scale) < 0.02
        assert abs(f[beside].mean()) < 5 * f[beside].std() / np.sqrt(beside.sum())


def test_firm_is_the_spread_of_conditional_means(problem: GaussianProblem) -> None:
    x = problem.sample(MANY, 6)[0]
    f = x @ problem.weights
    cells = np.searchsorted(np.quantile(x[:, 0], np.linspace(0, 1, 201)[1:-1]), x[:, 0])
    means = np.bincount(cells, f) / np.bincount(cells)
    assert gaussian.expectation_spread(problem, x)[0, 0] == pytest.approx(means[cells].std(), rel=0.02)


def test_exact_shapley_values_are_means_over_all_orders(problem: GaussianProblem) -> None:
    x = problem.sample(4, 7)[0]
    expected = np.zeros_like(x)
    for order in permutations(range(3)):
        present = np.zeros_like(x)
        for column in order:
            before = present @ problem.weights
            present[:, column] = x[:, column]
            expected[:, column] += (present @ problem.weights - before) / 6
    model = LinearClassifier(problem.weights)
    encoded = [EncodedFeatures(row, at) for at, row in enumerate(x)]
    for method in ("exact_shapley", "kernel_shap"):
        scores = run_explainer(method, {"removal": REMOVAL}, model, encoded, [0] * 4, 0)
        np.testing.assert_allclose(scores, expected, atol=1e-10)
        np.testing.assert_allclose(scores, gaussian.term(problem, x), atol=1e-10)


def test_a_counterfactual_is_on_the_decision_line_and_no_other_point_is_nearer(problem: GaussianProblem) -> None:
    x = problem.sample(6, 8)[0]
    step = gaussian.boundary_step(problem, x)
    np.testing.assert_allclose((x + step) @ problem.weights, 0, atol=1e-9)
    along = np.cross(problem.weights, [0.0, 0.0, 1.0])
    for shift in (-0.1, 0.1):
        assert (np.linalg.norm(step + shift * along, axis=1) > np.linalg.norm(step, axis=1)).all()


def test_measured_scores_are_the_closed_forms(problem: GaussianProblem) -> None:
    result = measure_gaussian(problem)
    assert [one.method.id for one in result.methods] == [one.id for one in METHODS]
    for one in result.methods:
        assert one.ok, one.method.id
        if one.method.id not in ("permutation", "random"):
            assert one.difference is not None
            assert one.limit is not None
            assert one.difference <= one.limit
            assert one.measured.share == pytest.approx(one.theory, abs=EXACT)


def test_only_methods_of_the_covariance_pass_and_chance_credits_nothing() -> None:
    verdicts = {one.method.id: one.measured.verdict for one in measure_gaussian(GaussianProblem(0.8)).methods}
    assert {id for id, verdict in verdicts.items() if verdict == PASSES} == {"pattern", "pattern_attribution", "firm"}
    assert verdicts.pop("random") == NEITHER
    assert set(verdicts.values()) == {PASSES, CREDITS}


def test_without_correlation_every_method_passes() -> None:
    for one in measure_gaussian(GaussianProblem(0.0)).judged:
        assert one.measured.verdict == PASSES, one.method.id
        assert one.measured.suppressor == 0


def test_a_wrong_closed_form_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.suppressor import measurement

    wrong = {**CLOSED_FORMS, "term": CLOSED_FORMS["weight"], "error": CLOSED_FORMS["pattern"]}
    monkeypatch.setattr(measurement, "CLOSED_FORMS", wrong)
    bad = {one.method.id for one in measure_gaussian(GaussianProblem(0.8)).methods if not one.ok}
    assert {"lime", "occlusion", "permutation"} <= bad
    assert "gradient" not in bad


def test_the_linear_classifier_removes_by_the_mean_alone() -> None:
    model = LinearClassifier(np.array([1.0, 2.0]))
    encoded = [EncodedFeatures(np.array([3.0, -1.0]), 0)]
    with pytest.raises(UsageError, match="mean"):
        run_explainer("occlusion", {"removal": "mask"}, model, encoded, [0], 0)


@pytest.mark.parametrize("wrong", [{"correlation": 0.96}, {"scale": 0.1}, {"suppressor_scale": 3.0}])
def test_a_problem_out_of_bounds_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(wrong))}: must be a number from"):
        GaussianProblem(**wrong)
