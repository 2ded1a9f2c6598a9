"""Which method is best by each metric, and which ones cannot be told from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.evaluation.result import Evaluation
from engine.metrics.catalog import metric
from engine.metrics.results import Difference, Of, Row, Score, difference


@dataclass(frozen=True)
class Standing:
    """`best`: of the methods on its model by its metric. `level`: not shown to be worse than the best."""

    score: Score
    best: bool = False
    level: bool = False


Group = tuple[str, str, int | None]
"""Model, metric and percent: what methods are compared within."""


def leaderboard(found: Evaluation) -> list[Standing]:
    """A standing for each score, model by model and metric by metric, the best first.

    A method is worse than the best where the 95 % interval of their difference, by pairs of examples, lies wholly on
    the worse side of 0. The intervals are not widened for the number of methods. What is measured once a batch has no
    interval, and no best.
    """
    rows: dict[Group, list[Row]] = {}
    for row in found.rows:
        rows.setdefault((row.of.model, row.of.metric, row.of.percent), []).append(row)
    groups: dict[Group, list[Score]] = {}
    for score in found.scores:
        groups.setdefault((score.model, score.metric, score.percent), []).append(score)
    return [one for group, own in groups.items() for one in _standings(own, rows.get(group, []), found.plan.seed)]


def _standings(scores: Sequence[Score], rows: Sequence[Row], seed: int) -> list[Standing]:
    if scores[0].better == "neither":
        return [Standing(score) for score in scores]
    ordered = sorted(scores, key=_badness)
    best = ordered[0]
    if best.value is None or metric(best.metric).by_batch:
        return [Standing(score) for score in ordered]
    others = [Standing(one, level=_level(one, difference(rows, _of(one), _of(best), seed))) for one in ordered[1:]]
    return [Standing(best, best=True), *others]


def _badness(score: Score) -> tuple[bool, float]:
    value = score.value or 0.0
    return score.value is None, -value if score.better == "high" else value


def _level(score: Score, gap: Difference) -> bool:
    """Of one example, or of none that both have, nothing can be told."""
    if score.value is None:
        return False
    if gap.interval is None:
        return True
    low, high = gap.interval
    return high >= 0 if score.better == "high" else low <= 0


def _of(score: Score) -> Of:
    return Of(score.model, score.dataset, score.method, score.metric, score.against, score.percent)
