"""Agreement of people with each other and with themselves, and pairwise and Plackett-Luce views of their rankings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import choix
import numpy as np
from jaxtyping import Float
from scipy.stats import rankdata, spearmanr

from engine.study.rankings import Ranking, first_rankings, rank_table, ranked_methods

ORDERS_PER_TIE = 10


def kendalls_w(rankings: Sequence[Ranking]) -> float | None:
    """Kendall's coefficient of concordance, corrected for ties: the mean over items, from 0 to 1.

    1: all who ranked an item rank it alike; `kendalls_w_by_chance`: they agree as by chance. Items that fewer than two
    people ranked, or on which everybody ties everything, are left out; None if no item is left. First rankings only.
    Source: Kendall and Babington Smith (1939); ties as in Siegel and Castellan (1988), section 9.6.
    """
    values = [value for value, _ in _concordances(rankings)]
    return float(np.mean(values)) if values else None


def kendalls_w_by_chance(rankings: Sequence[Ranking]) -> float | None:
    """Expected Kendall's W of random rankings: about 1 / people on an item, the mean over items.

    It is not 0: of two people who rank at random it is 0.5 on average.
    """
    values = [1 / people for _, people in _concordances(rankings)]
    return float(np.mean(values)) if values else None


def krippendorffs_alpha(rankings: Sequence[Ranking]) -> float | None:
    """Krippendorff's alpha for ordinal data; a unit is a method on an item. 1: perfect, 0: as by chance, below: worse.

    Ties share the mean of their places, as in W; otherwise people who tie everything would agree on what is best.
    None where it is undefined: fewer than two people, no item that two of them ranked, or no two different ranks.
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
    """Spearman's rho between a person's first and second ranking of an item: the mean, and the number of pairs.

    A ranking that ties everything has no order and is left out. None if nothing was repeated.
    """
    methods, repeated = ranked_methods(rankings), defaultdict(list)
    for ranking in sorted(rankings, key=lambda ranking: ranking.repeat):
        repeated[ranking.annotator, ranking.item].append([ranking.ranks[method] for method in methods])
    pairs = [ranks[:2] for ranks in repeated.values() if len(ranks) > 1]
    rhos = [float(spearmanr(*pair).statistic) for pair in pairs if all(len(set(ranks)) > 1 for ranks in pair)]
    return (float(np.mean(rhos)), len(rhos)) if rhos else None


def win_shares(rankings: Sequence[Ranking]) -> Float[np.ndarray, "method method"]:
    """Share of votes that rank the row's method above the column's; a tie is half a win. 0.5 with itself."""
    ranks = rank_table(rankings)
    above = (ranks[:, :, None] < ranks[:, None, :]).mean(axis=0)
    tied = (ranks[:, :, None] == ranks[:, None, :]).mean(axis=0)
    return above + tied / 2


def plackett_luce(rankings: Sequence[Ranking], seed: int = 0) -> dict[str, float]:
    """Log worth of each method, with mean 0: the maximum of the likelihood of the rankings, slightly regularized.

    The model has no ties: a vote with ties counts as several orders that agree with it, drawn by the seed.
    Sources: Plackett (1975); Luce (1959); computed as by Maystre and Grossglauser (2015), I-LSR.
    """
    methods, rng = ranked_methods(rankings), np.random.default_rng(seed)
    orders = [
        tuple(np.lexsort((rng.random(len(ranks)), ranks)).tolist())
        for ranks in rank_table(rankings)
        for _ in range(ORDERS_PER_TIE)
    ]
    worths = choix.ilsr_rankings(len(methods), orders, alpha=1e-3)
    return dict(zip(methods, (worths - worths.mean()).tolist(), strict=True))


def mid_ranks(rankings: Sequence[Ranking]) -> Float[np.ndarray, "ranking method"]:
    """Ranks, where ties share the mean of their places."""
    return np.asarray(rankdata(rank_table(rankings), axis=1), dtype=float)


def _concordances(rankings: Sequence[Ranking]) -> list[tuple[float, int]]:
    """W and the number of people of each item that has a W."""
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
    """Alpha of values that may be NaN, at least two in each unit; None unless two values differ."""
    values = np.unique(table[~np.isnan(table)])
    if len(values) < 2:
        return None
    counts = (table[:, :, None] == values).sum(axis=0)
    weights = counts / (counts.sum(axis=1, keepdims=True) - 1)
    coincidences = counts.T @ weights - np.diag(weights.sum(axis=0))
    totals = coincidences.sum(axis=0)
    places = totals.cumsum() - totals / 2  # the metric of two values is the distance of their places in the order
    squared = (places[:, None] - places) ** 2
    expected = totals @ squared @ totals / (totals.sum() - 1)
    return float(1 - (coincidences * squared).sum() / expected)
