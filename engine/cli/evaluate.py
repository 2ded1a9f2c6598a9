"""`exegesis evaluate`: score methods by metrics on a data set, for one or more models.

Prints a leaderboard per model, the skipped examples, and a legend.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from rich.console import RenderableType
from rich.text import Text

from engine.cli.experiments import command_of
from engine.cli.output import NOTHING, table, visible
from engine.evaluation.operator_comparison import comparison_head, comparison_texts
from engine.evaluation.plan import EVALUATE, EvaluationPlan
from engine.evaluation.result import Evaluation, group_reasons
from engine.evaluation.scores import Standing, leaderboard
from engine.metrics.catalog import is_favored
from engine.metrics.results import MetricScore

ARROWS = {"high": " ↑", "low": " ↓", "neither": ""}
LEGEND = (
    "↑ higher is better, ↓ lower is better. best: the best method by that metric (paired comparison; ties share the "
    "mark). level: not significantly different from the best (95% interval of the paired difference, not adjusted for "
    "the number of methods)."
)
TUNED = "tuned"
"""Mark of a method that is tuned on the metric; a note explains it."""
BY_SECOND = "by {}: the mean and the mark of the same maps when units are removed by that operator."
LEFT_OUT = "Curves and agreement between methods are not listed: name them with --metrics, or use --json or --out."

Skipped = tuple[str, int, tuple[str, ...]]
"""Reason, number of examples, and methods."""
Cell = tuple[str, str, int | None, str]
"""Model, metric, percent and method of a mean score."""


def sections(evaluation: Evaluation) -> Iterator[RenderableType]:
    """Yield a leaderboard per model, the skipped examples, and a legend.

    Points of curves and pairs of methods fill many rows, so they are listed only if metrics were chosen by name.
    """
    standings, everything = leaderboard(evaluation), bool(evaluation.chosen_metrics)
    second = {} if evaluation.second is None else {_cell(one): one for one in leaderboard(evaluation.second)}
    listed = [one for one in standings if everything or not (one.score.against or one.score.percent is not None)]
    for model, group in groupby(listed, key=lambda one: one.score.model):
        own = list(group)
        yield Text(visible(f"{model} on {own[0].score.dataset}"), style="bold")
        yield _leaderboard(own, second, evaluation.plan)
        yield from (Text(visible(line)) for line in _doubts([one.score for one in own]))
        yield from (Text(visible(line)) for line in _operators(evaluation, model))
        yield ""
    for model, scores in groupby((one.score for one in standings), key=lambda score: score.model):
        yield from (Text(visible(f"skipped on {model}: {line}")) for line in _skipped(list(scores)))
    for model, scores in groupby(_skipped_more(standings, second), key=lambda score: score.model):
        removed = f"skipped on {model}, removed by {evaluation.plan.second_operator}"
        yield from (Text(visible(f"{removed}: {line}")) for line in _skipped(list(scores)))
    yield from (Text(visible(line)) for line in (*evaluation.class_notes, *evaluation.notes))
    yield Text(LEGEND, style="dim")
    if second:
        yield Text(BY_SECOND.format(evaluation.plan.second_operator), style="dim")
    if len(listed) < len(standings):
        yield Text(LEFT_OUT, style="dim")


def _leaderboard(
    standings: Sequence[Standing], second: Mapping[Cell, Standing], plan: EvaluationPlan
) -> RenderableType:  # fmt: skip
    """Create a table with a row per metric and method, the best first.

    `second`: standings by the second operator, if there is one. Their means and marks are the last columns.
    """
    right, by_second = ["mean", "95% interval", "n", "skipped"], f"by {plan.second_operator}"
    added, tuned = [by_second, ""] if second else [], plan.tuned
    rows = table(["metric", "method", *right, "", *added], right=[*right, by_second])
    for _, group in groupby(standings, key=lambda one: (one.score.metric, one.score.percent)):
        for one in group:
            score, style = one.score, "bold" if one.best else ""
            counts = (str(score.n), str(sum(score.skipped.values()) or ""))
            other = second.get(_cell(one))
            more = ("", "") if other is None else (_number(other.score.value), _mark(other, tuned))
            interval = NOTHING if score.doubt or score.interval is None else " to ".join(map(_number, score.interval))
            cells = (_metric(score), _method(score), _number(score.value), interval, *counts, _mark(one, tuned))
            rows.add_row(*(Text(visible(cell), style=style) for cell in (*cells, *(more if second else ()))))
        rows.add_section()
    return rows


def _cell(one: Standing) -> Cell:
    score = one.score
    return score.model, score.metric, score.percent, _method(score)


def _mark(one: Standing, tuned: Mapping[str, str]) -> str:
    rank = "best" if one.best else "level" if one.level else ""
    return ", ".join(filter(None, (rank, TUNED if is_favored(tuned.get(one.score.method), one.score.metric) else "")))


def _operators(evaluation: Evaluation, model: str) -> Iterator[str]:
    """Yield sentences on whether the best method depends on the operator; none without a second operator."""
    compared = [one for one in evaluation.operator_comparisons if one.model == model]
    if compared:
        first, *others = comparison_texts(compared, {})
        yield f"{comparison_head(compared[0], evaluation.plan.units)}: {first}"
        yield from others


def _skipped_more(standings: Sequence[Standing], second: Mapping[Cell, Standing]) -> list[MetricScore]:
    """Return the scores by the second operator whose skipped examples differ from those by the first."""
    first = {_cell(one): one.score.skipped for one in standings}
    return [one.score for cell, one in second.items() if one.score.skipped != first.get(cell)]


def _metric(score: MetricScore) -> str:
    percent = "" if score.percent is None else f" at {score.percent}%"
    return f"{score.metric}{percent}{ARROWS[score.better]}"


def _method(score: MetricScore) -> str:
    return f"{score.method} with {score.against}" if score.against else score.method


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.4g}"


def _doubts(scores: Sequence[MetricScore]) -> Iterator[str]:
    """Yield a line per reason why means have no interval, with the affected metrics."""
    metrics: dict[str, dict[str, None]] = {}
    for score in scores:
        if score.doubt:
            metrics.setdefault(score.doubt, {})[score.metric] = None
    for doubt, names in metrics.items():
        yield f"{', '.join(names)}: {doubt}"


def _skipped(scores: Sequence[MetricScore]) -> Iterator[str]:
    """Yield a line per reason for skipped examples, with all metrics that share it."""
    metrics: dict[Skipped, list[str]] = {}
    for metric, own in groupby(scores, key=lambda score: score.metric):
        for skipped in _reasons(list(own)):
            metrics.setdefault(skipped, []).append(metric)
    for (reason, count, methods), names in metrics.items():
        of = f" of {', '.join(methods)}" if methods else ""
        yield f"{count} {'example' if count == 1 else 'examples'}{of} in {', '.join(names)}: {reason}"


def _reasons(scores: Sequence[MetricScore]) -> Iterator[Skipped]:
    """Yield reasons with counts and methods. Methods are empty if all methods share the reason."""
    methods: dict[tuple[str, int], dict[str, None]] = {}
    for score in scores:
        for reason, count in group_reasons(score.skipped).items():
            methods.setdefault((reason, count), {})[_method(score)] = None
    everybody = {_method(score) for score in scores}
    for (reason, count), named in methods.items():
        yield reason, count, () if set(named) == everybody else tuple(named)


evaluate = command_of(EVALUATE, sections)
