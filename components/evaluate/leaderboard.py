"""The leaderboard, on the page and as a file: methods in rows, metrics in columns, better values in stronger color.

Builds the tables as HTML, with all foreign text escaped, and has the component that handles clicks on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from html import escape
from itertools import groupby

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.errors import escape_label
from components.evaluate.view import SESSION, EvaluationView, ScorePoint, point_at
from components.experiment.state import ExperimentState, select_known, view_pills
from components.export import standalone_page
from components.numbers import count, even, plain
from components.palette import STEPS
from components.styles import ASSETS, TONES, asset_sheet, use_sheet
from engine.evaluation.plan import EvaluationPlan
from engine.evaluation.result import CONSTANT_MAPS, Evaluation, format_reasons
from engine.evaluation.scores import Standing, badness, scalar_metrics
from engine.experiments.options import RANDOM
from engine.metrics.catalog import METRICS, is_favored
from engine.metrics.results import MetricScore
from engine.registry import ENSEMBLE_MEMBERS

ARROWS = {"high": "↑", "low": "↓", "neither": ""}
BETTER = {"high": "higher is better", "low": "lower is better", "neither": "no direction is better"}
BEST, LEVEL, TUNED = "★", "≈", "†"
RANKS = {BEST: "; best", LEVEL: "; not significantly different from the best"}
SPREAD = ("evaluations", "seconds")
"""Costs, which are colored by their logarithm because they differ by powers of ten."""
NOTHING = "–"
NO_ORDER = "gives every token the same score, so it cannot rank them"
MODEL, TRUTH, PEOPLE, MAP, COST = "Against the model", "Against the truth", "Against people's marks", "The map", "Cost"
COLUMNS = (
    "comprehensiveness", "sufficiency", "gt_share", "mean_rank", "truth_mass", "plausibility_auc", "complexity",
    "evaluations",
)  # fmt: skip
"""The metrics that are shown first if there are too many."""
MOST_COLUMNS = 8
"""Number of columns that fit on a laptop screen."""
NAME = "exegesis_evaluate_board"
MORE = "Scroll right for more columns, or choose fewer."
COLUMNS_HELP = "The columns of the tables and of the exported leaderboard. None chosen: the default ones."
HINT = "Hover over a number, or reach it with Tab, for its interval. Click it for the examples behind it."
LEGEND = (
    "★ best (paired comparison; ties share the star); ≈ not significantly different from the best (95% interval of the "
    "paired difference, not adjusted for the number of methods). Stronger color: better."
)
TUNED_LEGEND = "† tuned on this metric: the value favors the method. Compare it by the other columns."
OPERATORS_TITLE = "Scores by removal operator"
OPERATORS_ABOUT = (
    "The same maps, judged with units removed in two ways. ★ best, ≈ not significantly different from the best, each "
    "by that operator. LIME, SHAP and occlusion make their maps by one of these operators, which may favor them there."
)
Summary = Callable[["Board", str], str]
"""A function that returns the answer of a table by one metric, as HTML."""


@dataclass(frozen=True)
class Board:
    """The standings of one model by method and metric."""

    model: str
    methods: tuple[str, ...]
    metrics: tuple[str, ...]
    cells: Mapping[tuple[str, str], Standing]
    exact: bool = False
    """Whether the marks are the ground truth; otherwise people made them."""
    tuned: Mapping[str, str] = field(default_factory=dict)
    """By method, the metric that it is tuned on, if any."""

    def sort(self, metric: str) -> list[str]:
        """Sort the methods by the metric, best first, those without a value last.

        The order does not change if the metric is not a column or neither direction is better.
        """
        if metric not in self.metrics or METRICS[metric].better == "neither":
            return list(self.methods)
        scores = {method: one.score for (method, id), one in self.cells.items() if id == metric}
        return sorted(self.methods, key=lambda method: badness(scores[method]) if method in scores else (True, 0.0))

    def format(self, metric: str, value: float) -> str:
        """Format a value with the decimals of its column; costs vary too much for common decimals."""
        column = [cell.score.value for (_, id), cell in self.cells.items() if id == metric]
        largest = max((abs(one) for one in column if one is not None), default=0.0)
        return plain(value) if metric in SPREAD else even(value, largest)


def boards(
    standings: Sequence[Standing], methods: Sequence[str], metrics: Sequence[str], exact: bool = False,
    tuned: Mapping[str, str] | None = None,
) -> list[Board]:  # fmt: skip
    """Return one board per model. Ensembles follow the last of their members; metrics are grouped by reference."""
    kinds = list(dict.fromkeys(metric_group(id, exact) for id in metrics))
    grouped = tuple(sorted(metrics, key=lambda id: kinds.index(metric_group(id, exact))))
    cells: dict[str, dict[tuple[str, str], Standing]] = {}
    for one in standings:
        cells.setdefault(one.score.model, {})[one.score.method, one.score.metric] = one
    ordered = tuple(group_ensembles(methods))
    return [Board(model, ordered, grouped, own, exact, tuned or {}) for model, own in cells.items()]


def listed_methods(plan: EvaluationPlan, standings: Sequence[Standing]) -> list[str]:
    """Return the chosen methods, and the added methods that have a value other than a cost."""
    scores = [one.score for one in standings]
    valued = {score.method for score in scores if score.value is not None and score.metric not in SPREAD}
    return [method for method in plan.methods_with_baselines if method in plan.methods or method in valued]


def metric_group(metric: str, exact: bool) -> str:
    """Return the reference that a metric compares the map with, in words."""
    if metric in SPREAD:
        return COST
    needs = METRICS[metric].needs
    return {"removal": MODEL, "marks": TRUTH if exact else PEOPLE, "pair": TRUTH if exact else PEOPLE}.get(needs, MAP)


def group_ensembles(methods: Sequence[str]) -> list[str]:
    """Sort methods so that ensembles follow the last of their members and Random is last."""
    singles = [method for method in methods if method not in ENSEMBLE_MEMBERS and method != RANDOM]
    ordered = list(singles)
    for ensemble in sorted(
        (one for one in methods if one in ENSEMBLE_MEMBERS), key=lambda one: -len(ENSEMBLE_MEMBERS[one])
    ):
        last = max((ordered.index(one) for one in ENSEMBLE_MEMBERS[ensemble] if one in ordered), default=-1)
        ordered.insert(1 + last, ensemble)
    return [*ordered, *(method for method in methods if method == RANDOM)]


def board_html(
    board: Board, titles: Mapping[str, str], sort: str, picked: ScorePoint | None = None, summary: str = ""
) -> str:
    """Build one table as HTML. A cell is a button that describes its mean. `summary`: HTML that replaces the title."""
    scales = {metric: _Scale.from_board(board, metric) for metric in board.metrics}
    heads = "".join(_metric_head(metric, metric == sort) for metric in board.metrics)
    rows = "".join(
        f"<tr>{_method_cell(board, method, titles)}{_cells(board, method, titles, scales, picked)}</tr>"
        for method in board.sort(sort)
    )
    title = f'<p class="xg-title">{escape(board.model)}</p>'
    return (
        f'<section>{summary or title}<div class="xg-scroll" role="region" '
        f'tabindex="0" aria-label="Leaderboard of {escape(board.model)}"><table class="xg-board"><thead>'
        f'<tr><th></th>{_group_heads(board)}</tr><tr><th scope="col">Method</th>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div></section>"
    )


def cell_text(standing: Standing, title: str, alike: bool = False, tuned: bool = False) -> str:
    """Describe a mean completely.

    `alike`: whether all methods tie, so that none is best. `tuned`: whether the method is tuned on the metric.
    """
    score, of = standing.score, METRICS[standing.score.metric]
    name = f"{title}, {of.title.lower()}"
    if score.value is None:
        return f"{name}: no example has a value. {skips_text(score)}"
    interval = score.doubt or f"95% interval {' to '.join(map(plain, score.interval or ()))}"
    rank = "; all methods tie" if alike else RANKS.get(rank_mark(standing), "")
    rank += "; tuned on this metric" if tuned else ""
    return f"{name}: {plain(score.value)} {of.unit}, {interval}, n = {score.n:,}{rank}. {skips_text(score)}".strip()


def rank_mark(standing: Standing) -> str:
    """Return the mark of the best method of a column, or of one not significantly different from it; else empty."""
    return BEST if standing.best else LEVEL if standing.level else ""


def skips_text(score: MetricScore) -> str:
    """Describe the number of examples without a value and the reasons; empty if all have one."""
    left = format_reasons(score.skipped)
    return f"Left out: {left}." if left else ""


@dataclass(frozen=True)
class _Scale:
    """The range of a column from its worst value to its best."""

    worst: float
    best: float
    spread: bool

    @classmethod
    def from_board(cls, board: Board, metric: str) -> _Scale | None:
        """Return the scale of a column; None if methods are not ranked by it, or if it has no two different values."""
        column = [cell.score.value for (_, id), cell in board.cells.items() if id == metric]
        values = [_position(value, metric in SPREAD) for value in column if value is not None]
        if not is_ranked(metric) or not values or min(values) == max(values):
            return None
        ends = (min(values), max(values))
        return cls(*(ends if METRICS[metric].better == "high" else ends[::-1]), metric in SPREAD)

    def step(self, value: float) -> int:
        """Return the color step of a value: 0 for the worst of the column, `STEPS` for the best."""
        return round(STEPS * (_position(value, self.spread) - self.worst) / (self.best - self.worst))


def is_ranked(metric: str) -> bool:
    """Whether methods are ranked by the metric: it has a better direction and is measured per example."""
    return METRICS[metric].better != "neither" and not METRICS[metric].by_batch


def _position(value: float, spread: bool) -> float:
    return math.log(max(value, 1e-6)) if spread else value


def _group_heads(board: Board) -> str:
    """HTML of the headers above groups of metrics: the reference that the metrics compare with."""
    groups = groupby(board.metrics, key=lambda id: metric_group(id, board.exact))
    spans = ((name, len(list(own))) for name, own in groups)
    return "".join(
        f'<th scope="colgroup" colspan="{wide}" class="xg-group">{escape(name)}</th>' for name, wide in spans
    )


def _metric_head(metric: str, sorted_by: bool) -> str:
    of = METRICS[metric]
    text = f"{of.title} ({of.unit}), {BETTER[of.better]}. {of.about}"
    order = ' aria-sort="descending"' if sorted_by else ""
    arrow = f"&nbsp;<span>{ARROWS[of.better]}</span>" if ARROWS[of.better] else ""
    return (
        f'<th scope="col"{order}><button type="button" data-sort="{escape(metric)}" data-told="{escape(text)} '
        f'Click to sort by it.">{escape(of.title)}{arrow}</button></th>'
    )


def _is_constant(board: Board, method: str) -> bool:
    """Whether the method's values were discarded because its maps are constant on this model."""
    return any(CONSTANT_MAPS in one.score.skipped for (own, _), one in board.cells.items() if own == method)


def _method_cell(board: Board, method: str, titles: Mapping[str, str]) -> str:
    members = ", ".join(titles.get(one, one) for one in ENSEMBLE_MEMBERS.get(method, ()))
    note = "random scores, the baseline" if method == RANDOM else f"of {members}" if members else ""
    note = NO_ORDER if _is_constant(board, method) else note
    small = f'<p class="xg-small">{escape(note)}</p>' if note else ""
    return f'<th scope="row"><p>{escape(titles.get(method, method))}</p>{small}</th>'


def _cells(
    board: Board, method: str, titles: Mapping[str, str], scales: Mapping[str, _Scale | None], picked: ScorePoint | None
) -> str:
    return "".join(_cell(board, method, metric, titles, scales[metric], picked) for metric in board.metrics)


def _cell(
    board: Board, method: str, metric: str, titles: Mapping[str, str], scale: _Scale | None, picked: ScorePoint | None
) -> str:
    standing = board.cells.get((method, metric))
    if standing is None:
        return f'<td><span class="xg-small">{NOTHING}</span></td>'
    value = standing.score.value
    step = 0 if value is None or scale is None else scale.step(value)
    tone = f' class="{TONES["amount"]}{step}"' if step else ""
    alike = scale is None and len(board.methods) > 1
    tuned = is_favored(board.tuned.get(method), metric)
    mark = ("" if alike else rank_mark(standing)) + (TUNED if tuned else "")
    text = cell_text(standing, titles.get(method, method), alike and is_ranked(metric), tuned)
    now = str(picked == ScorePoint(board.model, method, metric)).lower()
    return (
        f'<td{tone}><button type="button" data-model="{escape(board.model)}" data-method="{escape(method)}" '
        f'data-metric="{escape(metric)}" data-told="{escape(text)}" aria-label="{escape(text)}" aria-pressed="{now}">'
        f"{NOTHING if value is None else board.format(metric, value)}{f'<i>{mark}</i>' if mark else ''}</button></td>"
    )


def leaderboard(
    state: ExperimentState, tables: Sequence[Board], titles: Mapping[str, str], summary: Summary,
    named: Collection[str], line: DeltaGenerator,
) -> None:  # fmt: skip
    """Draw one table per model, with the chosen columns and its summary above.

    `named`: the metrics that the plan names. `line`: container for the choice of columns.
    """
    kind, view = state.kind, state.view
    columns, default = {id: METRICS[id].title for id in tables[0].metrics}, default_columns(tables, view, named)
    with line:
        view_pills(SESSION, state, "Columns", "columns", columns, COLUMNS_HELP, default)
    shown = select_columns(tables, view, named)
    html = "".join(
        board_html(board, titles, sort := sort_metric(board, view), view.picked, summary(board, sort))
        for board in shown
    )
    name = SESSION.key(kind, "board")
    _component()(
        key=name,
        data={"html": html, "hint": HINT, "more": MORE},
        on_picked_change=partial(_pick, kind, name, tables),
        on_sorted_change=partial(_sort, kind, name),
    )
    st.caption(f"{legend(shown)} {escape_label(hidden_text(tables, shown[0].metrics, named))}")


def select_columns(tables: Sequence[Board], view: EvaluationView, named: Collection[str] = ()) -> list[Board]:
    """Return the boards with only the chosen columns, or with the default ones if none is chosen."""
    default = default_columns(tables, view, named)
    return [replace(board, metrics=select_known(board.metrics, view.columns, default)) for board in tables]


def default_columns(tables: Sequence[Board], view: EvaluationView, named: Collection[str] = ()) -> tuple[str, ...]:
    """Return the default columns: at most `MOST_COLUMNS` metrics that distinguish methods, or those of the plan.

    The metric that the view sorts by and that of the selected point are added. `named`: the metrics that the plan
    names.
    """
    metrics, hidden = tables[0].metrics, indistinct_columns(tables, named)
    places = {id: place for place, id in enumerate(COLUMNS)}
    telling = sorted((id for id in metrics if id not in hidden), key=lambda id: places.get(id, len(COLUMNS)))
    pointed = {view.sort, view.picked.metric if view.picked else ""}
    wanted = {*(named or telling[:MOST_COLUMNS]), *pointed}
    return tuple(id for id in metrics if id in wanted)


def indistinct_columns(tables: Sequence[Board], named: Collection[str] = ()) -> dict[str, str]:
    """Return the metrics by which no method differs significantly from the best on any model, each with the reason.

    The first metric and those that the plan names are never included.
    """
    others = [id for id in tables[0].metrics[1:] if id not in named]
    reasons = {id: {_indistinct_reason(board, id) for board in tables} for id in others}
    return {id: "; ".join(sorted(own)) for id, own in reasons.items() if "" not in own}


def _indistinct_reason(board: Board, metric: str) -> str:
    """Return why a column does not distinguish methods; empty if it does, or if methods are not ranked by it."""
    cells = [cell for (_, id), cell in board.cells.items() if id == metric and cell.score.value is not None]
    if not cells:
        return "no values"
    if not is_ranked(metric) or len(cells) < 2 or not all(cell.best or cell.level for cell in cells):
        return ""
    return f"{'all' if all(cell.best for cell in cells) else '0 of'} {len(cells)} methods " + (
        "tie" if all(cell.best for cell in cells) else "differ significantly from the best"
    )


def hidden_text(tables: Sequence[Board], shown: Collection[str], named: Collection[str] = ()) -> str:
    """Describe the hidden columns: those that do not distinguish methods with the reason, the others only by number."""
    left = [id for id in tables[0].metrics if id not in shown]
    reasons = indistinct_columns(tables, named)
    titles: dict[str, list[str]] = {}
    for id in left:
        titles.setdefault(reasons.get(id, ""), []).append(METRICS[id].title)
    others = len(titles.pop("", []))
    folded = [f"{', '.join(own)} ({reason})" for reason, own in titles.items()]
    hidden = "; ".join([*folded, *([count(others, "other column")] if others else [])])
    return f"Hidden: {hidden}. Choose them under Columns." if hidden else ""


def legend(tables: Sequence[Board]) -> str:
    """Return the meaning of the marks; that of tuned methods is included only if a table has one."""
    marked = any(is_favored(own, id) for board in tables for own in board.tuned.values() for id in board.metrics)
    return f"{LEGEND} {TUNED_LEGEND}" if marked else LEGEND


def sort_metric(board: Board, view: EvaluationView) -> str:
    """Return the metric that the table is sorted by: the chosen one, or the first column if that is not shown."""
    return view.sort if view.sort in board.metrics else board.metrics[0]


def leaderboard_page(
    tables: Sequence[Board], titles: Mapping[str, str], summary: Summary, how: str, cited: str
) -> str:  # fmt: skip
    """Return the leaderboards as a standalone page.

    `how`: how the evaluation was done. `cited`: the citation as HTML.
    """
    first = tables[0].metrics[0]
    boards = "".join(board_html(one, titles, first, summary=summary(one, first)) for one in tables)
    sections = [f'<div class="xg-boards">{boards}</div>', f"<p>{how}</p><p>{legend(tables)}</p>", cited]
    return standalone_page("Leaderboard", sections, asset_sheet("evaluate_board"))


def _pick(kind: str, name: str, tables: Sequence[Board]) -> None:
    """Select the cell that the browser sent; an unknown cell is ignored."""
    sent = st.session_state[name].get("picked")
    given = sent if isinstance(sent, dict) else {}
    for board in tables:
        if board.model == given.get("model") and (given.get("method"), given.get("metric")) in board.cells:
            point_at(kind, ScorePoint(board.model, str(given["method"]), str(given["metric"])))


def _sort(kind: str, name: str) -> None:
    sent = st.session_state[name].get("sorted")
    if isinstance(sent, str) and sent in METRICS:
        SESSION.put_view(kind, "sort", sent)


def operators_html(evaluation: Evaluation, tables: Sequence[Board], titles: Mapping[str, str]) -> str:
    """HTML of one table per model with the metrics that remove units, by both removal operators side by side.

    Empty without scores by a second operator, and if only curves were measured.
    """
    if (second := evaluation.second) is None or not scalar_metrics(second):
        return ""
    by_second = {one.model: one for one in boards(second.standings, (), scalar_metrics(second))}
    both = [(board, by_second[board.model]) for board in tables if board.model in by_second]
    return f'<div class="xg">{"".join(_operators_table(*pair, evaluation.plan, titles) for pair in both)}</div>'


def _operators_table(board: Board, second: Board, plan: EvaluationPlan, titles: Mapping[str, str]) -> str:
    metrics, operators = second.metrics, (plan.operator, plan.second_operator or "")
    heads = "".join(
        f'<th scope="colgroup" colspan="2" class="xg-number">{escape(of.title)} {ARROWS[of.better]}</th>'
        for of in map(METRICS.__getitem__, metrics)
    )
    columns = "".join(f'<th scope="col" class="xg-number">{escape(one)}</th>' for _ in metrics for one in operators)
    rows = "".join(
        f'<tr><th scope="row">{escape(titles.get(method, method))}</th>'
        f"{''.join(_operator_cell(board, one, method, id, titles) for id in metrics for one in (board, second))}</tr>"
        for method in board.sort(metrics[0])
    )
    return (
        f'<p class="xg-title">{escape(board.model)}</p><div class="xg-scroll" role="region" tabindex="0" '
        f'aria-label="Scores of {escape(board.model)} by removal operator"><table class="xg-numbers xg-operators">'
        f'<thead><tr><td></td>{heads}</tr><tr><th scope="col">Method</th>{columns}</tr></thead><tbody>{rows}</tbody>'
        "</table></div>"
    )


def _operator_cell(board: Board, own: Board, method: str, metric: str, titles: Mapping[str, str]) -> str:
    """HTML of a mean of `own` with its mark, with as many decimals as the metric has in `board`."""
    standing = own.cells.get((method, metric))
    if standing is None or standing.score.value is None:
        return f'<td class="xg-number">{NOTHING}<i></i></td>'
    tuned = is_favored(board.tuned.get(method), metric)
    text = cell_text(standing, titles.get(method, method), tuned=tuned)
    mark = rank_mark(standing) + (TUNED if tuned else "")
    value = board.format(metric, standing.score.value)
    return f'<td class="xg-number" title="{escape(text)}">{value}<i>{mark}</i></td>'


def use_board_styles() -> None:
    """Add the style sheet of the leaderboard and of its examples to the page; it takes no space."""
    use_sheet("evaluate_board")


@cache
def _component() -> Callable[..., object]:
    js = (ASSETS / "evaluate_board.js").read_text(encoding="utf-8")
    detail = '<p class="xg-small xg-told" aria-live="polite"></p>'
    html = f'<div class="xg"><p class="xg-small xg-more"></p><div class="xg-boards"></div>{detail}</div>'
    component: Callable[..., object] = st.components.v2.component(
        NAME, html=html, css=asset_sheet("evaluate_board"), js=js, isolate_styles=False
    )
    return component
