"""A check as plain values: the contract of `exegesis randomize --json`. Rows of examples go to `--out`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.randomization.curves import Curve, Point
    from engine.randomization.result import OfModel, Randomization


def as_plain(found: Randomization) -> dict[str, Any]:
    """The plan, and model by model the curves and a verdict a method."""
    return {
        "plan": {**found.plan.as_plain(), "company": list(found.plan.company)},
        "models": [_model(found, one) for one in found.models],
    }


def _model(found: Randomization, one: OfModel) -> dict[str, Any]:
    """`failed`: examples of which nothing is known, and why. `curves`: see `_curve`."""
    from dataclasses import asdict

    from engine.randomization.curves import curves_of
    from engine.randomization.verdict import verdicts

    return {
        "model": one.model,
        "dataset": one.dataset,
        "blocks": one.blocks,
        "examples": list(one.examples),
        "failed": [{"example": index, "reason": why} for index, why in one.failed.items()],
        "curves": [_curve(curve) for curve in curves_of(one, found.plan.seed)],
        "verdicts": [asdict(made) for made in verdicts(one, found.plan.kind, found.plan.seed)],
    }


def _curve(curve: Curve) -> dict[str, Any]:
    """`method`: None of the prediction. `start`: the value on the model as it is."""
    return {
        "mode": curve.mode,
        "method": curve.method or None,
        "metric": curve.metric,
        "start": curve.start,
        "points": [_point(point) for point in curve.points],
    }


def _point(point: Point) -> dict[str, Any]:
    """`low`, `high`: ends of the 95 % interval over examples. `by_seed`: the mean of each randomization alone."""
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
