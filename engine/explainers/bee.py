"""BEE: integrated gradients from the baseline that does best on a chosen metric.

A map that is chosen by a metric scores well on it, so judge it by other metrics. The result names the metric, the
registry knows it (`Explainer.tuned_metric`), and an evaluation marks its column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from jaxtyping import Bool, Float

from engine.explainers.path_integrals import Paths, path_endpoints
from engine.input_kinds import input_kind
from engine.lazy import torch
from engine.metrics.catalog import METRICS, PERCENTS, SHARES
from engine.metrics.faithfulness import Faithfulness, RemovalCurve, masks_without_top
from engine.metrics.ranking import count_of_percent, rank_features
from engine.models.classifier import EMBEDDING, AnyClassifier, EncodedInput, as_float64
from engine.models.text_classifier import TextClassifier
from engine.params import QuantityParams, option
from engine.registry import Axes, register
from engine.removal_operators import OPERATORS, PATCH_OPERATORS
from engine.task import Attribution, Task, TaskItem
from engine.vision.classifier import blur, cut_patches
from engine.vision.picture import EncodedPicture

TUNED_ON = ("comprehensiveness", "sufficiency", "without_top", "with_top")
"""Metrics that a baseline can be tuned on; for the last two, which are curves, the area counts."""
DISTRIBUTIONS = ("constant", "smoothed", "uniform", "normal", "shuffled")
"""Distributions of random baselines, the arms of the bandit."""
SMOOTHING = (0.5, 3.0)
"""Range of the standard deviation of the smoothing Gaussian, in tokens or in patch sides."""
TIE = 1e-5
"""Difference below which values of the metric count as equal; rounding in single precision is smaller."""
QUADRATURE = "clenshaw_curtis"

Points = Float[np.ndarray, "feature width"]


@dataclass(frozen=True)
class BeeParams(QuantityParams):
    metric: str = option("comprehensiveness", "Metric that the baseline is tuned on", choices=TUNED_ON)
    n_trials: int = option(12, "Baselines tried: the fixed ones first, then random ones", low=1, high=500)
    n_steps: int = option(17, "Gradient evaluations along the path of a trial; the best gets more", low=3, high=257)
    removal: str = option("mask", "How the metric removes features", choices=OPERATORS)
    place = EMBEDDING

    def draw_constant(self, model: AnyClassifier, points: Points, generator: np.random.Generator) -> Points:
        """Return the embedding of one random token at every position."""
        weight = cast(TextClassifier, model).embedding.weight
        return np.broadcast_to(as_float64(weight[int(generator.integers(len(weight)))]), points.shape)

    def smooth(self, encoded: EncodedInput, points: Points, sigma: float) -> Points:
        """Smooth the embeddings by a Gaussian over positions."""
        place = np.arange(len(points))
        weights = np.exp(-((place[:, None] - place) ** 2) / (2 * sigma**2))
        return weights / weights.sum(1, keepdims=True) @ points


@dataclass(frozen=True)
class PatchBeeParams(BeeParams):
    """Parameters for pictures. Baselines are drawn at the pixels, the path runs through the patch embeddings, which are
    linear in the pixels."""

    removal: str = option("mean", "How the metric removes patches", choices=PATCH_OPERATORS)
    place = "pixels"

    def draw_constant(self, model: AnyClassifier, points: Points, generator: np.random.Generator) -> Points:
        """Return one random color within the range of the picture's values."""
        color = generator.uniform(points.min(), points.max(), 3)
        return np.broadcast_to(np.repeat(color, points.shape[1] // 3), points.shape)

    def smooth(self, encoded: EncodedInput, points: Points, sigma: float) -> Points:
        """Blur the picture by a Gaussian; `sigma` is in patch sides."""
        assert isinstance(encoded, EncodedPicture)
        picture = torch.from_numpy(np.array(encoded.values, dtype=np.float64))[None]
        return as_float64(cut_patches(blur(picture, sigma * max(encoded.patch)), encoded.patch))[0]


@register(
    "bee",
    title="BEE (tuned baseline)",
    family="gradients",
    params=BeeParams,
    version=2,
    axes=Axes("tuned baseline, reached along a straight path", "logit of the class", "path integral"),
    differentiable=True,
    cheap=False,
    tuned_on=lambda params: params.metric,
    citation="Barkan et al. (2025), BEE: metric-adapted explanations via baseline exploration-exploitation",
    caution="Its baseline is chosen by a metric, so its score on that metric says little: judge it by others.",
    variants={"image": {"params": PatchBeeParams}},
)
def bee(task: Task, params: BeeParams) -> list[Attribution]:
    """Integrated gradients from the best of many baselines by a metric; in logits, signed, summing to f(x) - f(x').

    Tried are the fixed baselines of `integrated_gradients`, once each, then draws from `DISTRIBUTIONS`. Thompson
    sampling picks the distribution: each has a Beta posterior, from Beta(1, 1), of the chance that its next map beats
    an earlier one; a trial wins with a probability of the share of earlier maps that it beats. The best trial gets more
    nodes until it is complete, as `integrated_gradients` has them, and is measured again; were another one better
    then, that one follows. So no other baseline tried has a better value than the result.

    The metric ranks single tokens or patches and removes them by `removal`; comprehensiveness and sufficiency are means
    over `SHARES`, the areas of curves over `PERCENTS`, as evaluations have them.

    Departures: the paper learns a prior over a data set from a network's features of the input, which a method that
    sees one example cannot; its finetuning on the example is what is done here. Shuffled tokens or patches stand in for
    examples of the data set. Paths lead to the input alone, not to the activations of inner layers.
    """
    search = _Search(task, params)
    for trial in range(params.n_trials):
        search.run(trial)
    return [search.attribution(i) for i in range(len(task.items))]


class _Search:
    """The trials of all items of a task; each trial runs for all items together."""

    def __init__(self, task: Task, params: BeeParams) -> None:
        self.task, self.params = task, params
        self.fixed = input_kind(task.model.kind).baselines
        with torch.no_grad():
            batch = task.batch()
            self.end = task.model.embed(batch)
            self.points = as_float64(task.model.points(batch, params.place))
        self.posteriors = [{arm: np.ones(2) for arm in DISTRIBUTIONS} for _ in task.items]
        self.measured: list[dict[bytes, float]] = [{} for _ in task.items]
        """For each item, m of the inputs with features removed, by mask."""
        self.paths: list[Paths] = []
        self.names: list[list[str]] = [[] for _ in task.items]
        self.values: list[list[float]] = [[] for _ in task.items]
        """For each item, the metric of each trial, negated if low is good."""

    def run(self, trial: int) -> None:
        """Try one baseline for each item."""
        generators = [item.generator(trial) for item in self.task.items]
        if trial < len(self.fixed):
            arms = [self.fixed[trial]] * len(generators)
            start = path_endpoints(self.task, self.fixed[trial])[0]
        else:
            arms = [sample_arm(own, generator) for own, generator in zip(self.posteriors, generators, strict=True)]
            start = self._draw(arms, generators)
        paths = Paths(self.task, start, self.end, self.params.quantity)
        paths.integrate(np.arange(len(arms)), QUADRATURE, self.params.n_steps)
        self.paths.append(paths)
        maps = [paths.scores(i) for i in range(len(arms))]
        finite = [bool(np.isfinite(scores).all()) for scores in maps]
        measured = [i for i, usable in enumerate(finite) if usable]
        values = dict(zip(measured, self._measure(measured, [maps[i] for i in measured]), strict=True))
        for i, arm in enumerate(arms):
            # At zero embeddings the gradient through many layers of RMSNorm overflows: such a map is never the best.
            value = values.get(i, -np.inf)
            if trial >= len(self.fixed):
                known = [one for one in self.values[i] if np.isfinite(one)]
                self.posteriors[i][arm] += reward(value, known, generators[i])
            self.names[i].append(arm)
            self.values[i].append(value)

    def _draw(self, arms: Sequence[str], generators: Sequence[np.random.Generator]) -> torch.Tensor:
        """Draw a random baseline for each item and return the embeddings."""
        model, points = self.task.model, self.points.copy()
        for i, (arm, generator) in enumerate(zip(arms, generators, strict=True)):
            encoded = self.task.items[i].encoded
            own = points[i, encoded.features]
            points[i, encoded.features] = draw_baseline(arm, self.params, model, encoded, own, generator)
        with torch.no_grad():
            values = torch.from_numpy(points).to(device=self.end.device, dtype=self.end.dtype)
            return model.embed_points(values, self.params.place)

    def _measure(self, items: Sequence[int], maps: Sequence[Float[np.ndarray, "_"]]) -> list[float]:
        """Return the metric of a map of each of these items. Inputs with the same features removed are run once."""
        if not items:
            return []
        task = Task(self.task.model, [self.task.items[i] for i in items])
        masks = [metric_masks(self.params.metric, item, scores) for item, scores in zip(task.items, maps, strict=True)]
        new = [
            np.unique(rows[[row.tobytes() not in self.measured[i] for row in rows]], axis=0)
            for i, rows in zip(items, masks, strict=True)
        ]
        if any(map(len, new)):
            for i, rows, values in zip(items, new, task.masked_values(new, self.params.removal), strict=True):
                self.measured[i] |= {row.tobytes(): float(value) for row, value in zip(rows, values, strict=True)}
        return [
            metric_value(self.params.metric, rows, [self.measured[i][row.tobytes()] for row in rows])
            for i, rows in zip(items, masks, strict=True)
        ]

    def _best(self, i: int) -> int:
        """Return the trial of item i with the best value; a zero map, which ranks nothing, only if no other exists."""
        finite = [trial for trial, value in enumerate(self.values[i]) if np.isfinite(value)]
        trials = [trial for trial in finite if self.paths[trial].scores(i).any()] or finite or [0]
        return trials[first_best([self.values[i][trial] for trial in trials])]

    def attribution(self, i: int) -> Attribution:
        """Return the best map of item i, refined until it is complete."""
        refined: set[int] = set()
        while (best := self._best(i)) not in refined:
            paths = self.paths[best]
            paths.divide(np.array([i]))
            (self.values[i][best],) = self._measure([i], [paths.scores(i)])
            refined.add(best)
        attribution = self.paths[best].attribution(i)
        metric, name = self.params.metric, self.names[i][best]
        sign = _sign(metric)
        value = sign * self.values[i][best]
        note = (
            f"Tuned on {metric}: of {len(self.names[i])} baselines {name} is the best, with a value of {value:.4g} by "
            f"{self.params.removal} removal. Judge this map by other metrics."
        )
        flat: tuple[str, ...] = () if attribution.scores.any() else ("All scores are zero, from every baseline.",)
        pairs = list(zip(self.names[i], self.values[i], strict=True))
        if lost := ", ".join(dict.fromkeys(own for own, at in pairs if not np.isfinite(at))):
            flat += (f"Not usable, because the gradients there are no finite numbers: {lost}.",)
        trials = [{"baseline": own, "value": sign * at if np.isfinite(at) else None} for own, at in pairs]
        return Attribution(
            attribution.scores,
            sum(paths.evaluations(i) for paths in self.paths) + len(self.measured[i]),
            attribution.check,
            (note, *flat, *attribution.notes),
            {"tuned_on": metric, "baseline": name, "value": value, "trials": trials},
        )


def draw_baseline(
    arm: str, params: BeeParams, model: AnyClassifier, encoded: EncodedInput, points: Points,
    generator: np.random.Generator,
) -> Points:  # fmt: skip
    """Draw a baseline from a distribution; noise has the range, or the mean and deviation, of the input's values."""
    if arm == "constant":
        return params.draw_constant(model, points, generator)
    if arm == "smoothed":
        return params.smooth(encoded, points, generator.uniform(*SMOOTHING))
    if arm == "uniform":
        return generator.uniform(points.min(), points.max(), points.shape)
    if arm == "normal":
        return generator.normal(points.mean(), points.std(), points.shape)
    return generator.permutation(points)


def sample_arm(posteriors: dict[str, Float[np.ndarray, "2"]], generator: np.random.Generator) -> str:
    """Return the arm with the highest draw from its Beta posterior of wins and losses (Thompson sampling)."""
    draws = {arm: generator.beta(*counts) for arm, counts in posteriors.items()}
    return max(draws, key=lambda arm: draws[arm])


def reward(value: float, earlier: Sequence[float], generator: np.random.Generator) -> Float[np.ndarray, "2"]:
    """Draw a win (1, 0) with the share of earlier values below `value`, ties counting half, else a loss (0, 1)."""
    gaps = value - np.array(earlier)
    share = float(np.mean(np.where(np.abs(gaps) < TIE, 0.5, gaps > 0))) if len(gaps) else 0.5
    won = generator.random() < share
    return np.array([won, not won], dtype=float)


def first_best(values: Sequence[float]) -> int:
    """Return the index of the first value that ties with the highest."""
    return int(np.argmax(np.array(values) > max(values) - TIE))


def metric_masks(metric: str, item: TaskItem, scores: Float[np.ndarray, "seq"]) -> Bool[np.ndarray, "row feature"]:
    """Return the features that remain along the curve of the metric, one row for each of `metric_percents`."""
    order = rank_features(scores[item.encoded.features], (item.seed, *item.encoded.ids.tolist()))
    fewer = masks_without_top(order, [count_of_percent(percent, len(order)) for percent in metric_percents(metric)])
    return fewer if _deletes(metric) else ~fewer


def metric_percents(metric: str) -> tuple[int, ...]:
    """Return the percentages of features along the curve of the metric."""
    return PERCENTS if METRICS[metric].by_percent else (0, *SHARES, 100)


def metric_value(metric: str, masks: Bool[np.ndarray, "row feature"], values: Sequence[float]) -> float:
    """Return the metric of the curve with these values of m, negated if low is good."""
    curve = RemovalCurve(
        "bee", np.array(values), tuple((~masks).sum(1).tolist()), percents=metric_percents(metric),
        way="deletion" if _deletes(metric) else "insertion",
    )  # fmt: skip
    if METRICS[metric].by_percent:
        return _sign(metric) * curve.area
    both = Faithfulness(deletion=curve, insertion=curve)  # each metric reads only its own curve
    return _sign(metric) * (both.comprehensiveness() if metric == "comprehensiveness" else both.sufficiency())


def _deletes(metric: str) -> bool:
    return metric in ("comprehensiveness", "without_top")


def _sign(metric: str) -> int:
    return 1 if METRICS[metric].better == "high" else -1
