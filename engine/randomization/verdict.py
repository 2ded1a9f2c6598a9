"""What a curve says of a method: a verdict with its reason, from intervals and never from means alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.randomization.curves import Curve, Point, curves_of
from engine.randomization.measures import MEASURES
from engine.randomization.plan import MODES, is_baseline, not_applicable
from engine.randomization.result import OfModel

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


@dataclass(frozen=True)
class Verdict:
    """`kind`: one of `KINDS`. `passes`: whether it depends on the parameters as an explanation should; None where that
    is not told. `still`: at how many first stages the map was as good as the same. `reason`: for people.
    """

    method: str
    kind: str
    passes: bool | None
    still: int
    reason: str


def verdict(signed: Curve, sizes: Curve | None = None, kind: str = "text") -> Verdict:
    """Of a method by its curve of Spearman's rho in the cascading mode, and by that of the absolute scores.

    At a stage the correlation is about zero where the upper end of its 95 % interval is at most `NEAR_ZERO`, high where
    the lower end is at least `HIGH`. Where signs become random and sizes do not, the method keeps a part of its map:
    it does not pass. An independent randomization shows where a method looks; it is not judged.
    """
    made = _judged(signed, sizes, kind)
    why_not = not_applicable(signed.method, kind)
    if not why_not:
        return made
    told = f"{made.reason} The check is not meant for it: {why_not}."
    return Verdict(made.method, made.kind, None, made.still, told)


def _judged(signed: Curve, sizes: Curve | None, kind: str) -> Verdict:
    points = [point for point in signed.points if point.value is not None]
    if is_baseline(signed.method, kind):
        return _told(signed, "baseline", None, 0, "A random order, drawn anew at each stage: what chance gives.")
    if not points:
        reasons = {why for point in signed.points for why in point.skipped}
        return _told(signed, "no_order", None, 0, f"No correlation at any stage: {'; '.join(sorted(reasons))}.")
    still = _still(points)
    if points[-1].n < FEW:
        few = "1 example has" if points[-1].n == 1 else f"{points[-1].n} examples have"
        return _told(signed, "unsure", None, still, f"Only {few} a correlation; take more.")
    if still == len(points):
        return _told(signed, "invariant", False, still, f"Its maps stay the same to the end {_at(points[-1])}.")
    return _by_last(signed, sizes, points, still)


def _by_last(signed: Curve, sizes: Curve | None, points: Sequence[Point], still: int) -> Verdict:
    last = points[-1]
    if _near_zero(last):
        left = _left_in_sizes(sizes)
        if left is not None:
            told = f"Its signs become random, but the order of its sizes stays {_at(left)}."
            return _told(signed, "partly", False, still, told)
        if all(map(_near_zero, points)):
            told = f"Its correlation with the original is {_gone(points[0])} from the first stage on {_at(points[0])}."
            return _told(signed, "at_once", True, still, told)
        return _told(
            signed, "falls", True, still, f"Its correlation falls to {_gone(last)} {_at(last)}.{_unmoved(still)}"
        )
    if _low(last) >= HIGH:
        told = f"Its correlation is still high {_at(last)}: it shows the input more than what was learned."
        return _told(signed, "high", False, still, told)
    if _low(last) > NEAR_ZERO:
        told = f"Its correlation falls, but not to zero {_at(last)}.{_unmoved(still)}"
        return _told(signed, "partly", False, still, told)
    told = f"The interval at the end reaches from about zero to more {_at(last)}: take more examples or seeds."
    return _told(signed, "unsure", None, still, told)


def _told(curve: Curve, kind: str, passes: bool | None, still: int, reason: str) -> Verdict:
    return Verdict(curve.method, kind, passes, still, reason)


def _still(points: Sequence[Point]) -> int:
    moved = (place for place, point in enumerate(points) if _low(point) < UNMOVED)
    return next(moved, len(points))


def _unmoved(still: int) -> str:
    many = "the first randomized part changes" if still == 1 else f"the first {still} randomized parts change"
    return f" But {many} next to nothing in it." if still else ""


def _left_in_sizes(sizes: Curve | None) -> Point | None:
    last = sizes.points[-1] if sizes is not None and sizes.points else None
    return last if last is not None and last.value is not None and _low(last) > NEAR_ZERO else None


def _near_zero(point: Point) -> bool:
    return _high(point) <= NEAR_ZERO


def _gone(point: Point) -> str:
    """Below zero the order is turned round, which is no likeness either, but is not nothing."""
    return "below zero" if _high(point) < -NEAR_ZERO else "about zero"


def _low(point: Point) -> float:
    return _ends(point)[0]


def _high(point: Point) -> float:
    return _ends(point)[1]


def _ends(point: Point) -> tuple[float, float]:
    assert point.value is not None
    return point.interval or (point.value, point.value)


def _at(point: Point) -> str:
    low, high = _ends(point)
    told = _hundredths(point.value or 0.0), _hundredths(low), _hundredths(high)
    return "({}, 95 % from {} to {}, with {})".format(*told, point.stage.words)


def _hundredths(value: float) -> str:
    """With a minus for people, and none before what rounds to zero."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "\u2212")


def verdicts(found: OfModel, kind: str = "text", seed: int = 0) -> list[Verdict]:
    """Of each method on one model; none where it was not randomized in a cascade.

    Where the model answers as before at every stage, that is said in place of a verdict on a method.
    """
    same = _same_class(found)
    curves = {(one.mode, one.method, one.metric): one for one in curves_of(found, seed)}
    named = ((curves.get((MODES[0], method, metric)) for metric in MEASURES[:2]) for method in found.methods)
    made = [verdict(signed, sizes, kind) for signed, sizes in named if signed is not None]
    if same is None or same <= SAME_CLASS:
        return made
    reason = f"The model answers as before: at every stage at least {same:.0%} of the predictions keep their class. "
    told = f"{reason}So nothing is learned about this method."
    return [one if one.kind == "baseline" else Verdict(one.method, "same_model", None, one.still, told) for one in made]


def _same_class(found: OfModel) -> float | None:
    """The smallest share, over the stages of the cascade, of predictions that keep their class; None for scores."""
    cascade = [at for at, stage in enumerate(found.stages) if stage.mode == MODES[0]]
    if found.regression or not cascade or not found.changed[cascade].size:
        return None
    return float(1 - found.changed[cascade].mean(axis=(1, 2)).max())
