"""Features of graded importance: does what a method puts on a mark grow with what the mark is worth?

In marked sets labels are drawn by chance and a mark states them, so that the mark alone can tell anything. `strength`
is the share of examples that carry it. It grades the mark in two ways, and this view has both:

* **Over data** (`over_data`): evaluations of the same model on sets of several strengths. The mark is worth as much to
  the set as the share of its examples that carry it, so attribution is averaged over all examples, one without a mark
  having 0 on it. A method that puts everything on every mark lies on the diagonal; one that puts the share c there
  lies on c times it. The line says how much of a whole set's attribution a reader is shown on the mark; that it is
  straight is no finding, since the same marked examples come again.
* **Over training** (`over_training`): models trained at several strengths, on the same examples, all of which carry the
  mark. How far the mark decides their answers is measured, not supposed: as labels are by chance, accuracy above
  chance can only come from the mark. Where it decides all answers, all attribution should be on it; where it decides
  fewer, less should be, but how much less cannot be told.

Attribution is `truth_mass`: the share of all |a| of an example that lies on its mark.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engine.data.registry import parse_options
from engine.evaluation.plan import Plan
from engine.evaluation.result import Evaluation, Facts
from engine.evaluation.views.points import Wanted, points
from engine.metrics.plausibility import NOTHING, UNMARKED_TRUTH
from engine.metrics.results import Interval, MetricKey, MetricRow, MetricScore, interval
from engine.models import catalog

MASS = "truth_mass"
MARKED_SETS = ("reviews-marked", "scenes-marked")
STRENGTHS = (0.1, 0.25, 0.5, 0.75, 1.0)
CARRIES = "marked"
"""What an example of a marked set says of itself."""


@dataclass(frozen=True)
class Decided:
    """How far the mark decides a model's answers on `n` marked examples: 0 by chance, 1 always; with a 95 % interval.

    Below 0 where the model is right less often than by chance. None where it cannot be told.
    """

    value: float | None
    interval: Interval | None
    n: int


@dataclass(frozen=True)
class Graded:
    """What a method puts on the mark where it is worth `strength`; `ideal`: what there is to be reached, if known."""

    strength: float
    score: MetricScore
    ideal: float | None


def strength_of(dataset: str) -> float | None:
    """The share of its examples that a marked set asks to carry the mark; None of other sets."""
    if dataset.partition(":")[0] not in MARKED_SETS:
        return None
    return float(parse_options(dataset).get("strength", 1.0))


def trained_at(models: Iterable[str]) -> dict[str, float]:
    """The strengths of the sets that models were trained on, as far as their cards say."""
    found = {model: catalog.card(model).get("settings", {}).get("dataset", "") for model in models}
    strengths = {model: strength_of(str(dataset)) for model, dataset in found.items()}
    return {model: strength for model, strength in strengths.items() if strength is not None}


def at_strengths(plan: Plan, strengths: Sequence[float] = STRENGTHS) -> list[Plan]:
    """The same plan on the same set with marks at several strengths: the evaluations that `over_data` is of."""
    name, options = plan.dataset.partition(":")[0], parse_options(plan.dataset)
    sets = ({**options, "strength": f"{one:g}"} for one in strengths)
    names = (f"{name}:{','.join(f'{key}={value}' for key, value in one.items())}" for one in sets)
    return [dataclasses.replace(plan, dataset=one) for one in names]


def over_data(founds: Sequence[Evaluation], model: str, methods: Sequence[str] | None = None) -> list[Graded]:
    """A point for each evaluation and method, of one model, by the share of the examples that carry the mark."""
    made = [one for found in founds for one in _of_set(found, Wanted([model], methods))]
    return sorted(made, key=lambda one: one.strength)


def together(founds: Sequence[Evaluation], model: str) -> list[list[float]]:
    """The asked strengths whose examples carry the mark equally often: they stand at one place."""
    by: dict[float | None, list[float]] = {}
    for found in founds:
        asked = strength_of(found.plan.dataset)
        by.setdefault(_share(found, model), []).extend([] if asked is None else [asked])
    return [sorted(asked) for share, asked in by.items() if share is not None and len(asked) > 1]


def over_training(
    found: Evaluation, trained: Mapping[str, float], methods: Sequence[str] | None = None
) -> list[Graded]:
    """A point for each model and method by the strength at which the model was trained, over the marked examples."""
    ideals = {model: decided(found, model).value for model in trained}
    made = [Graded(trained[one.model], one, ideals[one.model]) for one in points(found, MASS, Wanted(trained, methods))]
    return sorted(made, key=lambda one: one.strength)


def decided(found: Evaluation, model: str) -> Decided:
    """How far the mark decides what the model answers: its accuracy on the marked examples, from chance to always."""
    known = [one for one in _marked(found, model) if one.right is not None]
    classes = len({one.label for one in found.facts if one.label is not None})
    if not known or classes < 2:
        return Decided(None, None, len(known))
    right, chance = np.array([float(bool(one.right)) for one in known]), 1 / classes
    low_high = interval(right, found.plan.seed, share=True)
    ends = None if low_high is None else (_above(low_high[0], chance), _above(low_high[1], chance))
    return Decided(_above(float(right.mean()), chance), ends, len(known))


def _above(accuracy: float, chance: float) -> float:
    return (accuracy - chance) / (1 - chance)


def _marked(found: Evaluation, model: str) -> list[Facts]:
    return [one for one in found.facts if one.model == model and one.extra.get(CARRIES) is True]


def _of_set(found: Evaluation, wanted: Wanted) -> list[Graded]:
    """Over all examples of one set, at the share that carry the mark of those on which the method has a value."""
    whole = _with_zeros(found)
    drawn = points(whole, MASS, wanted)
    return [Graded(at, one, at) for one in drawn if (at := _share_of(whole, one)) is not None]


def _share_of(whole: Evaluation, score: MetricScore) -> float | None:
    """Of all examples where it has no value. Else marked examples without one would count here and not there."""
    valued = {row.example for row in whole.rows if row.of == MetricKey(score.model, score.dataset, score.method, MASS)}
    facts = tuple(one for one in whole.facts if one.example in valued)
    return _share(dataclasses.replace(whole, facts=facts) if valued else whole, score.model)


def _share(found: Evaluation, model: str) -> float | None:
    carry = [one.extra.get(CARRIES) is True for one in found.facts if one.model == model]
    return sum(carry) / len(carry) if carry else None


def _with_zeros(found: Evaluation) -> Evaluation:
    """Nothing is on a mark that is not there. What could not be explained stays without a value.

    So does a method with no value on any marked example: unmarked ones alone would say 0, which nobody measured.
    """
    bare = {(one.model, one.example) for one in found.facts if one.extra.get(CARRIES) is False}
    marked = {(one.model, one.example) for one in found.facts if one.extra.get(CARRIES) is True}
    measured = {row.of for row in found.rows if row.of.metric == MASS and (row.of.model, row.example) in marked}
    zero = [
        one.reason in (NOTHING, UNMARKED_TRUTH) and (one.of.model, one.example) in bare and one.of in measured
        for one in found.skips
    ]
    rows = (MetricRow(one.of, one.example, 0.0) for one, is_zero in zip(found.skips, zero, strict=True) if is_zero)
    skips = tuple(one for one, is_zero in zip(found.skips, zero, strict=True) if not is_zero)
    return dataclasses.replace(found, rows=(*found.rows, *rows), skips=skips)
