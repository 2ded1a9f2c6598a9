"""The answer of a leaderboard in sentences: the best methods, those level with them, those no better than Random."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from components.evaluate.leaderboard import Board, is_ranked
from components.numbers import count
from engine.evaluation.leaderboard import compare_with_random
from engine.evaluation.result import Evaluation
from engine.experiments.options import RANDOM
from engine.metrics.catalog import METRICS
from engine.metrics.results import MetricScore

NAMED = 5
"""The most names in one list."""
NO_BEST = "No method can be called the best, because the methods share too few examples."
NO_RANDOM = "Random has no value here, so there is no baseline."


def leaderboard_summary(evaluation: Evaluation, titles: Mapping[str, str], board: Board, metric: str) -> str:
    """The answer by one metric of an evaluation, as HTML."""
    return summary_html(board, metric, titles, compare_with_random(evaluation, board.model, metric))


def summary_html(board: Board, metric: str, titles: Mapping[str, str], better_than_random: Mapping[str, bool]) -> str:
    """The answer by one metric as HTML, with the metric, the model and the number of examples in bold.

    `better_than_random`: by method, whether its paired difference from Random is significant.
    """
    head = f"{METRICS[metric].title} on {board.model}{_examples_text(board, metric)}:"
    texts = summary_texts(board, metric, titles, better_than_random)
    return f'<p class="xg-answer"><b>{escape(head)}</b> {escape(" ".join(texts))}</p>'


def summary_texts(
    board: Board, metric: str, titles: Mapping[str, str], better_than_random: Mapping[str, bool]
) -> list[str]:
    """The sentences of the answer: the best methods, the comparison with Random, the methods without a value."""
    methods = board.sort(metric)
    ranked = [method for method in methods if _value(board, method, metric) is not None]
    missing = [titles.get(method, method) for method in methods if method not in ranked]
    if not ranked:
        return ["No method has a value."]
    texts = [_ranking_text(board, metric, titles, ranked)]
    if is_ranked(metric) and max(board.cells[method, metric].score.n for method in ranked) > 1:
        texts.append(_random_text(ranked, titles, better_than_random))
    if missing:
        texts.append(f"{join_names(missing)} {'has' if len(missing) == 1 else 'have'} no value.")
    return [text for text in texts if text]


def join_names(names: Sequence[str]) -> str:
    """The names in one list; of many, the first ones and the number of the others."""
    shown = [*names] if len(names) <= NAMED else [*names[: NAMED - 1], f"{len(names) - NAMED + 1} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _ranking_text(board: Board, metric: str, titles: Mapping[str, str], ranked: Sequence[str]) -> str:
    if not is_ranked(metric):
        return "Not ranked: examples that were explained together share one measurement."
    cells = {titles.get(method, method): board.cells[method, metric] for method in ranked}
    if max(cell.score.n for cell in cells.values()) < 2:
        return "One example is too few to compare methods."
    best = [name for name, cell in cells.items() if cell.best]
    level = [name for name, cell in cells.items() if cell.level]
    if not best:
        return NO_BEST
    if len(best) == len(cells):
        return f"{best[0]} is the only method with a value." if len(best) == 1 else f"All {len(best)} methods tie."
    undecided = len(best) == 1 and len(level) > 0 and len(best) + len(level) == len(cells)
    lead = _best_text(board, metric, {name: cells[name].score for name in best}, undecided)
    it = "it" if len(best) == 1 else "them"
    if len(level) > 1 and len(best) + len(level) == len(cells):
        rest = "neither of the other two" if len(level) == 2 else f"none of the other {len(level)}"
        return f"{lead}, but {rest} is significantly different from {it}."
    if level:
        return f"{lead}; {join_names(level)} {_are(level)} not significantly different from {it}."
    if len(best) > 1:
        return f"{lead}."
    others = [name for name in cells if name not in best]
    return f"{lead}, significantly better than {others[0] if len(others) == 1 else 'the others'}."


def _best_text(board: Board, metric: str, best: Mapping[str, MetricScore], undecided: bool) -> str:
    """The best methods, with their mean and its interval; of several that tie, the ends of all intervals.

    `undecided`: no other method is significantly different.
    """
    verb = "has the best mean" if undecided else "is best" if len(best) == 1 else "tie for best"
    lead = f"{join_names([*best])} {verb}"
    value = next(iter(best.values())).value
    intervals = [one.interval for one in best.values() if one.interval is not None and not one.doubt]
    if value is None or not intervals:
        return lead
    ends = min(low for low, _ in intervals), max(high for _, high in intervals)
    mean, low, high = (board.format(metric, number) for number in (value, *ends))
    return f"{lead} ({mean}, 95% {'interval' if len(set(intervals)) == 1 else 'intervals'} {low} to {high})"


def _random_text(ranked: Sequence[str], titles: Mapping[str, str], better_than_random: Mapping[str, bool]) -> str:
    if RANDOM not in ranked:
        return NO_RANDOM
    compared = [method for method in ranked if method in better_than_random]
    failing = [titles.get(method, method) for method in compared if not better_than_random[method]]
    if not compared:
        return ""
    if not failing:
        every = (
            "Every other method" if len(compared) == len(ranked) - 1 else "Every method that shares examples with it"
        )
        return f"{every} is significantly better than Random."
    if len(failing) == len(compared) > 1:
        return "No method is significantly better than Random."
    return f"{join_names(failing)} {_are(failing)} not significantly better than Random."


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _value(board: Board, method: str, metric: str) -> float | None:
    standing = board.cells.get((method, metric))
    return None if standing is None else standing.score.value


def _examples_text(board: Board, metric: str) -> str:
    """The number of examples behind the means, a range where it differs between methods."""
    sizes = [cell.score.n for (_, id), cell in board.cells.items() if id == metric and cell.score.n]
    if not sizes:
        return ""
    fewest, most = min(sizes), max(sizes)
    return f" ({f'{fewest:,} to ' if fewest < most else ''}{count(most, 'example')})"
