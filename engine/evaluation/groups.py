"""Scores in groups: by size and architecture of models, in slices of examples, and by the strength of a mark.

Strength of a mark: does attribution to a mark grow with the influence of the mark? In marked sets, labels are random
and a mark states them, so only the mark is informative. `strength` is the share of examples that carry it. It grades
the influence of the mark in two ways:

* **Over data** (`grade_by_data`): evaluations of the same model on sets of several strengths. The influence of the mark
  on a set is the share of its examples that carry it, so attribution is averaged over all examples; an unmarked example
  has 0. A method that puts everything on every mark lies on the diagonal; one that puts the share c there lies on c
  times it. The line shows how much of the attribution of a whole set is on the mark. That it is straight is no finding,
  since the marked examples are the same at every strength.
* **Over training** (`grade_by_training`): models trained at several strengths, evaluated on the same examples, all of
  which carry the mark. The influence of the mark on their predictions is measured: since labels are random, accuracy
  above chance can only come from the mark. If the mark decides all predictions, all attribution should be on it; if it
  decides fewer, less should be, by an unknown amount.

Attribution is `truth_mass`: the share of the total |a| of an example that lies on its mark.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from engine.data.registry import parse_options
from engine.errors import ExegesisError, unknown
from engine.evaluation.plan import EvaluationPlan
from engine.evaluation.result import Evaluation, ExampleFacts, ModelEvaluation
from engine.evaluation.scores import ScoreFilter, compute_scores
from engine.metrics.plausibility import NOTHING, UNMARKED_TRUTH
from engine.metrics.results import Interval, MetricKey, MetricRow, MetricScore, MetricSkip, interval
from engine.models import catalog
from engine.models.summary import ModelSize, model_size

Sizes = Mapping[str, ModelSize]
"""Sizes of models, by model."""
By = Literal["label", "correctness", "length"]
SLICES: tuple[By, ...] = ("label", "correctness", "length")
BINS = 4
"""Number of length bins: quartiles of the examples, except that equal lengths share a bin."""
NO_LABEL, NOT_KNOWN = "no label", "not known whether right"


@dataclass(frozen=True)
class SizedScore:
    """The score of a method on a model, with the size of the model."""

    score: MetricScore
    size: ModelSize


def read_sizes(models: Iterable[str]) -> dict[str, ModelSize]:
    """Read the sizes of models from their files. Models whose files do not state one are left out."""
    sizes = {}
    for model in models:
        with contextlib.suppress(ExegesisError):
            sizes[model] = model_size(model)
    return sizes


def size_ladders(sizes: Sizes) -> dict[str, list[str]]:
    """The models of each architecture that has at least two sizes, smallest model first."""
    by: dict[str, list[str]] = {}
    for model in _by_size(sizes):
        by.setdefault(sizes[model].architecture, []).append(model)
    return {name: own for name, own in by.items() if len({sizes[model].parameters for model in own}) > 1}


def architectures(sizes: Sizes) -> list[str]:
    """The distinct architectures, sorted."""
    return sorted({size.architecture for size in sizes.values()})


def size_ratio(sizes: Sizes) -> float:
    """The ratio of the largest to the smallest number of parameters; 1 without models."""
    counts = [size.parameters for size in sizes.values()]
    return max(counts) / min(counts) if counts else 1.0


def scores_by_size(
    evaluation: Evaluation,
    metric: str,
    sizes: Sizes,
    architecture: str | None = None,
    methods: Sequence[str] | None = None,
) -> list[SizedScore]:
    """Scores by model size within one architecture; by default the first that has several sizes.

    The thesis, figures 4.1 to 4.5, 4.8 and 4.9. Models of equal size share a position.
    """
    known = size_ladders(sizes)
    return _sized_scores(evaluation, metric, sizes, known.get(architecture or next(iter(known), ""), []), methods)


def scores_by_architecture(
    evaluation: Evaluation, metric: str, sizes: Sizes, methods: Sequence[str] | None = None
) -> list[SizedScore]:
    """Scores by architecture, and by size within each. The thesis, figures 4.12 to 4.16, 4.19 and 4.20."""
    ordered = sorted(_by_size(sizes), key=lambda model: sizes[model].architecture)
    return _sized_scores(evaluation, metric, sizes, ordered, methods)


def _by_size(sizes: Sizes) -> list[str]:
    return sorted(sizes, key=lambda model: (sizes[model].parameters, model))


def _sized_scores(
    evaluation: Evaluation, metric: str, sizes: Sizes, models: Sequence[str], methods: Sequence[str] | None
) -> list[SizedScore]:
    """Scores of the models in the given order; methods are in the order of the plan."""
    place = {model: at for at, model in enumerate(models)}
    scores = compute_scores(evaluation, metric, ScoreFilter(place, methods))
    return [SizedScore(one, sizes[one.model]) for one in sorted(scores, key=lambda one: place[one.model])]


@dataclass(frozen=True)
class Slice:
    """The evaluation restricted to one group of examples."""

    name: str
    evaluation: Evaluation


def split(evaluation: Evaluation, by: str) -> list[Slice]:
    """Split the evaluation into the slices that have examples. Examples that no method could explain are in no slice.

    An example counts once per model. Length bins are computed over all models together; for the quartiles of one model,
    pass an evaluation of that model alone (`Evaluation.slice`). Errors: an unknown `by`.
    """
    if by not in SLICES:
        raise unknown("slice by", by, SLICES)
    group, order = _by_length(evaluation) if by == "length" else _GROUPS[by](evaluation)
    parts = evaluation.by(group)
    return [Slice(name, parts[name]) for name in order if name in parts]


def length_bins(lengths: Sequence[int], bins: int = BINS) -> list[tuple[int, int]]:
    """Bounds of quantile bins, both inclusive. They cover each length from the smallest to the largest once.

    Equal lengths share a bin, so there may be fewer bins, of unequal sizes.
    """
    shares = np.arange(1, bins + 1) / bins
    ends = np.unique(np.quantile(np.array(lengths), shares, method="inverted_cdf")).tolist()
    starts = [min(lengths), *(end + 1 for end in ends[:-1])]
    return [(int(start), int(end)) for start, end in zip(starts, ends, strict=True)]


def _by_length(evaluation: Evaluation) -> tuple[Callable[[ExampleFacts], str], list[str]]:
    bins = length_bins([one.length for one in evaluation.facts]) if evaluation.facts else []
    names = [_span(start, end, evaluation.plan.units) for start, end in bins]

    def group(one: ExampleFacts) -> str:
        return next(name for (_, end), name in zip(bins, names, strict=True) if one.length <= end)

    return group, names


def _span(start: int, end: int, unit: str) -> str:
    units = f"{unit}es" if unit.endswith("ch") else f"{unit}s"
    if start == end:
        return f"{start} {unit if start == 1 else units}"
    return f"{start} to {end} {units}"


def _by_label(evaluation: Evaluation) -> tuple[Callable[[ExampleFacts], str], list[str]]:
    labels = sorted({one.label for one in evaluation.facts if one.label is not None})
    return lambda one: NO_LABEL if one.label is None else one.label, [*labels, NO_LABEL]


def _by_correctness(evaluation: Evaluation) -> tuple[Callable[[ExampleFacts], str], list[str]]:
    names = {True: "right", False: "wrong", None: NOT_KNOWN}
    return lambda one: names[one.right], list(names.values())


_GROUPS = {"label": _by_label, "correctness": _by_correctness}


MASS = "truth_mass"
MARKED_SETS = ("reviews-marked", "scenes-marked")
STRENGTHS = (0.1, 0.25, 0.5, 0.75, 1.0)
CARRIES = "marked"
"""Extra field of an example in a marked set: whether it carries the mark."""


@dataclass(frozen=True)
class MarkInfluence:
    """The influence of the mark on predictions of `n` marked examples, from 0 (chance) to 1, with a 95% interval.

    Below 0 if the model is right less often than by chance; None if it is unknown.
    """

    value: float | None
    interval: Interval | None
    n: int


@dataclass(frozen=True)
class GradedScore:
    """The attribution of a method to the mark at a strength. `ideal`: the ideal value, None if it is unknown."""

    strength: float
    score: MetricScore
    ideal: float | None


def mark_strength(dataset: str) -> float | None:
    """The share of marked examples that the name of a marked set requests; None for other sets."""
    if dataset.partition(":")[0] not in MARKED_SETS:
        return None
    return float(parse_options(dataset).get("strength", 1.0))


def training_strengths(models: Iterable[str]) -> dict[str, float]:
    """The strengths of the sets that models were trained on, for models whose card states it."""
    datasets = {model: catalog.card(model).get("settings", {}).get("dataset", "") for model in models}
    strengths = {model: mark_strength(str(dataset)) for model, dataset in datasets.items()}
    return {model: strength for model, strength in strengths.items() if strength is not None}


def plans_at_strengths(plan: EvaluationPlan, strengths: Sequence[float] = STRENGTHS) -> list[EvaluationPlan]:
    """Copies of the plan with its data set at several strengths: the evaluations for `grade_by_data`."""
    name, options = plan.dataset.partition(":")[0], parse_options(plan.dataset)
    sets = ({**options, "strength": f"{one:g}"} for one in strengths)
    names = (f"{name}:{','.join(f'{key}={value}' for key, value in one.items())}" for one in sets)
    return [dataclasses.replace(plan, dataset=one) for one in names]


def grade_by_data(
    evaluations: Sequence[Evaluation], model: str, methods: Sequence[str] | None = None
) -> list[GradedScore]:  # fmt: skip
    """A point per evaluation and method, for one model, by the share of examples that carry the mark."""
    graded = [one for evaluation in evaluations for one in _grade(evaluation, ScoreFilter([model], methods))]
    return sorted(graded, key=lambda one: one.strength)


def equal_strengths(evaluations: Sequence[Evaluation], model: str) -> list[list[float]]:
    """Groups of requested strengths with the same share of marked examples, which therefore share a position."""
    by: dict[float | None, list[float]] = {}
    for evaluation in evaluations:
        strength = mark_strength(evaluation.plan.dataset)
        by.setdefault(_marked_share(evaluation, model), []).extend([] if strength is None else [strength])
    return [sorted(strengths) for share, strengths in by.items() if share is not None and len(strengths) > 1]


def grade_by_training(
    evaluation: Evaluation, trained: Mapping[str, float], methods: Sequence[str] | None = None
) -> list[GradedScore]:
    """A point per model and method, over the marked examples, by the strength at which the model was trained."""
    ideals = {model: mark_influence(evaluation, model).value for model in trained}
    scores = compute_scores(evaluation, MASS, ScoreFilter(trained, methods))
    return sorted((GradedScore(trained[s.model], s, ideals[s.model]) for s in scores), key=lambda one: one.strength)


def mark_influence(evaluation: Evaluation, model: str) -> MarkInfluence:
    """The influence of the mark on the predictions: the accuracy on the marked examples, rescaled from chance to 1."""
    marked = [one for one in evaluation.facts if one.model == model and one.extra.get(CARRIES) is True]
    known = [one for one in marked if one.right is not None]
    classes = len({one.label for one in evaluation.facts if one.label is not None})
    if not known or classes < 2:
        return MarkInfluence(None, None, len(known))
    right, chance = np.array([float(bool(one.right)) for one in known]), 1 / classes
    low_high = interval(right, evaluation.plan.seed, share=True)
    ends = None if low_high is None else (_above(low_high[0], chance), _above(low_high[1], chance))
    return MarkInfluence(_above(float(right.mean()), chance), ends, len(known))


def _above(accuracy: float, chance: float) -> float:
    return (accuracy - chance) / (1 - chance)


def _grade(evaluation: Evaluation, of: ScoreFilter) -> list[GradedScore]:
    """The scores over all examples of one set, at its share of marked examples.

    The share is over the examples for which the method has a value, or over all if it has none. Otherwise, marked
    examples without a value would count in the share but not in the score.
    """
    whole = dataclasses.replace(evaluation, models=tuple(map(_add_zeros, evaluation.models)))
    graded = []
    for score in compute_scores(whole, MASS, of):
        key = MetricKey(score.model, score.dataset, score.method, MASS)
        valued = {row.example for row in whole.rows if row.of == key}
        share = _marked_share(whole, score.model, valued)
        graded += [] if share is None else [GradedScore(share, score, share)]
    return graded


def _marked_share(evaluation: Evaluation, model: str, examples: Collection[int] = ()) -> float | None:
    """The share of these examples that carry the mark; of all examples if none are given. None without examples."""
    facts = (one for one in evaluation.facts if one.model == model and (not examples or one.example in examples))
    marked = [one.extra.get(CARRIES) is True for one in facts]
    return sum(marked) / len(marked) if marked else None


def _add_zeros(one: ModelEvaluation) -> ModelEvaluation:
    """Add a value of 0 for examples without a mark. Examples that could not be explained stay without a value.

    A method without a value on any marked example gets no zeros: its score would be 0 although nothing was measured.
    """
    bare = {fact.example for fact in one.facts if fact.extra.get(CARRIES) is False}
    marked = {fact.example for fact in one.facts if fact.extra.get(CARRIES) is True}
    measured = {row.of for row in one.rows if row.of.metric == MASS and row.example in marked}

    def is_zero(skip: MetricSkip) -> bool:
        return skip.reason in (NOTHING, UNMARKED_TRUTH) and skip.example in bare and skip.of in measured

    zeros = (MetricRow(skip.of, skip.example, 0.0) for skip in one.skips if is_zero(skip))
    skips = tuple(skip for skip in one.skips if not is_zero(skip))
    return dataclasses.replace(one, rows=(*one.rows, *zeros), skips=skips)
