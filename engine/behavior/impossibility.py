"""Constructed models on which integrated gradients and SHAP do no better than guessing, while direct queries do.

Pairs of piecewise-linear models agree at the explained point and at the baseline, but near the point one rises with
feature 1 and the other falls. Integrated gradients and Shapley values are equal for both models, so any conclusion from
them is right for one model and wrong for the other. Source: Bilodeau, Jaques, Koh and Kim (2024), Impossibility
theorems for feature attribution, PNAS 121(2): for complete and linear methods, no test of local behavior has more power
than its level.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from engine.metrics.results import Interval, share_interval

FEATURES = 5
PAIRS = 200
BUDGETS = (2, 4, 8, 16, 32, 64, 128)
"""Numbers of evaluations that a direct query may spend."""
RADIUS = 0.25
"""Distance from the point within which feature 1 has its local slope and queries are made."""
STEEPNESS = 1.0
"""Absolute local slope of feature 1."""


@dataclass(frozen=True, eq=False)
class ReluModel:
    """A network with one hidden layer: f(z) = z direct + relu(z weights + biases) output."""

    weights: Float[np.ndarray, "feature unit"]
    biases: Float[np.ndarray, "unit"]
    output: Float[np.ndarray, "unit"]
    direct: Float[np.ndarray, "feature"]

    def values(self, points: Float[np.ndarray, "point feature"]) -> Float[np.ndarray, "point"]:
        """Return f at each point."""
        return points @ self.direct + np.maximum(points @ self.weights + self.biases, 0) @ self.output

    def gradient(self, point: Float[np.ndarray, "feature"]) -> Float[np.ndarray, "feature"]:
        """Return the gradient of f; at a kink, that of the inactive side."""
        active = point @ self.weights + self.biases > 0
        return self.direct + self.weights @ (self.output * active)


def integrated_gradients(
    model: ReluModel, point: Float[np.ndarray, "feature"], baseline: Float[np.ndarray, "feature"]
) -> Float[np.ndarray, "feature"]:
    """Compute integrated gradients exactly: the gradient is constant between the kinks along the straight path.

    Signed, in the unit of f; they sum to f(point) - f(baseline). Source: Sundararajan et al. (2017), equation 1.
    """
    step = point - baseline
    rates, starts = step @ model.weights, baseline @ model.weights + model.biases
    crossings = [float(-start / rate) for start, rate in zip(starts, rates, strict=True) if rate]
    ends = [0.0, *sorted(at for at in crossings if 0 < at < 1), 1.0]
    pieces = [
        (end - start) * model.gradient(baseline + (start + end) / 2 * step) for start, end in itertools.pairwise(ends)
    ]
    return step * np.sum(pieces, axis=0)


def shapley_values(
    model: ReluModel, point: Float[np.ndarray, "feature"], baseline: Float[np.ndarray, "feature"]
) -> Float[np.ndarray, "feature"]:
    """Compute Shapley values over all coalitions; features outside a coalition are set to the baseline.

    Signed, in the unit of f; they sum to f(point) - f(baseline). Source: Lundberg and Lee (2017), equation 4.
    """
    n = len(point)
    kept = np.array(list(itertools.product((False, True), repeat=n)))
    values = model.values(np.where(kept, point, baseline))
    sizes = kept.sum(axis=1)
    shapley = np.empty(n)
    for feature in range(n):
        others = ~kept[:, feature]
        weights = np.array([1 / (n * math.comb(n - 1, size)) for size in sizes[others]])
        # The rows with the feature are in the same order as those without it.
        shapley[feature] = weights @ (values[~others] - values[others])
    return shapley


METHODS = {"integrated_gradients": integrated_gradients, "exact_shapley": shapley_values}
COSTS = {"integrated_gradients": 2 * FEATURES + 2, "exact_shapley": 2**FEATURES}
"""Number of evaluations: a gradient per piece of the path, which each hidden unit may split once; or all coalitions."""
QUERY = "query"


@dataclass(frozen=True, eq=False)
class TwinModels:
    """Two models that differ only near the point, where one rises and the other falls with feature 1."""

    rising: ReluModel
    falling: ReluModel
    point: Float[np.ndarray, "feature"]
    baseline: Float[np.ndarray, "feature"]


def build_twins(generator: np.random.Generator, features: int = FEATURES) -> TwinModels:
    """Build a pair of models with random other features. The baseline is 0; each feature of the point is within [1, 2].

    Feature 1 enters additively: a line from 0 at the baseline, then the local slope within `RADIUS` of the point. The
    line is chosen so that both models have the same value at the point. The other features enter through random hidden
    units.
    """
    point = generator.uniform(1, 2, features)
    total = float(generator.normal())
    hidden = 2 * features
    weights = generator.normal(size=(features, hidden))
    weights[0] = 0
    others = ReluModel(
        weights, generator.normal(size=hidden), generator.normal(size=hidden) / hidden, generator.normal(size=features)
    )
    return TwinModels(
        _with_first(others, float(point[0]), total, STEEPNESS),
        _with_first(others, float(point[0]), total, -STEEPNESS),
        point,
        np.zeros(features),
    )


def _with_first(others: ReluModel, at: float, total: float, slope: float) -> ReluModel:
    """Add a function of feature 1 that is 0 at 0, is `total` at `at`, and has this slope there."""
    bend = at - RADIUS
    before = (total - slope * RADIUS) / bend
    first = np.eye(len(others.direct))[0]
    return ReluModel(
        np.column_stack([others.weights, first]),
        np.append(others.biases, -bend),
        np.append(others.output, slope - before),
        np.where(first > 0, before, others.direct),
    )


def query_rises(
    model: ReluModel, point: Float[np.ndarray, "feature"], evaluations: int, generator: np.random.Generator
) -> bool:
    """Whether f appears to rise with feature 1 near the point, by an even number of evaluations.

    Half of them are above the point in feature 1 and half below. All differ randomly in the other features, so few
    evaluations may mislead.
    """
    half = evaluations // 2
    nearby = point + generator.uniform(-RADIUS, RADIUS, (2 * half, len(point)))
    distance = generator.uniform(0, RADIUS, 2 * half)
    nearby[:, 0] = point[0] + np.where(np.arange(2 * half) < half, distance, -distance)
    values = model.values(nearby)
    return bool(values[:half].mean() > values[half:].mean())


@dataclass(frozen=True)
class ConstructedAccuracy:
    """Share of the models for which a way tells whether feature 1 rises or falls, with a 95% interval over models.

    `evaluations`: per model. An attribution's interval has zero width, because its accuracy does not depend on the
    sample.
    """

    way: str
    evaluations: int
    accuracy: float
    interval: Interval


@dataclass(frozen=True)
class Impossibility:
    """The accuracy of attributions and direct queries on `pairs` of constructed models.

    `largest_difference`: largest difference between the attributions of the two models of a pair, over all features. It
    is due to rounding alone.
    """

    pairs: int
    largest_difference: float
    methods: tuple[ConstructedAccuracy, ...]
    queries: tuple[ConstructedAccuracy, ...]

    def as_json(self) -> dict[str, Any]:
        """Return all fields as plain values."""
        return asdict(self)


@functools.cache
def demonstrate(pairs: int = PAIRS, seed: int = 0) -> Impossibility:
    """Ask whether each model rises with feature 1, by its attributions and by direct queries.

    An attribution says that the model rises if the score of feature 1 is positive.
    """
    generator = np.random.default_rng([seed, pairs])
    twins = [build_twins(generator) for _ in range(pairs)]
    right = dict.fromkeys(METHODS, 0)
    gap = 0.0
    for twin in twins:
        for name, attribute in METHODS.items():
            rising, falling = (attribute(one, twin.point, twin.baseline) for one in (twin.rising, twin.falling))
            gap = max(gap, float(np.abs(rising - falling).max()))
            right[name] += int(rising[0] > 0) + int(falling[0] <= 0)
    shares = {name: number / (2 * pairs) for name, number in right.items()}
    # The interval has zero width: in each pair exactly one answer is right, for any draw of models.
    methods = [ConstructedAccuracy(name, COSTS[name], own, (own, own)) for name, own in shares.items()]
    queries = []
    for budget in BUDGETS:
        answers = [
            query_rises(model, twin.point, budget, generator) is rises
            for twin in twins
            for model, rises in ((twin.rising, True), (twin.falling, False))
        ]
        interval = share_interval(sum(answers), len(answers))
        queries.append(ConstructedAccuracy(QUERY, budget, sum(answers) / len(answers), interval))
    return Impossibility(pairs, gap, tuple(methods), tuple(queries))
