"""The Gaussian problem with a suppressor, and closed forms of the scores that methods assign.

`x = a z + eta` with the class z = -1 or +1, a = (1, 0) and correlated noise eta ~ N(0, S). Feature 2 is pure noise, but
it correlates with the noise of feature 1, so the best classifier subtracts it. Source: Wilming et al. (2023),
Theoretical behavior of XAI methods in the presence of suppressor variables, section 3. A third feature is added here:
independent noise that the best classifier does not use. The criterion compares with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from types import MappingProxyType

import numpy as np
import scipy.stats
from jaxtyping import Float

from engine.errors import not_allowed
from engine.params import option
from engine.suppressor.criterion import Scores

MOST_CORRELATION = 0.95
LEAST_SCALE, MOST_SCALE = 0.5, 2.0
EXAMPLES = 50
"""Number of examples on which local methods are measured."""
NODES = 200
"""Number of nodes of the Gauss-Hermite rule, for the one closed form that contains an integral."""


OneRow = Float[np.ndarray, "1 3"]
"""A single row, the same for every example."""


@dataclass(frozen=True)
class GaussianProblem:
    """The parameters of the problem.

    `correlation`: correlation of the noise of features 1 and 2. `scale`, `suppressor_scale`: standard deviations of the
    noise of features 1 and 2.
    """

    correlation: float = option(
        0.8, "Correlation of the noise of both features.", low=-MOST_CORRELATION, high=MOST_CORRELATION, digits=2
    )
    scale: float = option(
        1.0, "Standard deviation of the noise of the informative feature.", low=LEAST_SCALE, high=MOST_SCALE, digits=2
    )
    suppressor_scale: float = option(
        1.0, "Standard deviation of the suppressor.", low=LEAST_SCALE, high=MOST_SCALE, digits=2
    )

    def __post_init__(self) -> None:
        for field in fields(self):
            low, high, value = field.metadata["low"], field.metadata["high"], getattr(self, field.name)
            if not low <= value <= high:
                raise not_allowed(field.name, f"a number from {low:g} to {high:g}", value)

    @cached_property
    def noise(self) -> Float[np.ndarray, "3 3"]:
        """Covariance S of the noise. The unused feature has the scale of the suppressor."""
        scales = np.array([self.scale, self.suppressor_scale, self.suppressor_scale])
        correlations = np.eye(3)
        correlations[0, 1] = correlations[1, 0] = self.correlation
        return correlations * np.outer(scales, scales)

    @cached_property
    def weights(self) -> Float[np.ndarray, "3"]:
        """Weights w = 2 S^-1 a of the log-odds f(x) = w . x, the best classifier; w2 = -w1 c s1 / s2, and w3 = 0."""
        first = 2 / (self.scale**2 * (1 - self.correlation**2))
        return np.array([first, -first * self.correlation * self.scale / self.suppressor_scale, 0.0])

    def sample(self, count: int, seed: int, balanced: bool = False) -> tuple[Scores, Float[np.ndarray, "example"]]:
        """Draw examples and their classes. `balanced`: the classes alternate instead of being random."""
        generator = np.random.default_rng(seed)
        noise = generator.standard_normal((count, 3)) @ np.linalg.cholesky(self.noise).T
        classes = np.where(np.arange(count) % 2, 1.0, -1.0) if balanced else generator.choice([-1.0, 1.0], count)
        noise[:, 0] += classes
        return noise, classes


def weight(problem: GaussianProblem, x: Scores) -> Scores:
    """w: the gradient of f."""
    return np.broadcast_to(problem.weights, x.shape)


def weight_length(problem: GaussianProblem, x: Scores) -> Scores:
    """|w|: the absolute value of the gradient, feature by feature."""
    return np.abs(weight(problem, x))


def term(problem: GaussianProblem, x: Scores) -> Scores:
    """w_i x_i: the change of f if feature i is set to 0, which is its mean."""
    return problem.weights * x


def boundary_step(problem: GaussianProblem, x: Scores) -> Scores:
    """-f(x) w / |w|^2: the shortest step to the decision boundary."""
    w = problem.weights
    return -(x @ w)[:, None] * w / (w @ w)


def conditional_shapley(problem: GaussianProblem, x: Scores) -> Scores:
    """Shapley values of E[f | x_S].

    E[f | x2] = 0 and E[f | x1] = w1 ((1 - c^2) x1 + c^2 tanh(x1 / s1^2)), where the tanh is E[z | x1].
    """
    f, c2 = x @ problem.weights, problem.correlation**2
    first = problem.weights[0] * ((1 - c2) * x[:, 0] + c2 * np.tanh(x[:, 0] / problem.scale**2))
    return np.column_stack([(f + first) / 2, (f - first) / 2, np.zeros(len(x))])


def error_increase(problem: GaussianProblem, x: Scores) -> OneRow:
    """Increase in the error rate if a feature is permuted: 1/2 - E and Phi(-w1 / t') - E, with E = Phi(-w1 / t).

    t and t' are the standard deviations of f within a class, with the noise as it is and with features 1 and 2
    independent. One row for all examples.
    """
    w, scales = problem.weights, np.sqrt(np.diag(problem.noise))
    error = scipy.stats.norm.cdf(-w[0] / np.sqrt(w @ problem.noise @ w))
    permuted = scipy.stats.norm.cdf(-w[0] / np.sqrt(((w * scales) ** 2).sum()))
    return np.array([[0.5 - error, permuted - error, 0.0]])


def pattern(problem: GaussianProblem, x: Scores) -> OneRow:
    """Cov(x, f) / Var(f) = a / (2 a' S^-1 a): one row for all examples, 0 for the suppressor."""
    return np.array([[1 / problem.weights[0], 0.0, 0.0]])


def pattern_relevance(problem: GaussianProblem, x: Scores) -> Scores:
    """f(x) w_i times the pattern: f for feature 1, 0 for the suppressor."""
    return np.outer(x @ problem.weights, [1.0, 0.0, 0.0])


def expectation_spread(problem: GaussianProblem, x: Scores) -> OneRow:
    """Standard deviation of E[f | x_i] over x_i: 0 for the suppressor.

    For feature 1 its square is w1^2 ((1 - c^2)^2 (1 + s1^2) + 2 c^2 (1 - c^2) + c^4 E[tanh^2(x1 / s1^2)]).
    """
    c2, variance = problem.correlation**2, problem.scale**2
    nodes, shares = np.polynomial.hermite_e.hermegauss(NODES)
    certainty = shares / shares.sum() @ np.tanh((1 + problem.scale * nodes) / variance) ** 2
    square = (1 - c2) ** 2 * (1 + variance) + 2 * c2 * (1 - c2) + c2**2 * certainty
    return np.array([[problem.weights[0] * np.sqrt(square), 0.0, 0.0]])


@dataclass(frozen=True)
class ClosedForm:
    """The scores that a family of methods assigns. `formula`: formula of the suppressor's score, for readers."""

    title: str
    formula: str
    scores: Callable[[GaussianProblem, Scores], Float[np.ndarray, "row 3"]]


WEIGHT, COVARIANCE = "Weight w (gradients, counterfactuals)", "Covariance with f (PATTERN, FIRM)"
CLOSED_FORMS: Mapping[str, ClosedForm] = MappingProxyType(
    {
        "weight": ClosedForm(WEIGHT, "w₂ = −w₁·c·s₁/s₂", weight),
        "length": ClosedForm(WEIGHT, "|w₂| = w₁·|c|·s₁/s₂", weight_length),
        "term": ClosedForm("Term w·x (LRP, SHAP, LIME, …)", "w₂·x₂", term),
        "boundary": ClosedForm(WEIGHT, "−f(x)·w₂/‖w‖²", boundary_step),
        "conditional": ClosedForm("Conditional Shapley value", "(f(x) − E[f | x₁])/2", conditional_shapley),
        "error": ClosedForm("Increase of the error (permutation)", "Φ(−w₁/t′) − Φ(−w₁/t)", error_increase),
        "pattern": ClosedForm(COVARIANCE, "0", pattern),
        "relevance": ClosedForm(COVARIANCE, "0", pattern_relevance),
        "expectation": ClosedForm(COVARIANCE, "0", expectation_spread),
    }
)
"""Closed forms by id. Those with the same title give the suppressor the same share and form one line of the chart."""
