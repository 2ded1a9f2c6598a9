"""What methods give the features of the Gaussian problem, measured beside their closed forms.

Explainers of the project run as they are on the linear classifier. Methods that it does not have as explainers are
measured apart: Shapley values of conditional expectations, permutation importance, and those of Wilming et al. (2023)
that pass. Where these need the distribution, its density is integrated numerically and no closed form is used.
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
"""The largest difference from a closed form, relative to the largest score, of what is not estimated from draws."""
ERRORS = 4.0
"""The largest difference in standard errors of what is."""
REPEATS, ROWS = 50, 1000
"""Data sets from which permutation importance is estimated, and their size."""
HALF_WIDTH, POINTS = 8.0, 301
"""The grid of numerical integration: standard deviations to each side of the class means, points a side."""
WIDER = 1.5
"""By how much the grid of a conditional expectation is wider: at the end of one feature the other is beyond its own."""
RANDOM = "random"


@dataclass(frozen=True)
class SuppressorMethod:
    """A method of the problem. `form`: its closed form's id, empty for none. `params`: an explainer's parameters."""

    id: str
    form: str
    params: Mapping[str, Plain] | None = None
    title: str = ""
    citation: str = ""

    @property
    def name(self) -> str:
        """Its title for people."""
        return self.title or explainer(self.id).title

    @property
    def source(self) -> str:
        """Its citation."""
        return self.citation or explainer(self.id).citation

    @property
    def closed_form(self) -> ClosedForm | None:
        """What theory says; None for the random baseline."""
        return CLOSED_FORMS.get(self.form)


_REMOVED: Mapping[str, Plain] = MappingProxyType({"removal": REMOVAL})
_FROM_MEAN: Mapping[str, Plain] = MappingProxyType({"baseline": REMOVAL})
_LIME: Mapping[str, Plain] = MappingProxyType({"removal": REMOVAL, "ridge": 0.0})
"""Without the penalty, whose shrinkage depends on the draws."""
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
"""In the order of the table, the baseline last."""


@dataclass(frozen=True)
class MethodMeasurement:
    """A method at one correlation.

    `theory`: the share of the suppressor by the closed form at the same examples; None where there is none.
    `difference`: the largest one between measured and closed-form scores. For an estimate the one of the means, and
    `limit` is `ERRORS` standard errors. Else `limit` is `EXACT` of the largest score.
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
        """All numbers as plain values, with the title and the formula."""
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
        """All methods but the random baseline."""
        return tuple(one for one in self.methods if one.method.id != RANDOM)

    def as_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "problem": asdict(self.problem),
            "weights": self.problem.weights.tolist(),
            "seed": self.seed,
            "criterion": CRITERION,
            "methods": [one.as_json() for one in self.methods],
        }


def measure_gaussian(problem: GaussianProblem, seed: int = 0) -> GaussianResult:
    """Run every method on the best classifier of the problem, beside its closed form. Takes about 0.2 s."""
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
    """The share of the suppressor by each closed form, by its title, at the examples that are measured."""
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
    """The examples of one measurement, the classifier, and what is integrated over the distribution."""

    def __init__(self, problem: GaussianProblem, seed: int) -> None:
        self.problem, self.seed = problem, seed
        self.x = problem.sample(EXAMPLES, seed, balanced=True)[0]
        self.model = LinearClassifier(problem.weights)
        self.encoded = [EncodedFeatures(row, at) for at, row in enumerate(self.x)]

    def scores(self, method: SuppressorMethod) -> Scores:
        """A row an example, or a row a data set for permutation importance."""
        if method.params is not None:
            return run_explainer(method.id, method.params, self.model, self.encoded, [0] * len(self.x), self.seed)
        own = _MEASURES[method.id](self)
        return np.broadcast_to(own, self.x.shape) if len(own) == 1 else own

    def output(self, x: Scores) -> Float[np.ndarray, "example"]:
        """f by the classifier itself."""
        with torch.inference_mode():
            return self.model.logits(feature_batch(x))[:, 0].numpy()

    @cached_property
    def grid(self) -> tuple[Float[np.ndarray, "point"], Float[np.ndarray, "point"], Float[np.ndarray, "point point"]]:
        """Points of features 1 and 2, and the share of the distribution of each pair of them."""
        problem = self.problem
        first = np.linspace(-1 - HALF_WIDTH * problem.scale, 1 + HALF_WIDTH * problem.scale, POINTS)
        second = np.linspace(-1, 1, POINTS) * HALF_WIDTH * problem.suppressor_scale
        shares = self.density(first[:, None], second[None, :])
        return first, second, shares / shares.sum()

    def density(self, first: Float[np.ndarray, "..."], second: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Density of features 1 and 2 up to a factor: the mean of both classes."""
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
    """Scores of a registered explainer on a model in memory, all examples in one batch. All must be of one length."""
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
    """Mean of f over the distribution of the other features, at each example's value of one."""
    first, second, shares = study.grid
    means = np.array([shares.sum(1) @ first, shares.sum(0) @ second, 0.0])
    held = np.broadcast_to(means, (len(study.x), 3))
    columns = [np.where(np.arange(3) == column, study.x, held) for column in range(3)]
    return np.column_stack([study.output(own) for own in columns])


def _counterfactual(study: _GaussianStudy) -> Scores:
    """The step to the nearest point of the decision line, by the gradient that the explainer measures."""
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
    """Increase of the error rate if a column is permuted: a row for each of several data sets.

    Rows are independent, so moving a column by one row permutes it, and no value meets its own row.
    """
    x, classes = study.problem.sample(REPEATS * ROWS, study.seed + 1)
    wrong = [study.output(own) * classes < 0 for own in (x, *(_moved(x, column) for column in range(3)))]
    rates = [errors.reshape(REPEATS, ROWS).mean(1) for errors in wrong]
    return np.column_stack([rate - rates[0] for rate in rates[1:]])


def _moved(x: Scores, column: int) -> Scores:
    """The data with one column permuted within each data set."""
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
    """Standard deviation of E[f | x_i], both integrals on the grid."""
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
