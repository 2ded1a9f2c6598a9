"""Constructed models on which integrated gradients and SHAP cannot do better than guessing, and queries can.

Pairs of piecewise-linear models agree at the explained point and at the baseline, but near the point one rises with
feature 1 and the other falls. Integrated gradients and Shapley values of both are equal, so that whatever is concluded
from them is right for one model and wrong for the other. Source: Bilodeau, Jaques, Koh and Kim (2024), Impossibility
theorems for feature attribution, PNAS 121(2): of complete and linear methods, no test
of local behavior has more power than its level.
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
"""Evaluations that a direct query may spend."""
RADIUS = 0.25
"""How far from the point the behavior of feature 1 is the local one, and queries are."""
STEEPNESS = 1.0
"""The local slope of feature 1 is so large, up or down."""


@dataclass(frozen=True, eq=False)
class ReluModel:
    """A network with one hidden layer: f(z) = z direct + relu(z weights + biases) output."""

    weights: Float[np.ndarray, "feature unit"]
    biases: Float[np.ndarray, "unit"]
    output: Float[np.ndarray, "unit"]
    direct: Float[np.ndarray, "feature"]

    def values(self, points: Float[np.ndarray, "point feature"]) -> Float[np.ndarray, "point"]:
        """f of each point."""
        return points @ self.direct + np.maximum(points @ self.weights + self.biases, 0) @ self.output

    def gradient(self, point: Float[np.ndarray, "feature"]) -> Float[np.ndarray, "feature"]:
        """The gradient of f; at a kink that of the inactive side."""
        active = point @ self.weights + self.biases > 0
        return self.direct + self.weights @ (self.output * active)


def integrated_gradients(
    model: ReluModel, point: Float[np.ndarray, "feature"], baseline: Float[np.ndarray, "feature"]
) -> Float[np.ndarray, "feature"]:
    """Integrated gradients, exactly: the gradient is constant between the kinks of the straight path.

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
    """Shapley values by all coalitions; features outside of one are at the baseline.

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
"""Evaluations: a gradient for each piece of the path, of which every hidden unit may end one; all coalitions."""
QUERY = "query"


@dataclass(frozen=True, eq=False)
class TwinModels:
    """Two models that differ only near the point: `rising` and `falling` with feature 1 there."""

    rising: ReluModel
    falling: ReluModel
    point: Float[np.ndarray, "feature"]
    baseline: Float[np.ndarray, "feature"]


def build_twins(generator: np.random.Generator, features: int = FEATURES) -> TwinModels:
    """A pair of models with random other features. The baseline is 0, the point within [1, 2] in each feature.

    Feature 1 enters by itself: a line from 0 at the baseline, then the local slope within `RADIUS` of the point, which
    meet so that both models have the same value at the point. The others enter through random hidden units.
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
    """The model with a function of feature 1 added that is 0 at 0, `total` at `at`, and has the slope there."""
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
    """Whether f rises with feature 1 near the point, by an even number of evaluations.

    Half of them are above the point in feature 1, half below it, and all differ in the other features, so that few
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
    """The share of models of which a way tells whether feature 1 rises or falls, with a 95% interval over models.

    `evaluations`: of each model. An attribution's interval has no width: its accuracy does not depend on the sample.
    """

    way: str
    evaluations: int
    accuracy: float
    interval: Interval


@dataclass(frozen=True)
class Impossibility:
    """The accuracy of attributions and of direct queries on `pairs` of constructed models.

    `largest_difference`: between the attributions of both models of a pair, over all features: rounding alone.
    """

    pairs: int
    largest_difference: float
    methods: tuple[ConstructedAccuracy, ...]
    queries: tuple[ConstructedAccuracy, ...]

    def as_json(self) -> dict[str, Any]:
        """All of it as JSON's values."""
        return asdict(self)


@functools.cache
def demonstrate(pairs: int = PAIRS, seed: int = 0) -> Impossibility:
    """Ask both models of each pair whether they rise with feature 1, by its attribution and by direct queries.

    An attribution says that the model rises where the score of feature 1 is positive.
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
    # No interval: in each pair exactly one answer is right, whichever models are drawn.
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
