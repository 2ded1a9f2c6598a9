"""The leaderboard as HTML: methods down, metrics across, stronger is better. Pure; everything foreign is escaped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

from components.evaluate.look import Point
from components.numbers import even, plain
from components.palette import STEPS
from components.widgets.token_map.html import TONES
from engine.evaluation.plan import MEMBERS, RANDOM
from engine.evaluation.reasons import SAME, counted
from engine.metrics.catalog import METRICS

if TYPE_CHECKING:
    from engine.evaluation.leaderboard import Standing
    from engine.metrics.results import MetricScore

ARROWS = {"high": "↑", "low": "↓", "neither": ""}
BETTER = {"high": "higher is better", "low": "lower is better", "neither": "neither way is better"}
BEST, LEVEL = "★", "≈"
RANKS = {BEST: "; the best", LEVEL: "; cannot be told from the best"}
SPREAD = ("evaluations", "seconds")
"""Costs differ by powers of ten: they are coloured by their logarithm."""
NOTHING = "–"
NO_ORDER = "its maps are the same everywhere here, so that they put nothing in order"
MODEL, TRUTH, PEOPLE, MAP, COST = "Against the model", "Against the truth", "Against people's marks", "The map", "Cost"


@dataclass(frozen=True)
class Board:
    """The standings of one model by method and metric."""

    model: str
    methods: tuple[str, ...]
    metrics: tuple[str, ...]
    cells: Mapping[tuple[str, str], Standing]
    exact: bool = False
    """Whether the marks are the truth; else people made them."""

    def ordered(self, sort: str) -> list[str]:
        """The methods, best first by that metric; those without a value last. Else as they were chosen."""
        if sort not in self.metrics or METRICS[sort].better == "neither":
            return list(self.methods)
        return sorted(self.methods, key=lambda method: self._badness(method, sort))

    def written(self, metric: str, value: float) -> str:
        """The number in its cell, with the decimals of its column; costs spread too far for common ones."""
        column = [cell.score.value for (_, id), cell in self.cells.items() if id == metric]
        largest = max((abs(one) for one in column if one is not None), default=0.0)
        return plain(value) if metric in SPREAD else even(value, largest)

    def _badness(self, method: str, metric: str) -> tuple[bool, float]:
        one = self.cells.get((method, metric))
        if one is None or one.score.value is None:
            return True, 0.0
        return False, -one.score.value if one.score.better == "high" else one.score.value


def boards(
    standings: Sequence[Standing], methods: Sequence[str], metrics: Sequence[str], exact: bool = False
) -> list[Board]:
    """A board a model, methods with ensembles right after the last of their members, metrics of a kind together."""
    models, ordered = dict.fromkeys(one.score.model for one in standings), beside_members(methods)
    kinds = list(dict.fromkeys(against(id, exact) for id in metrics))
    together = tuple(sorted(metrics, key=lambda id: kinds.index(against(id, exact))))
    return [_board(model, standings, ordered, together, exact) for model in models]


def against(metric: str, exact: bool) -> str:
    """What a metric compares the map with, in words."""
    if metric in SPREAD:
        return COST
    needs = METRICS[metric].needs
    return {"removal": MODEL, "marks": TRUTH if exact else PEOPLE, "pair": TRUTH if exact else PEOPLE}.get(needs, MAP)


def beside_members(methods: Sequence[str]) -> list[str]:
    """Ensembles after the last of their members, random at the end."""
    singles = [method for method in methods if method not in MEMBERS and method != RANDOM]
    found = list(singles)
    for ensemble in sorted((one for one in methods if one in MEMBERS), key=lambda one: -len(MEMBERS[one])):
        found.insert(1 + max((found.index(one) for one in MEMBERS[ensemble] if one in found), default=-1), ensemble)
    return [*found, *(method for method in methods if method == RANDOM)]


def board_html(board: Board, titles: Mapping[str, str], sort: str, picked: Point | None = None) -> str:
    """One table. A cell is a button with what is told of it, its place numbered for who answers the click."""
    scales = {metric: _Scale.of(board, metric) for metric in board.metrics}
    heads = "".join(_head(metric, metric == sort) for metric in board.metrics)
    rows = "".join(
        f"<tr>{_row_head(board, method, titles)}{_cells(board, method, titles, scales, picked)}</tr>"
        for method in board.ordered(sort)
    )
    return (
        f'<section><p class="xg-title">{escape(board.model)}</p><div class="xg-scroll xg-stays" role="region" '
        f'tabindex="0" aria-label="Leaderboard of {escape(board.model)}"><table class="xg-board"><thead>'
        f'<tr><th></th>{_groups(board)}</tr><tr><th scope="col">Method</th>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def cell_words(standing: Standing, title: str, alike: bool = False) -> str:
    """All that is known of a mean, in one sentence. `alike`: all methods come to the same, so that none is best."""
    score, of = standing.score, METRICS[standing.score.metric]
    name = f"{title}, {of.title.lower()}"
    if score.value is None:
        return f"{name}: no example has a value. {skipped_words(score)}"
    interval = score.doubt or f"95 % interval {' to '.join(map(plain, score.interval or ()))}"
    rank = "; all methods alike" if alike else RANKS.get(mark_of(standing), "")
    return f"{name}: {plain(score.value)} {of.unit}, {interval}, n = {score.n:,}{rank}. {skipped_words(score)}".strip()


def mark_of(standing: Standing) -> str:
    """Whether it is the best of its column, or cannot be told from the best."""
    return BEST if standing.best else LEVEL if standing.level else ""


def skipped_words(score: MetricScore) -> str:
    """How many examples have no value, and why; empty where all have one."""
    left = counted(score.skipped)
    return f"Left out: {left}." if left else ""


@dataclass(frozen=True)
class _Scale:
    """From the worst value of a column to its best."""

    worst: float
    best: float
    spread: bool

    @classmethod
    def of(cls, board: Board, metric: str) -> _Scale | None:
        """None where neither way is better, where nothing is ranked, or all are alike."""
        found = [cell.score.value for (_, id), cell in board.cells.items() if id == metric]
        values = [_place(value, metric in SPREAD) for value in found if value is not None]
        if not _ranked(metric) or not values or min(values) == max(values):
            return None
        ends = (min(values), max(values))
        return cls(*(ends if METRICS[metric].better == "high" else ends[::-1]), metric in SPREAD)

    def step(self, value: float) -> int:
        """0 for the worst of the column, `STEPS` for the best."""
        return round(STEPS * (_place(value, self.spread) - self.worst) / (self.best - self.worst))


def _ranked(metric: str) -> bool:
    return METRICS[metric].better != "neither" and not METRICS[metric].by_batch


def _place(value: float, spread: bool) -> float:
    return math.log(max(value, 1e-6)) if spread else value


def _board(
    model: str, standings: Sequence[Standing], methods: Sequence[str], metrics: Sequence[str], exact: bool
) -> Board:
    cells = {(one.score.method, one.score.metric): one for one in standings if one.score.model == model}
    return Board(model, tuple(methods), tuple(metrics), cells, exact)


def _groups(board: Board) -> str:
    """What neighbouring metrics compare with, above them."""
    groups = groupby(board.metrics, key=lambda id: against(id, board.exact))
    spans = ((name, len(list(own))) for name, own in groups)
    return "".join(
        f'<th scope="colgroup" colspan="{wide}" class="xg-group">{escape(name)}</th>' for name, wide in spans
    )


def _head(metric: str, sorted_by: bool) -> str:
    of = METRICS[metric]
    told = f"{of.title} ({of.unit}), {BETTER[of.better]}. {of.about}"
    order = ' aria-sort="descending"' if sorted_by else ""
    arrow = f" <span>{ARROWS[of.better]}</span>" if ARROWS[of.better] else ""
    return (
        f'<th scope="col"{order}><button type="button" data-sort="{escape(metric)}" data-told="{escape(told)} '
        f'Click: the best method first.">{escape(of.title)}{arrow}</button></th>'
    )


def _orders_nothing(board: Board, method: str) -> bool:
    """Whether its values were taken back because its maps are the same everywhere on this model."""
    return any(SAME in one.score.skipped for (own, _), one in board.cells.items() if own == method)


def _row_head(board: Board, method: str, titles: Mapping[str, str]) -> str:
    members = ", ".join(titles.get(one, one) for one in MEMBERS.get(method, ()))
    note = "the baseline that knows nothing" if method == RANDOM else f"of {members}" if members else ""
    note = NO_ORDER if _orders_nothing(board, method) else note
    small = f'<p class="xg-small">{escape(note)}</p>' if note else ""
    return f'<th scope="row"><p>{escape(titles.get(method, method))}</p>{small}</th>'


def _cells(
    board: Board, method: str, titles: Mapping[str, str], scales: Mapping[str, _Scale | None], picked: Point | None
) -> str:
    return "".join(_cell(board, method, metric, titles, scales[metric], picked) for metric in board.metrics)


def _cell(
    board: Board, method: str, metric: str, titles: Mapping[str, str], scale: _Scale | None, picked: Point | None
) -> str:
    standing = board.cells.get((method, metric))
    if standing is None:
        return f'<td><span class="xg-small">{NOTHING}</span></td>'
    value = standing.score.value
    step = 0 if value is None or scale is None else scale.step(value)
    tone = f' class="{TONES["amount"]}{step}"' if step else ""
    alike = scale is None and len(board.methods) > 1
    mark = "" if alike else mark_of(standing)
    told = cell_words(standing, titles.get(method, method), alike and _ranked(metric))
    now = str(picked == Point(board.model, method, metric)).lower()
    return (
        f'<td{tone}><button type="button" data-model="{escape(board.model)}" data-method="{escape(method)}" '
        f'data-metric="{escape(metric)}" data-told="{escape(told)}" aria-label="{escape(told)}" aria-pressed="{now}">'
        f"{NOTHING if value is None else board.written(metric, value)}{f'<i>{mark}</i>' if mark else ''}</button></td>"
    )
