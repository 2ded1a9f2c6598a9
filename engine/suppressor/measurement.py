"""Scores of methods on the Gaussian problem, measured and compared with their closed forms.

The project's explainers run unchanged on the linear classifier. Methods that are not explainers of the project are
implemented here: partial dependence, counterfactuals, Shapley values of conditional expectations, permutation
importance, and the methods that pass in Wilming et al. (2023). If they need the distribution, its density is integrated
numerically and no closed form is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from engine import runtime
from engine.explain import predict_encoded
from engine.explainers import shapley
from engine.lazy import torch
from engine.models.classifier import AnyClassifier, EncodedInput
from engine.params import Plain
from engine.registry import explainer
from engine.suppressor.criterion import CRITERION, Scores, SuppressorVerdict, judge
from engine.suppressor.gaussian import CLOSED_FORMS, EXAMPLES, ClosedForm, GaussianProblem
from engine.suppressor.linear import REMOVAL, EncodedFeatures, LinearClassifier, feature_batch
from engine.task import Attribution, Task, TaskItem

EXACT = 1e-6
"""Largest allowed difference from a closed form, relative to the largest score, for methods without sampling error."""
ERRORS = 4.0
"""Largest allowed difference in standard errors, for estimates."""
REPEATS, ROWS = 50, 1000
"""Number of data sets from which permutation importance is estimated, and their size."""
HALF_WIDTH, POINTS = 8.0, 301
"""Grid of the numerical integration: standard deviations to each side of the class means, and points per axis."""
WIDER = 1.5
"""Factor by which the grid of a conditional expectation is wider.

If one feature is at the end of its grid, the other one is concentrated beyond the end of its own.
"""
RANDOM = "random"


@dataclass(frozen=True)
class SuppressorMethod:
    """A method of the problem.

    `form`: id of its closed form, empty if there is none. `params`: parameters of the explainer; None for a method that
    is not an explainer.
    """

    id: str
    form: str
    params: Mapping[str, Plain] | None = None
    title: str = ""
    citation: str = ""

    @property
    def name(self) -> str:
        """The display title."""
        return self.title or explainer(self.id).title

    @property
    def source(self) -> str:
        """The citation."""
        return self.citation or explainer(self.id).citation

    @property
    def closed_form(self) -> ClosedForm | None:
        """The closed form; None for the random baseline."""
        return CLOSED_FORMS.get(self.form)


_REMOVED: Mapping[str, Plain] = MappingProxyType({"removal": REMOVAL})
_FROM_MEAN: Mapping[str, Plain] = MappingProxyType({"baseline": REMOVAL})
_LIME: Mapping[str, Plain] = MappingProxyType({"removal": REMOVAL, "ridge": 0.0})
"""Parameters without the ridge penalty, whose shrinkage depends on the draws."""
METHODS: tuple[SuppressorMethod, ...] = (
    SuppressorMethod("gradient", "weight", {}),
    SuppressorMethod("gradient_l2", "length", {}),
    SuppressorMethod("smoothgrad", "length", {}),
    SuppressorMethod("gradient_x_input", "term", {}),
    SuppressorMethod("integrated_gradients", "term", _FROM_MEAN),
    SuppressorMethod("deep_lift", "term", _FROM_MEAN),
    SuppressorMethod("attn_lrp", "term", {}),
    SuppressorMethod("occlusion", "term", _REMOVED),
    SuppressorMethod("lime", "term", _LIME),
    SuppressorMethod("kernel_shap", "term", _REMOVED),
    SuppressorMethod("exact_shapley", "term", _REMOVED),
    SuppressorMethod(
        "partial_dependence", "term", None, "Partial dependence",
        "Friedman (2001), Greedy function approximation, eq. 51",
    ),
    SuppressorMethod(
        "counterfactual", "boundary", None, "Counterfactual (nearest)",
        "Moosavi-Dezfooli, Fawzi and Frossard (2016), DeepFool, eq. 1; Wachter et al. (2018)",
    ),
    SuppressorMethod(
        "conditional_shapley", "conditional", None, "Shapley values, conditional",
        "Aas, Jullum and Løland (2021), Explaining individual predictions when features are dependent, eq. 6",
    ),
    SuppressorMethod(
        "permutation", "error", None, "Permutation importance",
        "Breiman (2001), Random forests, section 10; Fisher, Rudin and Dominici (2019)",
    ),
    SuppressorMethod(
        "pattern", "pattern", None, "PATTERN",
        "Haufe et al. (2014), On the interpretation of weight vectors of linear models, eq. 6; on one layer the "
        "same as PatternNet (Kindermans et al., 2018)",
    ),
    SuppressorMethod(
        "pattern_attribution", "relevance", None, "PatternAttribution",
        "Kindermans et al. (2018), Learning how to explain neural networks, section 4",
    ),
    SuppressorMethod(
        "firm", "expectation", None, "FIRM",
        "Zien et al. (2009), The feature importance ranking measure, eq. 1 and 2",
    ),
    SuppressorMethod(RANDOM, "", {}),
)  # fmt: skip
"""Methods in the order of the table, the baseline last."""


@dataclass(frozen=True)
class MethodMeasurement:
    """A method on one problem.

    `theory`: share of the suppressor by the closed form on the same examples; None if there is none. `difference`:
    largest difference between measured and closed-form scores; for an estimate, between their means. `limit`: the
    difference allowed: `EXACT` of the largest score, or `ERRORS` standard errors for an estimate.
    """

    method: SuppressorMethod
    measured: SuppressorVerdict
    theory: float | None
    difference: float | None
    limit: float | None

    @property
    def ok(self) -> bool:
        """Whether measurement and theory agree."""
        return self.difference is None or self.limit is None or self.difference <= self.limit

    def as_json(self) -> dict[str, Any]:
        """Return all values as plain values, with title and formula."""
        form = self.method.closed_form
        return {
            "title": self.method.name,
            **self.measured.as_json(),
            "formula": form.formula if form else None,
            "theory_share": self.theory,
            "difference": self.difference,
            "limit": self.limit,
            "ok": self.ok,
        }


@dataclass(frozen=True)
class GaussianResult:
    """Every method on the best classifier of a problem, in the order of `METHODS`."""

    problem: GaussianProblem
    seed: int
    methods: tuple[MethodMeasurement, ...]

    @property
    def judged(self) -> tuple[MethodMeasurement, ...]:
        """All methods except the random baseline."""
        return tuple(one for one in self.methods if one.method.id != RANDOM)

    def as_json(self) -> dict[str, Any]:
        """Return all fields as plain values."""
        return {
            "problem": asdict(self.problem),
            "weights": self.problem.weights.tolist(),
            "seed": self.seed,
            "criterion": CRITERION,
            "methods": [one.as_json() for one in self.methods],
        }


def measure_gaussian(problem: GaussianProblem, seed: int = 0) -> GaussianResult:
    """Run every method on the best classifier of the problem and compare with the closed form. Takes about 0.2 s."""
    study = _GaussianStudy(problem, seed)
    with runtime.turn():
        scores = {one.id: study.scores(one) for one in METHODS}
    verdicts = judge(scores)
    measured = (
        _beside_theory(one, verdict, scores[one.id], problem, study.x)
        for one, verdict in zip(METHODS, verdicts, strict=True)
    )
    return GaussianResult(problem, seed, tuple(measured))


def theory_shares(problem: GaussianProblem, seed: int = 0) -> dict[str, float]:
    """Share of the suppressor by each closed form, by title, on the examples that are measured."""
    x = problem.sample(EXAMPLES, seed, balanced=True)[0]
    return {form.title: theory_share(form.scores(problem, x)) for form in CLOSED_FORMS.values()}


def _beside_theory(
    method: SuppressorMethod, verdict: SuppressorVerdict, scores: Scores, problem: GaussianProblem, x: Scores
) -> MethodMeasurement:
    form = method.closed_form
    if form is None:
        return MethodMeasurement(method, verdict, None, None, None)
    theory = form.scores(problem, x)
    share = theory_share(theory)
    if method.id == "permutation":
        gaps = np.abs(scores.mean(0) - theory[0])
        errors = ERRORS * scores.std(0, ddof=1) / np.sqrt(len(scores))
        worst = int(np.argmax(gaps / np.maximum(errors, EXACT)))
        return MethodMeasurement(method, verdict, share, float(gaps[worst]), float(errors[worst]))
    difference = float(np.abs(scores - theory).max())
    return MethodMeasurement(method, verdict, share, difference, EXACT * float(np.abs(theory).max()))


def theory_share(scores: Scores) -> float:
    """Share of the suppressor in the mean absolute scores, from 0 to 1."""
    means = np.abs(scores).mean(0)
    return float(means[1] / means.sum())


class _GaussianStudy:
    """The examples of one measurement, the classifier, and the integrals over the distribution."""

    def __init__(self, problem: GaussianProblem, seed: int) -> None:
        self.problem, self.seed = problem, seed
        self.x = problem.sample(EXAMPLES, seed, balanced=True)[0]
        self.model = LinearClassifier(problem.weights)
        self.encoded = [EncodedFeatures(row, at) for at, row in enumerate(self.x)]

    def scores(self, method: SuppressorMethod) -> Scores:
        """Scores of a method: one row per example, or one row per data set for permutation importance."""
        if method.params is not None:
            return run_explainer(method.id, method.params, self.model, self.encoded, [0] * len(self.x), self.seed)
        own = _MEASURES[method.id](self)
        return np.broadcast_to(own, self.x.shape) if len(own) == 1 else own

    def output(self, x: Scores) -> Float[np.ndarray, "example"]:
        """f, computed by the classifier itself."""
        with torch.inference_mode():
            return self.model.logits(feature_batch(x))[:, 0].numpy()

    @cached_property
    def grid(self) -> tuple[Float[np.ndarray, "point"], Float[np.ndarray, "point"], Float[np.ndarray, "point point"]]:
        """Points of features 1 and 2, and the probability of each pair of points."""
        problem = self.problem
        first = np.linspace(-1 - HALF_WIDTH * problem.scale, 1 + HALF_WIDTH * problem.scale, POINTS)
        second = np.linspace(-1, 1, POINTS) * HALF_WIDTH * problem.suppressor_scale
        shares = self.density(first[:, None], second[None, :])
        return first, second, shares / shares.sum()

    def density(self, first: Float[np.ndarray, "..."], second: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Density of features 1 and 2 up to a factor, averaged over both classes."""
        precision = np.linalg.inv(self.problem.noise[:2, :2])

        def bump(mean: float) -> Float[np.ndarray, "..."]:
            at = first - mean
            return np.exp(
                -(precision[0, 0] * at**2 + 2 * precision[0, 1] * at * second + precision[1, 1] * second**2) / 2
            )

        return bump(-1.0) + bump(1.0)

    def expected_output(self, column: int, at: Float[np.ndarray, "example"]) -> Float[np.ndarray, "example"]:
        """E[f | x_column] at these values, by integration over the other feature."""
        points = WIDER * self.grid[1 - column]
        pairs = (at[:, None], points[None, :]) if column == 0 else (points[None, :], at[:, None])
        shares = self.density(*pairs)
        w = self.problem.weights
        return ((w[0] * pairs[0] + w[1] * pairs[1]) * shares).sum(1) / shares.sum(1)


def run_explainer(
    id: str,
    params: Mapping[str, Plain],
    model: AnyClassifier,
    examples: Sequence[EncodedInput],
    targets: Sequence[int],
    seed: int,
) -> Float[np.ndarray, "example seq"]:
    """Run a registered explainer on a model in memory, with all examples in one batch.

    All examples must have the same length.
    """
    predictions = predict_encoded(model, examples)
    items = [
        TaskItem(one, prediction, target, seed)
        for one, prediction, target in zip(examples, predictions, targets, strict=True)
    ]
    attributions = _attributions(Task(model, items, lambda id: _attributions(Task(model, items), id, {})), id, params)
    return np.stack([attribution.scores for attribution in attributions])


def _attributions(task: Task, id: str, params: Mapping[str, Plain]) -> list[Attribution]:
    method = explainer(id, task.model.kind)
    return method.function(task, method.resolve(params, task.model.id))


def _partial_dependence(study: _GaussianStudy) -> Scores:
    """Mean of f over the distribution of the other features, with one feature at each example's value."""
    first, second, shares = study.grid
    means = np.array([shares.sum(1) @ first, shares.sum(0) @ second, 0.0])
    held = np.broadcast_to(means, (len(study.x), 3))
    columns = [np.where(np.arange(3) == column, study.x, held) for column in range(3)]
    return np.column_stack([study.output(own) for own in columns])


def _counterfactual(study: _GaussianStudy) -> Scores:
    """The step to the nearest point of the decision boundary, along the gradient measured by the explainer."""
    slopes = run_explainer("gradient", {}, study.model, study.encoded, [0] * len(study.x), study.seed)
    return -study.output(study.x)[:, None] * slopes / (slopes**2).sum(1, keepdims=True)


def _conditional_shapley(study: _GaussianStudy) -> Scores:
    """Exact Shapley values over all 8 coalitions; feature 3 is independent and changes no expectation."""
    single = [study.expected_output(column, study.x[:, column]) for column in (0, 1)]
    both = study.output(study.x)
    values = np.column_stack([np.zeros(len(both)), *single, both])

    def expectations(at: int, keep: Bool[np.ndarray, "coalition 3"]) -> Float[np.ndarray, "coalition"]:
        """E[f | x_S] of one example for each set S."""
        return values[at, keep[:, 0] + 2 * keep[:, 1].astype(int)]

    return np.stack([shapley.exact(3, partial(expectations, at)) for at in range(len(both))])


def _permutation(study: _GaussianStudy) -> Scores:
    """Increase in the error rate if a column is permuted: one row per data set.

    Rows are independent, so shifting a column by one row permutes it, and no value stays in its own row.
    """
    x, classes = study.problem.sample(REPEATS * ROWS, study.seed + 1)
    wrong = [study.output(own) * classes < 0 for own in (x, *(_moved(x, column) for column in range(3)))]
    rates = [errors.reshape(REPEATS, ROWS).mean(1) for errors in wrong]
    return np.column_stack([rate - rates[0] for rate in rates[1:]])


def _moved(x: Scores, column: int) -> Scores:
    """The data with one column shifted within each data set."""
    moved = x.copy()
    moved[:, column] = np.roll(x[:, column].reshape(REPEATS, ROWS), 1, axis=1).ravel()
    return moved


def _covariances(study: _GaussianStudy) -> tuple[Float[np.ndarray, "3"], float]:
    """Cov(x, f) and Var(f) by integration; every mean is 0 by symmetry."""
    first, second, shares = study.grid
    f = study.problem.weights[0] * first[:, None] + study.problem.weights[1] * second[None, :]
    joint = [float((shares * f * column).sum()) for column in (first[:, None], second[None, :])]
    return np.array([*joint, 0.0]), float((shares * f**2).sum())


def _pattern(study: _GaussianStudy) -> Scores:
    covariance, variance = _covariances(study)
    return covariance[None] / variance


def _pattern_attribution(study: _GaussianStudy) -> Scores:
    covariance, variance = _covariances(study)
    return np.outer(study.output(study.x), study.problem.weights * covariance / variance)


def _firm(study: _GaussianStudy) -> Scores:
    """Standard deviation of E[f | x_i], with both integrals on the grid."""
    marginals = (study.grid[2].sum(1), study.grid[2].sum(0))
    spreads = [
        np.sqrt(marginal @ study.expected_output(column, study.grid[column]) ** 2)
        for column, marginal in enumerate(marginals)
    ]
    return np.array([[*spreads, 0.0]])


_MEASURES: Mapping[str, Callable[[_GaussianStudy], Scores]] = MappingProxyType(
    {
        "partial_dependence": _partial_dependence,
        "counterfactual": _counterfactual,
        "conditional_shapley": _conditional_shapley,
        "permutation": _permutation,
        "pattern": _pattern,
        "pattern_attribution": _pattern_attribution,
        "firm": _firm,
    }
)
