"""Attacks as plain values: the contract of `exegesis attack --json`. Rows of examples go to `--out`."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.attacks.findings import Findings, Score


def as_plain(found: Findings) -> dict[str, Any]:
    """The plan, a score for each model, objective, attacked method, measured method and metric, what each attack came
    to (the fields of `engine.attacks.findings.AttackOutcome`), and what was wrong.
    """
    return {
        "plan": found.plan.as_plain(),
        "scores": [_score(score) for score in found.scores],
        "attacks": [dataclasses.asdict(one) for one in found.outcomes],
        "examples": [
            {"model": one.model, "example": one.example, "label": one.label, "predicted": one.predicted,
             "confidence": one.confidence, "right": one.right, "length": one.length}
            for one in found.facts
        ],
        "notes": [*found.troubles, *found.said],
    }  # fmt: skip


def _score(score: Score) -> dict[str, Any]:
    """`low`, `high`: ends of the 95 % interval. `doubt`: why there is none, or one that tells nothing."""
    of, (low, high) = score.of, score.interval or (None, None)
    return {
        "model": of.model,
        "dataset": of.dataset,
        "objective": of.objective,
        "attacked": of.attacked,
        "method": of.method,
        "metric": of.metric,
        "value": score.value,
        "low": low,
        "high": high,
        "doubt": score.doubt or None,
        "n": score.n,
        "skipped": dict(score.skipped),
    }
