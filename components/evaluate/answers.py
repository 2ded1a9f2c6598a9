"""Answers of an evaluation: sentences above its leaderboards and charts, computed from the values that these show.

They are HTML and state the uncertainty. Throughout, `titles` are the titles of the methods, and `methods` are the
methods that are drawn, None for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from components.evaluate.leaderboard import Board, boards, is_ranked
from components.evaluate.view import IDEAL
from components.numbers import count, hundredths, percent, seconds
from engine.evaluation.groups import MASS, GradedScore, Sizes, Slice, size_ladders
from engine.evaluation.operator_comparison import comparison_head, comparison_texts
from engine.evaluation.result import Evaluation
from engine.evaluation.scores import ScoreFilter, compare_with_random, compute_scores, correlate_metrics, narrow
from engine.experiments.options import RANDOM
from engine.metrics.catalog import AREAS, METRICS
from engine.metrics.results import MetricScore, mean_difference

NAMED = 5
"""Maximum number of names in a list."""
NO_BEST = "No method can be called the best, because the methods share too few examples."
NO_RANDOM = "Random has no value here, so there is no baseline."
TOO_FEW = "Too few examples to compare methods."
NEEDED = "At least three methods with values on the same two examples are needed. Random does not count."
CHANGES = {
    "high": {"up": "significantly better", "down": "significantly worse"},
    "low": {"up": "significantly worse", "down": "significantly better"},
    "neither": {"up": "significantly higher", "down": "significantly lower"},
}
ONE_TRAINING = "Each size is one trained model: another training may differ."
AT = {"model": "on", "slice": "in"}

Titles = Mapping[str, str]
Methods = Sequence[str] | None


def leaderboard_summary(evaluation: Evaluation, titles: Mapping[str, str], board: Board, metric: str) -> str:
    """Return the answer of an evaluation by one metric, as HTML.

    If the metric removes units, `operators_answer` follows.
    """
    answer = summary_html(board, metric, titles, compare_with_random(evaluation, board.model, metric))
    return answer + (operators_answer(evaluation, board.model, titles) if METRICS[metric].needs == "removal" else "")


def operators_answer(evaluation: Evaluation, model: str, titles: Titles) -> str:
    """Say as HTML whether the best method depends on how units are removed.

    Empty without scores by a second operator.
    """
    compared = [one for one in evaluation.operator_comparisons if one.model == model]
    if not compared:
        return ""
    head = comparison_head(compared[0], evaluation.plan.units)
    return _answer(head, " ".join(comparison_texts(compared, titles)))


def summary_html(board: Board, metric: str, titles: Mapping[str, str], better_than_random: Mapping[str, bool]) -> str:
    """Return the answer by one metric as HTML, with the metric, the model and the number of examples in bold.

    `better_than_random`: by method, whether its paired difference from Random is significant.
    """
    head = f"{METRICS[metric].title} on {board.model}{_examples_text(board, metric)}:"
    texts = summary_texts(board, metric, titles, better_than_random)
    return f'<p class="xg-answer"><b>{escape(head)}</b> {escape(" ".join(texts))}</p>'


def summary_texts(
    board: Board, metric: str, titles: Mapping[str, str], better_than_random: Mapping[str, bool]
) -> list[str]:
    """Return the sentences of the answer: the best methods, the comparison with Random, the methods without a value."""
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
    """Join names into a list; a long list has the first names and the number of the others."""
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
    """Name the best methods with their mean and its interval; if several tie, with the range of all intervals.

    `undecided`: whether no other method is significantly different.
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
    """Describe the number of examples behind the means, as a range if it differs between methods."""
    sizes = [cell.score.n for (_, id), cell in board.cells.items() if id == metric and cell.score.n]
    if not sizes:
        return ""
    fewest, most = min(sizes), max(sizes)
    return f" ({f'{fewest:,} to ' if fewest < most else ''}{count(most, 'example')})"


def curves_answer(evaluation: Evaluation, model: str, curve: str, titles: Titles, methods: Methods) -> str:
    """Name the best method by the mean over the curve."""
    area = AREAS[curve]
    if area in evaluation.plan.metrics:
        return best_answer(evaluation, model, area, titles, methods)
    return _answer(METRICS[curve].title, f"{METRICS[area].title}, which sums these curves up, was not measured.")


def best_answer(evaluation: Evaluation, model: str, metric: str, titles: Titles, methods: Methods) -> str:
    """Return the leaderboard's answer by one metric, for the drawn methods only."""
    part = narrow(evaluation, metric, ScoreFilter([model], methods))
    found = boards(part.standings, methods or evaluation.plan.methods_with_baselines, [metric])
    return "".join(leaderboard_summary(part, titles, board, metric) for board in found)


def plausibility_answer(
    evaluation: Evaluation, x: str, y: str, model: str, titles: Titles, methods: Methods
) -> str:  # fmt: skip
    """Say whether methods that are better by one metric are better by the other: Spearman's rho over the methods."""
    drawn = [one for one in methods or evaluation.plan.methods_with_baselines if one != RANDOM]
    found = correlate_metrics(evaluation, x, y, ScoreFilter([model], drawn))
    head = f"{METRICS[y].title} and {METRICS[x].title} on {model}"
    if found is None:
        return _answer(head, NEEDED)
    low, high = found.interval
    if low <= 0 <= high:
        verdict = "It is not clear whether those of these methods that do better by one do better by the other"
    else:
        verdict = f"Of these methods, those that do better by one do {'better' if low > 0 else 'worse'} by the other"
    rho, *ends = map(hundredths, (found.rho, low, high))
    return _answer(
        f"{head} ({count(found.methods, 'method')}, {count(found.examples, 'example')})",
        f"{verdict}: Spearman's ρ is {rho} (95% interval over examples {' to '.join(ends)}).",
    )


def cost_answer(evaluation: Evaluation, model: str, metric: str, cost: str, titles: Titles, methods: Methods) -> str:
    """Name the cheapest of the methods that are best or not significantly different from the best."""
    wanted = ScoreFilter([model], methods)
    leaders = leading_methods(evaluation, model, metric, methods)
    costs = {one.method: one.value for one in compute_scores(evaluation, cost, wanted) if one.value is not None}
    priced = [method for method in leaders if method in costs]
    head = f"{METRICS[metric].title} on {model}"
    if not priced:
        return _answer(head, TOO_FEW)
    best, cheapest = priced[0], min(priced, key=lambda method: costs[method])
    if RANDOM in leaders:
        name = titles.get(best, best)
        is_best = "has the best mean" if best == RANDOM else f"is not significantly worse than {name}"
        return _answer(head, f"Cost cannot decide: Random {is_best}. More examples may tell methods apart.")

    def named(method: str) -> str:
        return f"{titles.get(method, method)} ({_cost(cost, costs[method])})"

    if cheapest == best:
        others = "" if len(priced) == 1 else ", and none of those not significantly different from it is cheaper"
        return _answer(head, f"{named(best)} is best{others}.")
    return _answer(
        head,
        f"The cheapest of the best is {named(cheapest)}. It is not significantly different from {named(best)}, which "
        "has the best mean.",
    )


def scaling_answer(
    evaluation: Evaluation, metric: str, sizes: Sizes, architecture: str, titles: Titles, methods: Methods
) -> str:
    """Name the methods whose means on the smallest and the largest model differ significantly (paired examples)."""
    ladders = size_ladders(sizes)
    ladder = ladders.get(architecture or next(iter(ladders), ""), [])
    if not ladder:
        return ""
    small, large = ladder[0], ladder[-1]
    rows = narrow(evaluation, metric, ScoreFilter([small, large], methods)).rows
    keys = {(row.of.model, row.of.method): row.of for row in rows}
    changes: dict[str, list[str]] = {"up": [], "down": [], "": []}
    for method in (one for one in evaluation.plan.methods_with_baselines if one != RANDOM):
        one, other = keys.get((large, method)), keys.get((small, method))
        if one and other and (gap := mean_difference(rows, one, other, evaluation.plan.seed).interval):
            changes["up" if gap[0] > 0 else "down" if gap[1] < 0 else ""].append(titles.get(method, method))
    if not any(changes.values()):
        return _answer(METRICS[metric].title, TOO_FEW)
    words = CHANGES[METRICS[metric].better]
    texts = [f"{words[way]} for {join_names(names)}" for way, names in changes.items() if way and names]
    if unchanged := changes[""]:
        texts.append(
            f"changes for {join_names(unchanged)} are not significant" if texts else "no change is significant"
        )
    text = "; ".join(texts)
    return _answer(f"{METRICS[metric].title} from {small} to {large}", f"{text[0].upper()}{text[1:]}. {ONE_TRAINING}")


def architecture_answer(evaluation: Evaluation, metric: str, sizes: Sizes, titles: Titles, methods: Methods) -> str:
    """Name the methods that are among the best on every model."""
    models = [model for model in evaluation.plan.models if model in sizes]
    leaders = {model: leading_methods(evaluation, model, metric, methods) for model in models}
    return _answer(METRICS[metric].title, _common_text(leaders, "model", titles))


def slices_answer(
    parts: Iterable[Slice], model: str, metric: str, titles: Titles, methods: Methods
) -> str:  # fmt: skip
    """Name the methods that are among the best in every slice."""
    leaders = {part.name: leading_methods(part.evaluation, model, metric, methods) for part in parts}
    return _answer(f"{METRICS[metric].title} on {model}", _common_text(leaders, "slice", titles))


def leading_methods(evaluation: Evaluation, model: str, metric: str, methods: Methods) -> list[str]:
    """Return the best methods by a metric, then those not significantly different; empty below two examples."""
    standings = narrow(evaluation, metric, ScoreFilter([model], methods)).standings
    if all(one.score.n < 2 for one in standings):
        return []
    return [one.score.method for one in standings if one.best] + [one.score.method for one in standings if one.level]


def _common_text(leaders: Mapping[str, Sequence[str]], noun: str, titles: Titles) -> str:
    """Name the methods that lead in all groups, or else the best method of each. `leaders`: by group, best first."""
    known = {group: own for group, own in leaders.items() if own}
    if not known:
        return TOO_FEW
    first, *others = known.values()
    common = [titles.get(method, method) for method in first if all(method in own for own in others)]
    where = f"every {noun}" if len(known) == len(leaders) else f"every {noun} with enough examples"
    if common:
        are = "is" if len(common) == 1 else "are"
        return f"{join_names(common)} {are} best or not significantly different from the best {AT[noun]} {where}."
    best = "; ".join(f"{titles.get(own[0], own[0])} {AT[noun]} {group}" for group, own in known.items())
    return f"No method is among the best {AT[noun]} {where}. Best means: {best}."


def strength_answer(graded: Sequence[GradedScore], axes: tuple[str, str], titles: Titles, methods: Methods) -> str:
    """Name the method with the largest share of its scores on the mark at the highest strength.

    Random and the ideal value follow for comparison.
    """
    valued = [one for one in graded if one.score.value is not None and (not methods or one.score.method in methods)]
    top = [one for one in valued if one.strength == max(one.strength for one in valued)]
    random = [one for one in top if one.score.method == RANDOM]
    others = [one for one in top if one.score.method != RANDOM]
    if not others:
        return _answer(METRICS[MASS].title, "No method has a value.")
    best = max(others, key=lambda one: one.score.value or 0.0)
    texts = [
        f"{titles.get(best.score.method, best.score.method)} puts the largest share of its scores on the mark, "
        f"{_share(best.score)}.",
        *(f"Random: {_share(one.score)}." for one in random),
        *([] if best.ideal is None else [f"{IDEAL[axes].capitalize()}: {percent(best.ideal)}."]),
    ]
    return _answer(f"With the mark in {percent(best.strength)} of the examples", " ".join(texts))


def _share(score: MetricScore) -> str:
    value = percent(score.value or 0.0)
    if score.interval is None:
        return value
    low, high = map(percent, score.interval)
    return f"{value} (95% interval {low} to {high})"


def _cost(cost: str, value: float) -> str:
    return seconds(value) if cost == "seconds" else count(round(value), "model evaluation")


def _answer(head: str, text: str) -> str:
    return f'<p class="xg-answer"><b>{escape(head)}:</b> {escape(text)}</p>'
