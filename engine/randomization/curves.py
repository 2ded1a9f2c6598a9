"""The curves of a randomization, the verdict on each method, and the examples that changed most.

A curve is the mean over examples at each stage, with its 95% interval and the number of missing values. Verdicts are
based on intervals, never on means alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from engine.metrics.results import Interval, interval
from engine.randomization.plan import MODES, RandomizationPlan
from engine.randomization.result import (
    MEASURES,
    PREDICTIONS,
    ModelRandomization,
    RandomizationResult,
    Stage,
    is_baseline,
    not_applicable,
)

NO_ANSWER = "the prediction of the randomized model is not a number"
NEAR_ZERO = 0.2
"""Correlations up to this value count as zero: with 25 tokens, a sixth of all random maps reach it."""
HIGH = 0.7
UNMOVED = 0.95
"""Correlations from this value on count as unchanged."""
FEW = 5
"""Smallest number of examples with a correlation for a verdict."""
SAME_CLASS = 0.9
"""If a larger share of predictions keeps its class at every stage, the model did not change, so nothing is tested."""
KINDS = ("at_once", "falls", "partly", "high", "invariant", "unsure", "no_order", "same_model", "baseline")
"""The first five: falls to zero at the first stage; falls to zero later; falls partly; stays high; hardly changes."""
ORDERS = ("index", "most", "least")
"""Data set order; most changed first; least changed first."""

Outcome = tuple[str, bool | None, str]
"""Kind of a verdict, whether it passes, and the reason."""


@dataclass(frozen=True)
class CurvePoint:
    """The mean over `n` examples of each example's mean over the seeds; None if no example has a value.

    `interval`: over examples, for these seeds. `by_seed`: mean of each randomization, None if undefined; their spread
    shows how much the result depends on the randomization. `skipped`: number of maps (an example at a seed) without a
    value, by reason.
    """

    stage: Stage
    value: float | None
    interval: Interval | None
    n: int
    by_seed: tuple[float | None, ...]
    skipped: Mapping[str, int]

    @property
    def low(self) -> float:
        """The lower end of the interval, or the value."""
        return self.interval[0] if self.interval else float(self.value or 0.0)

    @property
    def high(self) -> float:
        """The upper end of the interval, or the value."""
        return self.interval[1] if self.interval else float(self.value or 0.0)


@dataclass(frozen=True)
class Curve:
    """A metric over the stages of a mode. `method`: empty for predictions.

    `start`: the value for the original model: 1 for a similarity, the mean probability of the class, or 0 changed
    classes.
    """

    model: str
    dataset: str
    method: str
    metric: str
    mode: str
    start: float
    points: tuple[CurvePoint, ...]


def curves_of(result: ModelRandomization, seed: int = 0) -> list[Curve]:
    """The curves of each mode: one per method and measure, then those of the predictions."""
    return [
        curve
        for mode in dict.fromkeys(stage.mode for stage in result.stages)
        for curve in (*_of_maps(result, mode, seed), *_of_predictions(result, mode, seed))
    ]


def _of_maps(result: ModelRandomization, mode: str, seed: int) -> list[Curve]:
    pictures = np.isfinite(result.likeness[:, :, :, MEASURES.index("ssim")]).any()
    measures = [measure for measure in MEASURES if pictures or measure != "ssim"]
    return [
        _curve(result, mode, method, measure, 1.0, result.likeness[:, :, place, MEASURES.index(measure)], seed)
        for place, method in enumerate(result.methods)
        for measure in measures
    ]


def _of_predictions(result: ModelRandomization, mode: str, seed: int) -> list[Curve]:
    known = np.isfinite(result.after)
    start = float(result.before.mean()) if len(result.before) else 0.0
    changed = np.where(known, result.changed.astype(np.float64), np.nan)
    likely = _curve(result, mode, "", PREDICTIONS[0], start, result.after, seed)
    return [likely] if result.regression else [likely, _curve(result, mode, "", PREDICTIONS[1], 0.0, changed, seed)]


def _curve(
    result: ModelRandomization, mode: str, method: str, metric: str, start: float,
    values: Float[np.ndarray, "stage seed example"], seed: int,
) -> Curve:  # fmt: skip
    points = [
        _point(stage, values[at], _skipped(result, at, method), seed, metric == PREDICTIONS[1])
        for at, stage in enumerate(result.stages)
        if stage.mode == mode
    ]
    return Curve(result.model, result.dataset, method, metric, mode, start, tuple(points))


def _point(
    stage: Stage, values: Float[np.ndarray, "seed example"], skipped: Mapping[str, int], seed: int, share: bool
) -> CurvePoint:
    having = np.isfinite(values)
    means = _means(values[:, having.any(0)])
    by_seed = tuple(float(own[has].mean()) if has.any() else None for own, has in zip(values, having, strict=True))
    value = float(means.mean()) if len(means) else None
    return CurvePoint(stage, value, interval(means, seed, share), len(means), by_seed, skipped)


def _means(values: Float[np.ndarray, "seed example"]) -> Float[np.ndarray, "example"]:
    """The mean of each example over the seeds with a value; there is at least one."""
    having = np.isfinite(values)
    return np.where(having, values, 0.0).sum(0) / having.sum(0)


def _skipped(result: ModelRandomization, stage: int, method: str) -> dict[str, int]:
    counts = Counter[str]()
    for why in result.failed.values():
        counts[why] += len(result.seeds)
    if method:
        codes = result.why[stage, :, result.methods.index(method)]
        counts.update(result.reasons[code] for code in codes[codes >= 0].tolist())
    elif silent := int(np.isnan(result.after[stage]).sum()):
        counts[NO_ANSWER] += silent
    return dict(counts)


@dataclass(frozen=True)
class Verdict:
    """The verdict on a method.

    `kind`: one of `KINDS`. `passes`: whether its maps depend on the model's parameters as they should; None if
    undecided or not applicable. `still`: number of initial stages at which the map is unchanged. `reason`: an
    explanation for readers.
    """

    method: str
    kind: str
    passes: bool | None
    still: int
    reason: str


def judge(signed: Curve, sizes: Curve | None = None, kind: str = "text") -> Verdict:
    """Judge a method by its curves in the cascading mode: Spearman's rho of signed and of absolute scores (`sizes`).

    A correlation is about zero if the upper end of its 95% interval is at most `NEAR_ZERO`, and high if the lower end
    is at least `HIGH`. A method whose signs become random while the order of its absolute scores remains does not pass.
    The independent mode is not judged.
    """
    points = [point for point in signed.points if point.value is not None]
    still = next((place for place, point in enumerate(points) if point.low < UNMOVED), len(points))
    if is_baseline(signed.method, kind):
        still = 0
        outcome: Outcome = "baseline", None, "A random ranking, drawn again at each stage: the chance level."
    elif not points:
        reasons = {why for point in signed.points for why in point.skipped}
        outcome = "no_order", None, f"No correlation at any stage: {'; '.join(sorted(reasons))}."
    elif points[-1].n < FEW:
        few = "1 example has" if points[-1].n == 1 else f"{points[-1].n} examples have"
        outcome = "unsure", None, f"Only {few} a correlation; a verdict needs at least {FEW}."
    elif still == len(points):
        steady = f"the correlation is at least {UNMOVED} at every stage"
        outcome = "invariant", False, f"Its maps hardly change: {steady} {_at(points[-1])}."
    else:
        outcome = _outcome(points, sizes, still)
    name, passes, reason = outcome
    if why_not := not_applicable(signed.method, kind):
        passes, reason = None, f"{reason} The check does not apply: {why_not}."
    return Verdict(signed.method, name, passes, still, reason)


def _outcome(points: Sequence[CurvePoint], sizes: Curve | None, still: int) -> Outcome:
    """The outcome at the last stage; if the correlation is about zero there, all stages decide."""
    last, unmoved = points[-1], ""
    if still:
        many = "first randomized part" if still == 1 else f"first {still} randomized parts"
        unmoved = f" The {many} hardly changed it."
    if last.high <= NEAR_ZERO:
        last_size = sizes.points[-1] if sizes is not None and sizes.points else None
        if last_size is not None and last_size.value is not None and last_size.low > NEAR_ZERO:
            kept = _at(last_size)
            return (
                "partly",
                False,
                f"Its signs become random, but the order of its absolute scores stays similar {kept}.",
            )
        if all(point.high <= NEAR_ZERO for point in points):
            level = "below" if points[0].high < -NEAR_ZERO else "about"
            return "at_once", True, f"Its correlation is {level} zero from the first stage on {_at(points[0])}."
        fall = "below" if last.high < -NEAR_ZERO else "to about"
        return "falls", True, f"Its correlation falls {fall} zero {_at(last)}.{unmoved}"
    if last.low >= HIGH:
        return "high", False, f"Its correlation stays high {_at(last)}: it mostly shows the input, not the model."
    if last.low > NEAR_ZERO:
        return "partly", False, f"Its correlation falls, but not to zero {_at(last)}.{unmoved}"
    return (
        "unsure",
        None,
        f"Its final interval has values on both sides of {NEAR_ZERO}, up to which a correlation counts as zero "
        f"{_at(last)}. Use more examples or seeds.",
    )


def _at(point: CurvePoint) -> str:
    value, low, high = map(_hundredths, (point.value or 0.0, point.low, point.high))
    return f"({value}, 95% interval {low} to {high}, {point.stage.words})"


def _hundredths(value: float) -> str:
    """Format with two decimals and a typographic minus, but without a minus before a rounded zero."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "\u2212")


def verdicts_of(result: ModelRandomization, kind: str = "text", seed: int = 0) -> list[Verdict]:
    """The verdict on each method on one model; empty without the cascading mode.

    If the predictions do not change at any stage, every verdict says so instead.
    """
    same = _same_class(result)
    curves = {(one.mode, one.method, one.metric): one for one in curves_of(result, seed)}
    named = ((curves.get((MODES[0], method, metric)) for metric in MEASURES[:2]) for method in result.methods)
    verdicts = [judge(signed, sizes, kind) for signed, sizes in named if signed is not None]
    if same is None or same <= SAME_CLASS:
        return verdicts
    why = f"At least {same:.0%} of the predictions keep their class at every stage, so the method is not tested."
    untested = {"kind": "same_model", "passes": None, "reason": why}
    return [one if one.kind == "baseline" else replace(one, **untested) for one in verdicts]  # type: ignore[arg-type]


def _same_class(result: ModelRandomization) -> float | None:
    """The smallest share, over the stages of the cascade, of predictions that keep their class; None for scores."""
    cascade = [at for at, stage in enumerate(result.stages) if stage.mode == MODES[0]]
    if result.regression or not cascade or not result.changed[cascade].size:
        return None
    return float(1 - result.changed[cascade].mean(axis=(1, 2)).max())


def changes_of(
    result: ModelRandomization, method: str, mode: str, stage: int, measure: str
) -> Float[np.ndarray, "example"]:
    """Similarity of each example's map to the original: the mean over seeds and stages, NaN if undefined.

    `stage`: a stage number of that mode, or 0 for all stages.
    """
    which = [at for at, one in enumerate(result.stages) if one.mode == mode and stage in (0, one.number)]
    own = result.likeness[which][:, :, result.methods.index(method), MEASURES.index(measure)]
    values = own.reshape(-1, len(result.examples))
    having = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.where(having, values, 0.0).sum(0) / having.sum(0)


def order_examples(result: ModelRandomization, changes: Float[np.ndarray, "example"], order: str) -> list[int]:
    """Sort the positions of the examples in `result.examples` by one of `ORDERS`; NaN comes last."""
    if order == ORDERS[0]:
        return sorted(range(len(result.examples)), key=result.examples.__getitem__)
    keys = changes if order == ORDERS[1] else -changes
    return [int(at) for at in np.argsort(keys, kind="stable")]  # NaN is sorted to the end


def to_json(found: RandomizationResult) -> dict[str, Any]:
    """The output of `exegesis randomize --json`: the plan, and the curves and verdicts of each model."""
    return {
        "plan": {**found.plan.as_plain(), "company": list(found.plan.methods_with_baselines)},
        "models": [_model_json(found.plan, one) for one in found.models],
    }


def _model_json(plan: RandomizationPlan, result: ModelRandomization) -> dict[str, Any]:
    """Plain values of one model. `failed`: examples that could not be explained, with the reason."""
    return {
        "model": result.model,
        "dataset": result.dataset,
        "blocks": result.blocks,
        "examples": list(result.examples),
        "failed": [{"example": index, "reason": why} for index, why in result.failed.items()],
        "notes": list(result.notes),
        "curves": [_curve_json(curve) for curve in curves_of(result, plan.seed)],
        "verdicts": [asdict(verdict) for verdict in verdicts_of(result, plan.kind, plan.seed)],
    }


def _curve_json(curve: Curve) -> dict[str, Any]:
    """Plain values of a curve. `method`: None for predictions. `start`: the value for the original model."""
    named = {"mode": curve.mode, "method": curve.method or None, "metric": curve.metric, "start": curve.start}
    return named | {"points": [_point_json(point) for point in curve.points]}


def _point_json(point: CurvePoint) -> dict[str, Any]:
    """Plain values of a point. `low`, `high`: ends of the 95% interval. `by_seed`: the mean of each randomization."""
    low, high = point.interval or (None, None)
    return {
        "stage": point.stage.number,
        "block": point.stage.block,
        "random": list(point.stage.parts),
        "value": point.value,
        "low": low,
        "high": high,
        "n": point.n,
        "by_seed": list(point.by_seed),
        "skipped": dict(point.skipped),
    }
