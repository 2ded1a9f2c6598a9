"""`exegesis evaluate`: methods on a data set, by metrics, on one model or several.

For people: a leaderboard a model, what was skipped, and what the words mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.console import RenderableType
from rich.text import Text

from engine.cli.experiments import command_of
from engine.cli.output import NOTHING, table, visible
from engine.evaluation.plan import EVALUATE
from engine.evaluation.result import Evaluation, group_reasons
from engine.evaluation.scores import Standing, leaderboard
from engine.metrics.results import MetricScore

ARROWS = {"high": " ↑", "low": " ↓", "neither": ""}
LEGEND = (
    "↑ higher is better, ↓ lower is better. best: the best method by that metric (paired comparison; ties share the "
    "mark). level: not significantly different from the best (95% interval of the paired difference, not adjusted for "
    "the number of methods)."
)
LEFT_OUT = "Curves and agreement between methods are not listed: name them with --metrics, or use --json or --out."

Skipped = tuple[str, int, tuple[str, ...]]
"""Reason, number of examples, methods."""


def sections(evaluation: Evaluation) -> Iterator[RenderableType]:
    """One leaderboard per model, the examples that were skipped, and the meaning of the columns.

    The points of curves and pairs of methods fill many rows: they are listed only where their metrics are chosen.
    """
    standings, everything = leaderboard(evaluation), bool(evaluation.chosen_metrics)
    listed = [one for one in standings if everything or not (one.score.against or one.score.percent is not None)]
    for model, group in groupby(listed, key=lambda one: one.score.model):
        own = list(group)
        yield Text(visible(f"{model} on {own[0].score.dataset}"), style="bold")
        yield _leaderboard(own)
        yield from (Text(visible(line)) for line in _doubts([one.score for one in own]))
        yield ""
    for model, scores in groupby((one.score for one in standings), key=lambda score: score.model):
        yield from (Text(visible(f"skipped on {model}: {line}")) for line in _skipped(list(scores)))
    yield from (Text(visible(line)) for line in (*evaluation.class_notes, *evaluation.notes))
    yield Text(LEGEND, style="dim")
    if len(listed) < len(standings):
        yield Text(LEFT_OUT, style="dim")


def _leaderboard(standings: Sequence[Standing]) -> RenderableType:
    """A row a method, metric by metric, the best first."""
    right = ["mean", "95% interval", "n", "skipped"]
    rows = table(["metric", "method", *right, ""], right=right)
    for _, group in groupby(standings, key=lambda one: (one.score.metric, one.score.percent)):
        for one in group:
            score, style = one.score, "bold" if one.best else ""
            counts = (str(score.n), str(sum(score.skipped.values()) or ""))
            mark = "best" if one.best else "level" if one.level else ""
            interval = NOTHING if score.doubt or score.interval is None else " to ".join(map(_number, score.interval))
            cells = (_metric(score), _method(score), _number(score.value), interval, *counts, mark)
            rows.add_row(*(Text(visible(cell), style=style) for cell in cells))
        rows.add_section()
    return rows


def _metric(score: MetricScore) -> str:
    percent = "" if score.percent is None else f" at {score.percent}%"
    return f"{score.metric}{percent}{ARROWS[score.better]}"


def _method(score: MetricScore) -> str:
    return f"{score.method} with {score.against}" if score.against else score.method


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.4g}"


def _doubts(scores: Sequence[MetricScore]) -> Iterator[str]:
    """A line for each reason why means have no interval, with their metrics."""
    metrics: dict[str, dict[str, None]] = {}
    for score in scores:
        if score.doubt:
            metrics.setdefault(score.doubt, {})[score.metric] = None
    for doubt, names in metrics.items():
        yield f"{', '.join(names)}: {doubt}"


def _skipped(scores: Sequence[MetricScore]) -> Iterator[str]:
    """A line for each reason with the metrics that share it, so that a reason is not repeated for each metric."""
    metrics: dict[Skipped, list[str]] = {}
    for metric, own in groupby(scores, key=lambda score: score.metric):
        for skipped in _reasons(list(own)):
            metrics.setdefault(skipped, []).append(metric)
    for (reason, count, methods), names in metrics.items():
        of = f" of {', '.join(methods)}" if methods else ""
        yield f"{count} {'example' if count == 1 else 'examples'}{of} in {', '.join(names)}: {reason}"


def _reasons(scores: Sequence[MetricScore]) -> Iterator[Skipped]:
    """Reasons with counts; their methods are empty where all methods share a reason."""
    methods: dict[tuple[str, int], dict[str, None]] = {}
    for score in scores:
        for reason, count in group_reasons(score.skipped).items():
            methods.setdefault((reason, count), {})[_method(score)] = None
    everybody = {_method(score) for score in scores}
    for (reason, count), named in methods.items():
        yield reason, count, () if set(named) == everybody else tuple(named)


evaluate = command_of(EVALUATE, sections)
