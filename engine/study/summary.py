"""Results of a study of rankings: ratings, agreement and a power forecast, each with an explanatory sentence."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import combinations

import choix
import numpy as np
from jaxtyping import Float, Int
from scipy.stats import rankdata, spearmanr

from engine.errors import UsageError, unknown
from engine.format import join_names
from engine.progress import Report, silent
from engine.study.counted_votes import Ranking, first_rankings, rank_table, ranked_methods
from engine.study.ratings import ORDERS, RESAMPLES, Rating, rate_methods, strictly_better, student_quantile

ORDERS_PER_TIE = 10
LSR_PRIOR, LSR_CHANGE = 1e-3, 1e-8
"""Regularization of the worths, and the mean absolute change below which they have converged."""
MIN_PEOPLE, MAX_PEOPLE = 2, 10_000
"""Range of the forecast. One person shows no variation between people; pairs that need more people count as equal."""
POWER_STEPS = 40
STRONG, MODERATE, SLIGHT = 0.7, 0.4, 0.1
"""Thresholds of the words for agreement. They affect text only."""


def kendalls_w(rankings: Sequence[Ranking]) -> float | None:
    """Return Kendall's coefficient of concordance W, corrected for ties: the mean over items, from 0 to 1.

    1 means that all people rank an item alike; `kendalls_w_by_chance` is the value by chance. Only first rankings
    count. Items with fewer than two rankings, or on which everybody ties everything, are skipped; None if none is left.
    Source: Kendall and Babington Smith (1939); ties as in Siegel and Castellan (1988), section 9.6.
    """
    values = [value for value, _ in _concordances(rankings)]
    return float(np.mean(values)) if values else None


def kendalls_w_by_chance(rankings: Sequence[Ranking]) -> float | None:
    """Return the expected Kendall's W of random rankings: the mean over items of 1 / (people on the item).

    It is not 0: for two people who rank at random, W is 0.5 on average.
    """
    values = [1 / people for _, people in _concordances(rankings)]
    return float(np.mean(values)) if values else None


def krippendorffs_alpha(rankings: Sequence[Ranking]) -> float | None:
    """Return Krippendorff's alpha for ordinal data; a unit is a method on an item.

    1: perfect agreement, 0: agreement by chance, negative: less than by chance. Ties share the mean of their ranks, as
    in W; otherwise people who tie everything would agree on the best. None if undefined: fewer than two people, no item
    that two of them ranked, or no two different ranks.
    Source: Krippendorff (2011), Computing Krippendorff's alpha-reliability, section D with the ordinal metric.
    """
    methods, people = ranked_methods(rankings), sorted({ranking.annotator for ranking in rankings})
    by_item = _first_by_item(rankings)
    table = np.full((len(people), len(by_item) * len(methods)), np.nan)
    for item, own in enumerate(by_item.values()):
        unit = item * len(methods)
        for ranking, ranks in zip(own, mid_ranks(own), strict=True):
            table[people.index(ranking.annotator), unit : unit + len(methods)] = ranks
    return _ordinal_alpha(table[:, (~np.isnan(table)).sum(axis=0) > 1])


def self_consistency(rankings: Sequence[Ranking]) -> tuple[float, int] | None:
    """Return the mean Spearman's rho between a person's first and second ranking of an item, and the number of pairs.

    Pairs with a ranking that ties everything have no rho and are skipped. None if no pair is left.
    """
    methods, repeated = ranked_methods(rankings), defaultdict(list)
    for ranking in sorted(rankings, key=lambda ranking: ranking.repeat):
        repeated[ranking.annotator, ranking.item].append([ranking.ranks[method] for method in methods])
    pairs = [ranks[:2] for ranks in repeated.values() if len(ranks) > 1]
    rhos = [float(spearmanr(*pair).statistic) for pair in pairs if all(len(set(ranks)) > 1 for ranks in pair)]
    return (float(np.mean(rhos)), len(rhos)) if rhos else None


def win_shares(rankings: Sequence[Ranking]) -> Float[np.ndarray, "method method"]:
    """Return the share of votes that rank the row's method above the column's. Ties count half; the diagonal is 0.5."""
    ranks = rank_table(rankings)
    above = (ranks[:, :, None] < ranks[:, None, :]).mean(axis=0)
    tied = (ranks[:, :, None] == ranks[:, None, :]).mean(axis=0)
    return above + tied / 2


def plackett_luce(rankings: Sequence[Ranking], seed: int = 0) -> dict[str, float]:
    """Return the log worth of each method (mean 0) at the slightly regularized maximum likelihood of the rankings.

    The model has no ties, so each vote is replaced by several orders that break its ties at random, drawn by the seed.
    Sources: Plackett (1975); Luce (1959); computed as by Maystre and Grossglauser (2015), I-LSR.
    """
    methods, ranks, rng = ranked_methods(rankings), rank_table(rankings), np.random.default_rng(seed)
    ties = rng.random((len(ranks), ORDERS_PER_TIE, len(methods)))
    orders = np.lexsort((ties, np.broadcast_to(ranks[:, None], ties.shape))).reshape(-1, len(methods))
    worths = _luce_spectral_ranking(*np.unique(orders, axis=0, return_counts=True))
    return dict(zip(methods, (worths - worths.mean()).tolist(), strict=True))


def _luce_spectral_ranking(
    orders: Int[np.ndarray, "order method"], counts: Int[np.ndarray, "order"]
) -> Float[np.ndarray, "method"]:
    """Return log worths by I-LSR, equal to `choix.ilsr_rankings`, which reads orders one by one and takes seconds."""
    methods = orders.shape[1]
    worths, change = np.zeros(methods), np.inf
    while change > LSR_CHANGE * methods:
        placed = choix.utils.exp_transform(worths)[orders]
        left = placed[:, ::-1].cumsum(axis=1)[:, ::-1]  # the sum of the worths at this place and all later ones
        rates = np.full((methods, methods), LSR_PRIOR)
        for better, worse in combinations(range(methods), 2):
            np.add.at(rates, (orders[:, worse], orders[:, better]), counts / left[:, better])
        np.fill_diagonal(rates, 0)
        before, worths = worths, choix.utils.log_transform(choix.utils.statdist(rates - np.diag(rates.sum(axis=1))))
        change = np.abs(worths - before).sum()
    return worths


def mid_ranks(rankings: Sequence[Ranking]) -> Float[np.ndarray, "ranking method"]:
    """Return the ranks, where ties share the mean of their ranks."""
    return np.asarray(rankdata(rank_table(rankings), axis=1), dtype=float)


def _concordances(rankings: Sequence[Ranking]) -> list[tuple[float, int]]:
    """Return W and the number of people for each item with a defined W."""
    values = []
    for own in _first_by_item(rankings).values():
        ranks = mid_ranks(own)
        people, methods = ranks.shape
        ties = sum((count**3 - count) for row in ranks for count in np.unique(row, return_counts=True)[1].tolist())
        maximum = people**2 * (methods**3 - methods) - people * ties
        if people > 1 and maximum:
            sums = ranks.sum(axis=0)
            values.append((float(12 * ((sums - sums.mean()) ** 2).sum() / maximum), people))
    return values


def _first_by_item(rankings: Sequence[Ranking]) -> Mapping[str, list[Ranking]]:
    items: dict[str, list[Ranking]] = defaultdict(list)
    for ranking in first_rankings(rankings):
        items[ranking.item].append(ranking)
    return items


def _ordinal_alpha(table: Float[np.ndarray, "person unit"]) -> float | None:
    """Return alpha; None if all values are equal. `table` may contain NaN, with at least two values per unit."""
    values = np.unique(table[~np.isnan(table)])
    if len(values) < 2:
        return None
    counts = (table[:, :, None] == values).sum(axis=0)
    weights = counts / (counts.sum(axis=1, keepdims=True) - 1)
    coincidences = counts.T @ weights - np.diag(weights.sum(axis=0))
    totals = coincidences.sum(axis=0)
    places = totals.cumsum() - totals / 2  # the metric: distance between two values in the order of all values
    squared = (places[:, None] - places) ** 2
    expected = totals @ squared @ totals / (totals.sum() - 1)
    return float(1 - (coincidences * squared).sum() / expected)


@dataclass(frozen=True)
class AnswerTimes:
    """Seconds per answer: the median and the quartiles."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class VoteGroup:
    """Votes on one item or by one annotator. `mean_rank`: by method, 1 is best, ties share the mean rank."""

    name: str
    votes: int
    mean_rank: Mapping[str, float]
    seconds: AnswerTimes | None


@dataclass(frozen=True)
class PairForecast:
    """Forecast of the annotators and votes that separate the intervals of two methods.

    The numbers include existing votes; they are None beyond 10,000 annotators and with fewer than two annotators so
    far. `gap`: difference of the skills. `apart`: whether the intervals are separate already.
    """

    better: str
    worse: str
    gap: float
    apart: bool
    annotators: int | None
    votes: int | None


@dataclass(frozen=True)
class ExpectedPower:
    """Expected number of pairs of methods with separate intervals after so many annotators and votes."""

    annotators: int
    votes: int
    pairs: int


@dataclass(frozen=True)
class RankingSummary:
    """Results of a study of rankings. Results that the votes do not determine yet are None.

    A vote is a person's first ranking of an item. Repeats are used for `consistency` and `seconds` only.

    `smat`: ratings in SMaT's setting. `course`: skill of each method after 0, 1, 2, ... votes. `wins`: share of votes
    that rank the row above the column. `concordance`: Kendall's W; `concordance_by_chance`: its value by chance.
    `consistency`: Spearman's rho between first and second rankings, and number of repeated votes.
    """

    votes: int
    annotators: int
    items: int
    methods: tuple[str, ...]
    placebo: str | None
    ratings: tuple[Rating, ...]
    smat: tuple[Rating, ...]
    course: Float[np.ndarray, "vote method"]
    wins: Float[np.ndarray, "method method"]
    worths: Mapping[str, float]
    concordance: float | None
    concordance_by_chance: float | None
    alpha: float | None
    consistency: tuple[float, int] | None
    seconds: AnswerTimes | None
    by_item: tuple[VoteGroup, ...]
    by_annotator: tuple[VoteGroup, ...]

    @property
    def order(self) -> tuple[str, ...]:
        """Methods by skill in `ratings`, the best first."""
        return tuple(rating.method for rating in sorted(self.ratings, key=lambda rating: -rating.skill))

    @property
    def worth_order(self) -> tuple[str, ...]:
        """Methods by Plackett-Luce worth, the best first."""
        return tuple(sorted(self.worths, key=lambda method: -self.worths[method]))

    @property
    def same_order(self) -> bool:
        """Whether the Plackett-Luce model gives the same order as `ratings`."""
        return self.order == self.worth_order

    @property
    def spread(self) -> float:
        """Largest standard deviation of a skill over orders of the same votes."""
        return max(rating.spread for rating in self.ratings)

    @property
    def no_better_than_placebo(self) -> tuple[str, ...] | None:
        """Methods whose interval is not entirely above the placebo's; None without a placebo."""
        if self.placebo is None:
            return None
        intervals = {rating.method: rating.interval for rating in self.ratings}
        floor = intervals.pop(self.placebo)
        return tuple(method for method, interval in intervals.items() if not strictly_better(interval, floor))

    @cached_property
    def needed(self) -> tuple[PairForecast, ...]:
        """Forecast for each pair of methods."""
        return forecast_pairs(self.ratings, self.annotators, self.votes)

    @cached_property
    def power(self) -> tuple[ExpectedPower, ...]:
        """Expected number of separated pairs, by number of votes."""
        return forecast_power(self.ratings, self.annotators, self.votes)

    @property
    def meanings(self) -> dict[str, str]:
        """A plain sentence for each part of the results, in the order in which a page shows them."""
        return {
            "ratings": _describe_ratings(self),
            "smat": "The setting of the SMaT paper, for comparison: its intervals widen with more votes and its skills "
            "depend on the order of the votes.",
            "placebo": _describe_placebo(self),
            "wins": "Share of votes that rank the row's method above the column's; a tie counts as half.",
            "course": "Each method's skill after each vote: if the lines still move, more votes are needed.",
            "spread": f"A different order of the same votes would change a skill by about {self.spread:.2f}.",
            "worths": _describe_worths(self),
            "concordance": _describe_concordance(self),
            "alpha": _describe_alpha(self),
            "consistency": _describe_consistency(self),
            "needed": _describe_forecast(self),
            "seconds": _describe_times(self.seconds),
            "by_item": "Mean rank of each method on each item: 1 is best, and ties share the mean of their ranks.",
            "by_annotator": "Mean rank that each annotator gives each method: 1 is best.",
        }


def summarize_rankings(
    rankings: Sequence[Ranking],
    placebo: str | None = None,
    seed: int = 0,
    orders: int = ORDERS,
    resamples: int = RESAMPLES,
    report: Report = silent,
) -> RankingSummary:
    """Compute all results. Errors: no first ranking, fewer than two methods, or a placebo that is not ranked."""
    first, methods = first_rankings(rankings), ranked_methods(rankings)
    if rankings and not first:
        raise UsageError(f"votes: must include first rankings (repeat 0), got {len(rankings)} repeats only.")
    ratings = rate_methods(first, seed, orders, resamples, report)
    if placebo is not None and placebo not in methods:
        raise unknown("placebo", placebo, methods)
    return RankingSummary(
        votes=len(first),
        annotators=len({ranking.annotator for ranking in first}),
        items=len({ranking.item for ranking in first}),
        methods=methods,
        placebo=placebo,
        ratings=ratings.ratings,
        smat=ratings.smat,
        course=ratings.course,
        wins=win_shares(first),
        worths=plackett_luce(first, seed),
        concordance=kendalls_w(first),
        concordance_by_chance=kendalls_w_by_chance(first),
        alpha=krippendorffs_alpha(first),
        consistency=self_consistency(rankings),
        seconds=answer_times([ranking.seconds for ranking in rankings]),
        by_item=_group_votes(first, lambda ranking: ranking.item),
        by_annotator=_group_votes(first, lambda ranking: ranking.annotator),
    )


def answer_times(seconds: Sequence[int | float]) -> AnswerTimes | None:
    """Return the quartiles of the positive times; None if there are none."""
    positive = [each for each in seconds if each > 0]
    if not positive:
        return None
    low, median, high = np.percentile(positive, [25, 50, 75]).tolist()
    return AnswerTimes(median, low, high)


def _group_votes(rankings: Sequence[Ranking], name: Callable[[Ranking], str]) -> tuple[VoteGroup, ...]:
    groups: dict[str, list[Ranking]] = defaultdict(list)
    for ranking in rankings:
        groups[name(ranking)].append(ranking)
    return tuple(
        VoteGroup(
            name=group,
            votes=len(own),
            mean_rank=dict(zip(ranked_methods(own), mid_ranks(own).mean(axis=0).tolist(), strict=True)),
            seconds=answer_times([ranking.seconds for ranking in own]),
        )
        for group, own in sorted(groups.items())
    )


def forecast_pairs(ratings: Sequence[Rating], annotators: int, votes: int) -> tuple[PairForecast, ...]:
    """Forecast the annotators and votes that separate each pair of methods.

    Assumes that gaps and preferences stay the same and that future annotators give as many votes as past ones.
    Intervals then shrink in proportion to Student's t / sqrt(annotators).
    """
    pairs = len(ratings) * (len(ratings) - 1) // 2

    def is_apart(gap: float, reach: float, people: int) -> bool:
        quantiles = student_quantile(people, pairs) / student_quantile(annotators, pairs)
        return gap > reach * (quantiles * math.sqrt(annotators / people))

    forecasts = []
    for better, worse in combinations(sorted(ratings, key=lambda rating: -rating.skill), 2):
        gap = better.skill - worse.skill
        reach = (better.interval[1] - better.interval[0] + worse.interval[1] - worse.interval[0]) / 2
        people = None
        if annotators >= MIN_PEOPLE and is_apart(gap, reach, MAX_PEOPLE):
            people = MIN_PEOPLE + bisect_left(range(MIN_PEOPLE, MAX_PEOPLE), True, key=partial(is_apart, gap, reach))
        all_votes = None if people is None else _expected_votes(people, annotators, votes)
        forecasts.append(PairForecast(better.method, worse.method, gap, gap > reach, people, all_votes))
    return tuple(forecasts)


def forecast_power(ratings: Sequence[Rating], annotators: int, votes: int) -> tuple[ExpectedPower, ...]:
    """Forecast the number of separated pairs from two annotators to at least four times the current number.

    The numbers of annotators that separate a pair are included, and the range reaches the next such number. Empty if
    there are fewer than two annotators.
    """
    if annotators < MIN_PEOPLE:
        return ()
    forecasts = forecast_pairs(ratings, annotators, votes)
    needed = [pair.annotators for pair in forecasts if pair.annotators is not None]
    following = [pair.annotators for pair in forecasts if pair.annotators is not None and not pair.apart]
    maximum = max(4 * annotators, 8, min(following, default=0))
    steps = range(POWER_STEPS + 1)
    people = {round(MIN_PEOPLE * (maximum / MIN_PEOPLE) ** (step / POWER_STEPS)) for step in steps}
    people |= {number for number in needed if number <= maximum}
    return tuple(
        ExpectedPower(n, _expected_votes(n, annotators, votes), sum(number <= n for number in needed))
        for n in sorted(people)
    )


def _expected_votes(people: int, annotators: int, votes: int) -> int:
    """Return the votes of `people` annotators if each gives as many as current annotators on average."""
    return math.ceil(people * votes / annotators)


def _describe_ratings(summary: RankingSummary) -> str:
    differ = any(rating.rank > 1 for rating in summary.ratings)
    what = "Methods whose intervals do not overlap differ" if differ else "No two methods can be separated yet"
    population = "other people" if summary.annotators > 1 else "other votes of this one person"
    return (
        f"{what}; the intervals cover at least 95% for {population}, and at most 5% of studies of equally good methods "
        "would separate any two."
    )


def _describe_placebo(summary: RankingSummary) -> str:
    doubtful = summary.no_better_than_placebo
    if doubtful is None:
        return "The study has no placebo, so it cannot show whether a method is better than chance."
    if not doubtful:
        return f"Every method is rated above the placebo, {summary.placebo}."
    return f"Not shown to be better than the placebo, {summary.placebo}: {join_names(doubtful)}."


def _describe_worths(summary: RankingSummary) -> str:
    if summary.same_order:
        return "The Plackett-Luce model of rankings gives the same order."
    return (
        f"The Plackett-Luce model of rankings gives a different order, {', '.join(summary.worth_order)}: "
        "do not rely on the order of methods whose intervals overlap."
    )


def _describe_concordance(summary: RankingSummary) -> str:
    value, chance = summary.concordance, summary.concordance_by_chance
    if value is None or chance is None:
        return "Agreement on an item is unknown: no item was ranked by two people."
    beyond = (value - chance) / (1 - chance)
    return f"People {_agree(beyond)} on an item: W is 1 if all rankings are equal, and about {chance:.2f} by chance."


def _describe_alpha(summary: RankingSummary) -> str:
    if summary.alpha is None:
        return "Agreement beyond chance is unknown: no item has two rankings with different ranks."
    if summary.alpha < 0:
        return "People agree less than by chance: 1 is perfect agreement, 0 is chance."
    return f"Beyond chance, people {_agree(summary.alpha)}: 1 is perfect agreement, 0 is chance."


def _describe_consistency(summary: RankingSummary) -> str:
    if summary.consistency is None:
        return "Self-consistency is unknown: no item was ranked twice by the same person."
    rho, pairs = summary.consistency
    repeats = "one repeated ranking" if pairs == 1 else f"{pairs} repeated rankings"
    return f"People {_agree(rho)} with themselves in {repeats}: 1 is the same order, 0 is chance."


def _describe_forecast(summary: RankingSummary) -> str:
    open_pairs = [pair for pair in summary.needed if not pair.apart]
    if not open_pairs:
        return "All pairs of methods are separated already."
    if not summary.power:
        return "A forecast needs at least two annotators."
    reachable = [pair.votes for pair in open_pairs if pair.votes is not None]
    if not reachable:
        return "The remaining methods are too close to be separated by a study of a usual size."
    return f"If future votes are like these, about {min(reachable):,} votes in total separate the next pair of methods."


def _describe_times(times: AnswerTimes | None) -> str:
    if times is None:
        return "Response times are unknown."
    return f"Half of the votes took {times.low:.0f} to {times.high:.0f} seconds; the median is {times.median:.0f}."


def _agree(value: float) -> str:
    bounds = (STRONG, MODERATE, SLIGHT)
    how = ("strongly", "to some extent", "a little", "hardly")[sum(value < bound for bound in bounds)]
    return f"agree {how}" if how != "hardly" else "hardly agree"
