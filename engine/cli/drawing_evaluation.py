"""An evaluation for people: a leaderboard a model, what was skipped, and what the words mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from engine.cli.output import console, table, visible

if TYPE_CHECKING:
    from rich.console import RenderableType

    from engine.evaluation.leaderboard import Standing
    from engine.evaluation.result import Evaluation
    from engine.metrics.results import MetricScore

NOTHING = "-"
ARROWS = {"high": " ↑", "low": " ↓", "neither": ""}
LEGEND = (
    "↑ higher is better, ↓ lower is better. best: of the methods by that metric, two by two on the examples that both "
    "have; several where they tie. level: its difference from the best, "
    "example by example, has a 95 % interval that does not show it to be worse (not widened for how many there are)."
)
LEFT_OUT = "Curves and agreement of methods are not in the table: name them with --metrics, or see --json and --out."

Skipped = tuple[str, int, tuple[str, ...]]
"""Reason, number of examples, methods."""


def draw(found: Evaluation, everything: bool, file: Path | None) -> None:
    """`everything`: also the points of curves and pairs of methods, which fill many rows. `file`: where rows went."""
    out = console()
    for part in _parts(found, everything):
        out.print(part)
    if file is not None:
        print(f"Written: {visible(str(file))}, {len(found.rows):,} rows")


def _parts(found: Evaluation, everything: bool) -> Iterator[RenderableType]:
    from rich.text import Text

    from engine.evaluation.leaderboard import leaderboard

    standings = leaderboard(found)
    shown = [one for one in standings if everything or not (one.score.against or one.score.percent is not None)]
    for model, own in groupby(shown, key=lambda one: one.score.model):
        each = list(own)
        yield Text(visible(f"{model} on {each[0].score.dataset}"), style="bold")
        yield _board(each)
        yield from (Text(visible(line)) for line in _doubts([one.score for one in each]))
        yield ""
    for model, scores in groupby((one.score for one in standings), key=lambda score: score.model):
        yield from (Text(visible(f"skipped on {model}: {line}")) for line in _skipped(list(scores)))
    yield from (Text(visible(line)) for line in (*found.said, *found.notes))
    yield Text(LEGEND, style="dim")
    if len(shown) < len(standings):
        yield Text(LEFT_OUT, style="dim")


def _board(standings: Sequence[Standing]) -> RenderableType:
    """A row a method, metric by metric, the best first."""
    from rich.text import Text

    right = ["mean", "95 % interval", "n", "skipped"]
    made = table(["metric", "method", *right, ""], right=right)
    for _, group in groupby(standings, key=lambda one: (one.score.metric, one.score.percent)):
        for one in group:
            score, style = one.score, "bold" if one.best else ""
            counts = (str(score.n), str(sum(score.skipped.values()) or ""))
            mark = "best" if one.best else "level" if one.level else ""
            cells = (_metric(score), _method(score), _number(score.value), _interval(score), *counts, mark)
            made.add_row(*(Text(visible(cell), style=style) for cell in cells))
        made.add_section()
    return made


def _metric(score: MetricScore) -> str:
    percent = "" if score.percent is None else f" at {score.percent} %"
    return f"{score.metric}{percent}{ARROWS[score.better]}"


def _method(score: MetricScore) -> str:
    return f"{score.method} with {score.against}" if score.against else score.method


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.4g}"


def _interval(score: MetricScore) -> str:
    return NOTHING if score.doubt or score.interval is None else " to ".join(map(_number, score.interval))


def _doubts(scores: Sequence[MetricScore]) -> Iterator[str]:
    """A line for each reason why means have no interval, with their metrics."""
    metrics: dict[str, dict[str, None]] = {}
    for score in scores:
        if score.doubt:
            metrics.setdefault(score.doubt, {})[score.metric] = None
    for doubt, names in metrics.items():
        yield f"{', '.join(names)}: {doubt}"


def _skipped(scores: Sequence[MetricScore]) -> Iterator[str]:
    """A line for each reason with the metrics that share it, so that a reason is not said once a metric."""
    metrics: dict[Skipped, list[str]] = {}
    for metric, own in groupby(scores, key=lambda score: score.metric):
        for found in _reasons(list(own)):
            metrics.setdefault(found, []).append(metric)
    for (reason, count, methods), names in metrics.items():
        of = f" of {', '.join(methods)}" if methods else ""
        yield f"{count} {'example' if count == 1 else 'examples'}{of} in {', '.join(names)}: {reason}"


def _reasons(scores: Sequence[MetricScore]) -> Iterator[Skipped]:
    """No methods named where all of them share it."""
    from engine.evaluation.reasons import alike

    methods: dict[tuple[str, int], dict[str, None]] = {}
    for score in scores:
        for reason, count in alike(score.skipped).items():
            methods.setdefault((reason, count), {})[_method(score)] = None
    everybody = {_method(score) for score in scores}
    for (reason, count), named in methods.items():
        yield reason, count, () if set(named) == everybody else tuple(named)
