"""Do people agree with each other, and with themselves?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from engine.study.ratings.matches import Match, first_looks, methods_of


def kendalls_w(matches: Sequence[Match]) -> float | None:
    """Kendall's coefficient of concordance with its correction for ties, the mean over items, from 0 to 1.

    1: all who saw an item rank it alike; `w_by_chance`: they agree as by chance. Items that fewer than two people
    ranked, or on which everybody ties everything, say nothing; None where no item says anything. First looks alone
    count.
    Source: Kendall and Babington Smith (1939); ties as in Siegel and Castellan (1988), section 9.6.
    """
    told = [value for value, _ in _told(matches)]
    return float(np.mean(told)) if told else None


def w_by_chance(matches: Sequence[Match]) -> float | None:
    """About what Kendall's W would be if all ranked by chance: 1 / people on an item, the mean over items.

    W is not 0 then: of two people who rank by chance it is 0.5 in the mean.
    """
    told = [1 / people for _, people in _told(matches)]
    return float(np.mean(told)) if told else None


def krippendorffs_alpha(matches: Sequence[Match]) -> float | None:
    """Krippendorff's alpha for ordinal data; a unit is a method on an item. 1 perfect, 0 as by chance, less is worse.

    Ties share the mean of their places, as in W: else people who tie everything would agree on what is best.
    None where it is not defined: fewer than two people, no item that two of them saw, or no two different ranks.
    Source: Krippendorff (2011), Computing Krippendorff's alpha-reliability, section D with the ordinal metric.
    """
    methods, people = methods_of(matches), sorted({match.annotator for match in matches})
    table = np.full((len(people), len(_by_item(matches)) * len(methods)), np.nan)
    for item, votes in enumerate(_by_item(matches).values()):
        unit = item * len(methods)
        for vote, ranks in zip(votes, _mid_ranks(votes, methods), strict=True):
            table[people.index(vote.annotator), unit : unit + len(methods)] = ranks
    return _ordinal_alpha(table[:, (~np.isnan(table)).sum(axis=0) > 1])


def self_consistency(matches: Sequence[Match]) -> tuple[float, int] | None:
    """Spearman's rho between a person's first and second ranking of one item: the mean, and over how many pairs.

    A ranking that ties everything has no order and is left out. None where nothing was repeated.
    """
    methods, seen = methods_of(matches), defaultdict(list)
    for match in sorted(matches, key=lambda m: m.repeat):
        seen[match.annotator, match.item].append(match)
    pairs = [_mid_ranks(votes[:2], methods) for votes in seen.values() if len(votes) > 1]
    told = [float(np.corrcoef(pair)[0, 1]) for pair in pairs if pair.std(axis=1).all()]
    return (float(np.mean(told)), len(told)) if told else None


def _told(matches: Sequence[Match]) -> list[tuple[float, int]]:
    """W and the number of people for each item that says anything."""
    methods = methods_of(matches)
    seen = [votes for votes in _by_item(matches).values() if len(votes) > 1]
    found = [(_of_item(_mid_ranks(votes, methods)), len(votes)) for votes in seen]
    return [(value, people) for value, people in found if value is not None]


def _by_item(matches: Sequence[Match]) -> Mapping[str, list[Match]]:
    """Each person's first look at each item."""
    items: dict[str, list[Match]] = defaultdict(list)
    for match in first_looks(matches):
        items[match.item].append(match)
    return items


def _mid_ranks(votes: Sequence[Match], methods: Sequence[str]) -> Float[np.ndarray, "vote method"]:
    from scipy.stats import rankdata

    table = np.array([[vote.ranks[method] for method in methods] for vote in votes], dtype=float)
    return np.asarray(rankdata(table, axis=1), dtype=float)


def _of_item(ranks: Float[np.ndarray, "vote method"]) -> float | None:
    people, methods = ranks.shape
    ties = sum((count**3 - count) for row in ranks for count in np.unique(row, return_counts=True)[1].tolist())
    most = people**2 * (methods**3 - methods) - people * ties
    if most == 0:
        return None
    sums = ranks.sum(axis=0)
    return float(12 * ((sums - sums.mean()) ** 2).sum() / most)


def _ordinal_alpha(table: Float[np.ndarray, "person unit"]) -> float | None:
    """Alpha of values that may be NaN, of which every unit has at least two; None unless two differ."""
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
