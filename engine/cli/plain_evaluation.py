"""An evaluation as plain values: the contract of `exegesis evaluate --json`. Rows of examples go to `--out`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.evaluation.leaderboard import Standing
    from engine.evaluation.result import Evaluation


def as_plain(found: Evaluation) -> dict[str, Any]:
    """The plan, with company and metrics filled in, and a score for each model, metric and method.

    `notes`: sentences on what the numbers do not say of themselves.
    """
    from engine.evaluation.leaderboard import leaderboard

    return {
        "plan": {**found.plan.as_plain(), "company": list(found.plan.company)},
        "scores": [_score(standing) for standing in leaderboard(found)],
        "classes": list(found.said),
        "notes": list(found.notes),
        "removal_rows": {"asked": found.asked, "run": found.run},
    }


def _score(standing: Standing) -> dict[str, Any]:
    """`low`, `high`: ends of the 95 % interval. `doubt`: why there is none, or one that tells nothing.

    `level`: not shown to be worse than the best.
    """
    score = standing.score
    low, high = score.interval or (None, None)
    return {
        "model": score.model,
        "dataset": score.dataset,
        "metric": score.metric,
        "percent": score.percent,
        "method": score.method,
        "against": score.against or None,
        "value": score.value,
        "low": low,
        "high": high,
        "doubt": score.doubt or None,
        "n": score.n,
        "skipped": dict(score.skipped),
        "better": score.better,
        "best": standing.best,
        "level": standing.level,
    }
