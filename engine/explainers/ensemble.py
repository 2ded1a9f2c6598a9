"""Methods that combine maps: ensembles, the aggregates of Bhatt et al. (2020), and the random baseline."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from jaxtyping import Float

from engine.errors import ExegesisError
from engine.explainers.perturbation import GAP_LIMIT, KernelShapParams, RemovalParams, kernel_shap
from engine.metrics.sensitivity import RADII, classifier_of_neighbors, complexity, distance, move, moved
from engine.models.classifier import AnyClassifier, EncodedInput
from engine.models.text_classifier import EncodedText, TextClassifier
from engine.params import option
from engine.registry import SEVEN, TOP_THREE, Axes, explainer, register
from engine.result import Check
from engine.task import Attribution, Task, TaskItem

_BHATT = "Bhatt, Weller and Moura (2020), Evaluating and aggregating feature-based model explanations"
_CAUTION = "A mean hides disagreement: check the members before trusting it."
_MEMBER = "that of each member"
STRIDES = 20
"""Number of steps that lead a score from one map to another."""
ANTECEDENTS = 0x0A7A0A7A
"""Seed of a text's neighbors, separate from the seeds that users choose."""
ROUNDING = 1e-9
"""Difference in nats below which entropies count as equal."""

Map = Float[np.ndarray, "seq"]
Combine = Callable[[list[Map]], tuple[Map, Check | None]]
"""Combines the maps of the members into one, with its check if it has one."""


@register(
    "ensemble_all",
    title="Ensemble of seven",
    family="ensemble",
    axes=Axes(_MEMBER, _MEMBER, "mean of scaled maps, of seven methods"),
    cheap=False,
    citation="The thesis, section 3.4: Ensemble (All Methods)",
    caution=_CAUTION,
)
def ensemble_all(task: Task, params: object) -> list[Attribution]:
    """Mean of the thesis's seven methods at their defaults, each divided by its sum of absolute values."""
    return _ensemble(task, SEVEN, _mean)


@register(
    "ensemble_top3",
    title="Ensemble of three",
    family="ensemble",
    axes=Axes(_MEMBER, _MEMBER, "mean of scaled maps, of three methods"),
    cheap=False,
    citation="The thesis, section 3.4: Ensemble (Top 3)",
    caution=_CAUTION,
)
def ensemble_top3(task: Task, params: object) -> list[Attribution]:
    """Mean of LIME, SHAP and integrated gradients, each divided by its sum of absolute values."""
    return _ensemble(task, TOP_THREE, _mean)


def _mean(maps: list[Map]) -> tuple[Map, Check | None]:
    return np.mean(maps, axis=0), None


def _ensemble(task: Task, methods: tuple[str, ...], combine: Combine) -> list[Attribution]:
    if task.explain_with is None:
        raise ExegesisError("ensemble: needs the maps of its members. Compute it through engine.explain.")
    members = [task.explain_with(method) for method in methods]
    return [
        _combine(item, dict(zip(methods, maps, strict=True)), combine)
        for item, maps in zip(task.items, zip(*members, strict=True), strict=True)
    ]


def _combine(item: TaskItem, members: dict[str, Attribution], combine: Combine) -> Attribution:
    scaled = {m: normalize(a.scores, item) for m, a in members.items()}
    flat = [m for m, scores in scaled.items() if scores is None]
    maps = [scores for scores in scaled.values() if scores is not None]
    scores, check = combine(maps) if maps else (np.zeros(len(item.encoded)), None)
    left_out = (f"Left out, because all their scores are zero: {', '.join(flat)}.",) if flat else ()
    notes = (f"{explainer(m).title}: {note}" for m, a in members.items() for note in a.notes)
    return Attribution(scores, sum(a.evaluations for a in members.values()), check, (*left_out, *notes))


@register(
    "least_complex",
    title="Least complex aggregate",
    family="ensemble",
    axes=Axes(_MEMBER, _MEMBER, "mean of scaled maps, weighted to lower the entropy"),
    cheap=False,
    citation=f"{_BHATT}, its gradient-descent style method",
    caution="It is chosen for its low complexity, so its complexity says little: judge it by other metrics.",
    tuned_on=lambda params: "complexity",
)
def least_complex(task: Task, params: object) -> list[Attribution]:
    """An aggregate of LIME, SHAP and integrated gradients whose complexity is at most that of each of them.

    Signed, without unit; the members are each divided by their sum of absolute values, as in an ensemble. A walk leads
    from each member toward their mean, and one from the mean toward each member: a score moves by a small part of its
    way as long as the complexity falls. The result is the least complex end of all walks; where several are, the first.
    Complexity is that of the metric, the entropy of the shares of the total absolute score.

    The paper's other method, region shrinking, is left out: along the line between two maps of one sign and one sum
    the entropy is concave, so that it returns the least complex member itself.
    """
    return _ensemble(task, TOP_THREE, aggregate_by_walks)


def aggregate_by_walks(maps: list[Map]) -> tuple[Map, Check | None]:
    """Return the least complex end of the walks between each map and their mean, with a check of its complexity."""
    mean = np.mean(maps, axis=0)
    walks = [walk_down(one, mean) for one in maps]
    walks += [walk_down(mean, one) for one in maps] if mean.any() else []
    complexities = [complexity(one) or 0.0 for one in walks]
    best = int(np.argmax(np.array(complexities) < min(complexities) + ROUNDING))
    above = complexities[best] - min(complexity(one) or 0.0 for one in maps)
    return walks[best], Check("complexity above that of the least complex member, in nats", max(0.0, above), ROUNDING)


def walk_down(start: Map, end: Map) -> Map:
    """Move scores toward `end`, one at a time by 1 / `STRIDES` of the distance, as long as the entropy falls."""
    here, stride = start.copy(), (end - start) / STRIDES
    left = np.where(stride != 0, STRIDES, 0)
    total, product = float(np.abs(here).sum()), float(sum(map(_x_log_x, here)))
    moved = True
    while moved:
        moved = False
        for i in np.flatnonzero(left).tolist():
            there = float(end[i] if left[i] == 1 else here[i] + stride[i])
            new_total = total + abs(there) - abs(here[i])
            new_product = product + _x_log_x(there) - _x_log_x(here[i])
            if new_total > ROUNDING and _entropy(new_total, new_product) < _entropy(total, product) - ROUNDING:
                here[i], total, product = there, new_total, new_product
                left[i] -= 1
                moved = True
    return here


def _x_log_x(x: float) -> float:
    return abs(x) * math.log(abs(x)) if x else 0.0


def _entropy(total: float, product: float) -> float:
    """Return the entropy of `|a| / total` from the sums of `|a|` and of `|a| log |a|`."""
    return math.log(total) - product / total


@dataclass(frozen=True)
class LeastSensitiveParams(RemovalParams):
    n_neighbors: int = option(8, "Neighbors of the input whose Shapley values are averaged", low=1, high=100)
    n_samples: int = option(128, "Maximum number of model evaluations for each neighbor", low=4, high=100_000)


@register(
    "least_sensitive",
    title="Least sensitive aggregate",
    family="perturbation",
    params=LeastSensitiveParams,
    axes=Axes("chosen operator, coalitions of words", "probability of the class", "Shapley value, of neighbors"),
    cheap=False,
    citation=f"{_BHATT}, its aggregate valuation of antecedents (AVA)",
    caution="It explains fixed neighbors of your text, never the text itself: that is why it hardly changes with it.",
    inputs=("text",),
    members=("kernel_shap",),
)
def least_sensitive(task: Task, params: LeastSensitiveParams) -> list[Attribution]:
    """`sum_z w_z phi(z)`: Shapley values of m at neighbors z, in probability, signed; `w_z` falls as `1 / |x - z|`.

    By linearity these are the Shapley values of the game `sum_z w_z v_z`: they sum to its change exactly. The weights
    sum to 1, so that the unit stays. Where the input moves a little, its neighbors stay: the weights alone change.

    Departure: the paper's neighbors are the nearest examples of a training set. A method sees one example, and the
    tokens of another text are not its own, so the neighbors are points around the word embeddings of the text, drawn
    as those of the metric `sensitivity` are, the same for every seed. Pictures have no such fixed place.
    """
    model = classifier_of_neighbors(task.model)
    near = [fixed_neighbors(model, cast(EncodedText, item.encoded), params.n_neighbors) for item in task.items]
    neighbors = [
        TaskItem(encoded, item.prediction, item.target, seed=0)
        for item, own in zip(task.items, near, strict=True)
        for encoded in own
    ]
    shapley = KernelShapParams(removal=params.removal, n_samples=params.n_samples)
    attributions = iter(kernel_shap(Task(model, neighbors), shapley))
    return [
        weighted_mean([next(attributions) for _ in own], [1 / distance(item.encoded, encoded) for encoded in own])
        for item, own in zip(task.items, near, strict=True)
    ]


def fixed_neighbors(model: AnyClassifier, encoded: EncodedText, count: int) -> list[EncodedInput]:
    """Return points around the word embeddings of a text; if the text is itself perturbed, around the original ones."""
    width = cast(TextClassifier, model).embedding.embedding_dim
    place = moved(encoded, np.zeros((len(encoded), width), dtype=np.float32))
    return [move(model, place, number, RADII[model.kind], ANTECEDENTS) for number in range(count)]


def weighted_mean(attributions: Sequence[Attribution], weights: Sequence[float]) -> Attribution:
    """Return the weighted mean of additive maps; its additivity gap is at most the mean of theirs."""
    shares = np.array(weights) / sum(weights)
    gap = sum(share * a.check.value for share, a in zip(shares, attributions, strict=True) if a.check is not None)
    return Attribution(
        shares @ np.stack([a.scores for a in attributions]),
        sum(a.evaluations for a in attributions),
        Check("additivity gap", float(gap), GAP_LIMIT),
        tuple(dict.fromkeys(note for a in attributions for note in a.notes)),
    )


def normalize(scores: Float[np.ndarray, "seq"], item: TaskItem) -> Float[np.ndarray, "seq"] | None:
    """Divide the features' scores by their sum of absolute values, or return None if it is zero.

    The thesis divides by the signed sum, which can be zero.
    """
    features = item.encoded.features
    total = np.abs(scores[features]).sum()
    if total == 0:
        return None
    scaled = np.zeros(len(scores))
    scaled[features] = scores[features] / total
    return scaled


@register(
    "random",
    title="Random",
    family="baseline",
    axes=Axes("none", "none", "a random order"),
    signed=False,
    citation="The baseline of the randomization and faithfulness literature, e.g. Adebayo et al. (2018)",
    caution="It ignores the model. A method that does no better is uninformative.",
)
def random(task: Task, params: object) -> list[Attribution]:
    """A random permutation of 1..n; unsigned, without unit. Special tokens get 0. It is always shown for comparison."""
    attributions = []
    for item in task.items:
        scores = np.zeros(len(item.encoded))
        n = len(item.encoded.features)
        scores[item.encoded.features] = item.generator().permutation(n) + 1
        attributions.append(Attribution(scores, 0))
    return attributions
