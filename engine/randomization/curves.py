"""Curves of a check, the verdict on each method that follows from them, and which examples changed most.

A curve is a mean over examples at each stage, with its 95% interval and what was left out. A verdict is given from
intervals and never from means alone.
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
from engine.randomization.result import MEASURES, PREDICTIONS, ModelRandomization, RandomizationResult
from engine.randomization.stages import Stage, is_baseline, not_applicable

NO_ANSWER = "the randomized model gives no answer that is a number"
NEAR_ZERO = 0.2
"""Correlations up to this count as none: over 25 tokens, chance alone reaches it in a sixth of all maps."""
HIGH = 0.7
UNMOVED = 0.95
"""From here on a map is as good as the same."""
FEW = 5
"""Examples below which nothing is said."""
SAME_CLASS = 0.9
"""Where more predictions than this keep their class at every stage, the model did not change, and no map is tested."""
KINDS = ("at_once", "falls", "partly", "high", "invariant", "unsure", "no_order", "same_model", "baseline")
"""Falls to about zero at the first stage and stays there; only later; in part; stays high; does not move at all."""
ORDERS = ("index", "most", "least")
"""As in the data set; the most changed first; the least changed first."""

Outcome = tuple[str, bool | None, str]
"""Kind, whether it passes, and the reason of a verdict."""


@dataclass(frozen=True)
class CurvePoint:
    """A mean over `n` examples, each of which counts by its mean over the seeds; None where no example has a value.

    `interval`: over examples, given these seeds. `by_seed`: the mean of each randomization alone, None where none:
    how far they lie apart is what another randomization would change. `skipped`: maps (an example at a seed) without a
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
        """The lower end of the interval; the value where there is none."""
        return self.interval[0] if self.interval else float(self.value or 0.0)

    @property
    def high(self) -> float:
        """The upper end of the interval; the value where there is none."""
        return self.interval[1] if self.interval else float(self.value or 0.0)


@dataclass(frozen=True)
class Curve:
    """One metric along the stages of a mode. `method`: empty of the prediction.

    `start`: the value on the model as it is: 1 of a likeness, the mean probability of the class, no class changed.
    """

    model: str
    dataset: str
    method: str
    metric: str
    mode: str
    start: float
    points: tuple[CurvePoint, ...]


def curves_of(result: ModelRandomization, seed: int = 0) -> list[Curve]:
    """The curves of each mode, method and measure with a value or a reason for none; then those of the predictions."""
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
    """The means over the seeds at which an example has a value: each has one at least."""
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
    """`kind`: one of `KINDS`. `passes`: whether it depends on the parameters as an explanation should; None where that
    cannot be judged. `still`: at how many first stages the map was as good as the same. `reason`: for people.
    """

    method: str
    kind: str
    passes: bool | None
    still: int
    reason: str


def judge(signed: Curve, sizes: Curve | None = None, kind: str = "text") -> Verdict:
    """The verdict on a method, by its curve of Spearman's rho in the cascading mode and that of the absolute scores.

    At a stage the correlation is about zero where the upper end of its 95% interval is at most `NEAR_ZERO`, high where
    the lower end is at least `HIGH`. Where signs become random and sizes do not, the method keeps a part of its map:
    it does not pass. An independent randomization shows where a method looks; it is not judged.
    """
    points = [point for point in signed.points if point.value is not None]
    still = next((place for place, point in enumerate(points) if point.low < UNMOVED), len(points))
    if is_baseline(signed.method, kind):
        still = 0
        outcome: Outcome = "baseline", None, "A random order, drawn anew at each stage: what chance gives."
    elif not points:
        reasons = {why for point in signed.points for why in point.skipped}
        outcome = "no_order", None, f"No correlation at any stage: {'; '.join(sorted(reasons))}."
    elif points[-1].n < FEW:
        few = "1 example has" if points[-1].n == 1 else f"{points[-1].n} examples have"
        outcome = "unsure", None, f"Only {few} a correlation; take more."
    elif still == len(points):
        outcome = "invariant", False, f"Its maps stay the same to the end {_at(points[-1])}."
    else:
        outcome = _outcome(points, sizes, still)
    name, passes, reason = outcome
    if why_not := not_applicable(signed.method, kind):
        passes, reason = None, f"{reason} The check is not meant for it: {why_not}."
    return Verdict(signed.method, name, passes, still, reason)


def _outcome(points: Sequence[CurvePoint], sizes: Curve | None, still: int) -> Outcome:
    """The outcome by the last stage, and by all stages where that is about zero."""
    last, unmoved = points[-1], ""
    if still:
        many = "the first randomized part changes" if still == 1 else f"the first {still} randomized parts change"
        unmoved = f" But {many} next to nothing in it."
    if last.high <= NEAR_ZERO:
        last_size = sizes.points[-1] if sizes is not None and sizes.points else None
        if last_size is not None and last_size.value is not None and last_size.low > NEAR_ZERO:
            kept = _at(last_size)
            return "partly", False, f"Its signs become random, but the order of its sizes stays {kept}."
        if all(point.high <= NEAR_ZERO for point in points):
            where = f"{_zero(points[0])} from the first stage on {_at(points[0])}"
            return "at_once", True, f"Its correlation with the original is {where}."
        return "falls", True, f"Its correlation falls to {_zero(last)} {_at(last)}.{unmoved}"
    if last.low >= HIGH:
        more = "it shows the input more than what was learned"
        return "high", False, f"Its correlation is still high {_at(last)}: {more}."
    if last.low > NEAR_ZERO:
        return "partly", False, f"Its correlation falls, but not to zero {_at(last)}.{unmoved}"
    why = f"The interval at the end reaches from about zero to more {_at(last)}"
    return "unsure", None, f"{why}: take more examples or seeds."


def _zero(point: CurvePoint) -> str:
    """Below zero the order is turned round, which is no likeness either, but is not nothing."""
    return "below zero" if point.high < -NEAR_ZERO else "about zero"


def _at(point: CurvePoint) -> str:
    value, low, high = map(_hundredths, (point.value or 0.0, point.low, point.high))
    return f"({value}, 95% from {low} to {high}, with {point.stage.words})"


def _hundredths(value: float) -> str:
    """Two decimals with a typographic minus, and none before a rounded zero."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "\u2212")


def verdicts_of(result: ModelRandomization, kind: str = "text", seed: int = 0) -> list[Verdict]:
    """The verdict on each method on one model; none where it was not randomized in a cascade.

    Where the model answers as before at every stage, that is said in place of a verdict on a method.
    """
    same = _same_class(result)
    curves = {(one.mode, one.method, one.metric): one for one in curves_of(result, seed)}
    named = ((curves.get((MODES[0], method, metric)) for metric in MEASURES[:2]) for method in result.methods)
    verdicts = [judge(signed, sizes, kind) for signed, sizes in named if signed is not None]
    if same is None or same <= SAME_CLASS:
        return verdicts
    why = f"The model answers as before: at every stage at least {same:.0%} of the predictions keep their class."
    untested = {"kind": "same_model", "passes": None, "reason": f"{why} So nothing is learned about this method."}
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
    """The similarity of each example's map to the original: a mean over seeds and stages, NaN without a value.

    `stage`: its number along the curve of that mode, 0 for all of them.
    """
    which = [at for at, one in enumerate(result.stages) if one.mode == mode and stage in (0, one.number)]
    own = result.likeness[which][:, :, result.methods.index(method), MEASURES.index(measure)]
    values = own.reshape(-1, len(result.examples))
    having = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        return np.where(having, values, 0.0).sum(0) / having.sum(0)


def order_examples(result: ModelRandomization, changes: Float[np.ndarray, "example"], order: str) -> list[int]:
    """The places of the examples in `result.examples`, by one of `ORDERS`; those without a value come last."""
    if order == ORDERS[0]:
        return sorted(range(len(result.examples)), key=result.examples.__getitem__)
    keys = changes if order == ORDERS[1] else -changes
    return [int(at) for at in np.argsort(keys, kind="stable")]  # NaN is sorted to the end


def to_json(found: RandomizationResult) -> dict[str, Any]:
    """The plan, and model by model the curves and a verdict a method: the contract of `exegesis randomize --json`."""
    return {
        "plan": {**found.plan.as_plain(), "company": list(found.plan.methods_with_baselines)},
        "models": [_model_json(found.plan, one) for one in found.models],
    }


def _model_json(plan: RandomizationPlan, result: ModelRandomization) -> dict[str, Any]:
    """`failed`: examples of which nothing is known, and why. `curves`: see `_curve_json`."""
    return {
        "model": result.model,
        "dataset": result.dataset,
        "blocks": result.blocks,
        "examples": list(result.examples),
        "failed": [{"example": index, "reason": why} for index, why in result.failed.items()],
        "curves": [_curve_json(curve) for curve in curves_of(result, plan.seed)],
        "verdicts": [asdict(verdict) for verdict in verdicts_of(result, plan.kind, plan.seed)],
    }


def _curve_json(curve: Curve) -> dict[str, Any]:
    """`method`: None of the prediction. `start`: the value on the model as it is."""
    named = {"mode": curve.mode, "method": curve.method or None, "metric": curve.metric, "start": curve.start}
    return named | {"points": [_point_json(point) for point in curve.points]}


def _point_json(point: CurvePoint) -> dict[str, Any]:
    """`low`, `high`: ends of the 95% interval over examples. `by_seed`: the mean of each randomization alone."""
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
