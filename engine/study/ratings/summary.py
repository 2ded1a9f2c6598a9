"""All that a study found, from its votes alone, and what each number means."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from engine.errors import UsageError, unknown
from engine.study.ratings.agreement import kendalls_w, krippendorffs_alpha, self_consistency, w_by_chance
from engine.study.ratings.headline import ORDERS, RESAMPLES, Rating, standing
from engine.study.ratings.matches import Match, first_looks, methods_of, rank_table
from engine.study.ratings.meaning import meanings
from engine.study.ratings.partial_order import strictly_better
from engine.study.ratings.power import Expected, Needed, expected, votes_needed
from engine.study.ratings.wins import plackett_luce, win_shares


@dataclass(frozen=True)
class Times:
    """Seconds a vote: the median and the middle half."""

    median: float
    low: float
    high: float


@dataclass(frozen=True)
class Group:
    """The votes on one item, or of one annotator. `mean_rank`: by method, 1 is best, ties share the mean place."""

    name: str
    votes: int
    mean_rank: Mapping[str, float]
    seconds: Times | None


@dataclass(frozen=True)
class Summary:
    """The results of a study. What votes cannot tell yet is None.

    A vote is a person's first look at an item: repeats count for `consistency` alone, and `seconds` is over all looks.

    `course`: each method's skill after 0, 1, 2, ... votes. `wins`: share of votes that rank the row above the column.
    `concordance`: Kendall's W, beside what chance would give. `consistency`: Spearman's rho of first and second looks,
    and over how many repeated votes.
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
    seconds: Times | None
    by_item: tuple[Group, ...]
    by_annotator: tuple[Group, ...]

    @property
    def order(self) -> tuple[str, ...]:
        """Methods by headline skill, the best first."""
        return tuple(rating.method for rating in sorted(self.ratings, key=lambda rating: -rating.skill))

    @property
    def worth_order(self) -> tuple[str, ...]:
        """Methods by Plackett-Luce worth, the best first."""
        return tuple(sorted(self.worths, key=lambda method: -self.worths[method]))

    @property
    def same_order(self) -> bool:
        """Whether Plackett and Luce's model confirms the headline's order."""
        return self.order == self.worth_order

    @property
    def spread(self) -> float:
        """The largest standard deviation of a skill over orders of the same votes."""
        return max(rating.spread for rating in self.ratings)

    @property
    def no_better_than_placebo(self) -> tuple[str, ...] | None:
        """Methods whose interval is not above the placebo's; None without a placebo."""
        if self.placebo is None:
            return None
        intervals = {rating.method: rating.interval for rating in self.ratings}
        floor = intervals.pop(self.placebo)
        return tuple(method for method, interval in intervals.items() if not strictly_better(interval, floor))

    @cached_property
    def needed(self) -> tuple[Needed, ...]:
        """Votes that each pair of methods needs to be told apart."""
        return votes_needed(self.ratings, self.annotators, self.votes)

    @cached_property
    def power(self) -> tuple[Expected, ...]:
        """Pairs that are expected to be told apart, by number of votes."""
        return expected(self.ratings, self.annotators, self.votes)

    @property
    def meanings(self) -> dict[str, str]:
        """A plain sentence for each part."""
        return meanings(self)


def summary(
    matches: Sequence[Match],
    placebo: str | None = None,
    seed: int = 0,
    orders: int = ORDERS,
    resamples: int = RESAMPLES,
) -> Summary:
    """Everything that votes say. Errors: no first look, fewer than two methods, a placebo that nobody ranked."""
    first, methods = first_looks(matches), methods_of(matches)
    if matches and not first:
        raise UsageError(f"votes: must hold a first look, got {len(matches)} repeats alone. Write repeat 0 for it.")
    found = standing(first, seed, orders, resamples)
    if placebo is not None and placebo not in methods:
        raise unknown("placebo", placebo, methods)
    return Summary(
        votes=len(first),
        annotators=len({match.annotator for match in first}),
        items=len({match.item for match in first}),
        methods=methods,
        placebo=placebo,
        ratings=found.ratings,
        smat=found.smat,
        course=found.course,
        wins=win_shares(first),
        worths=plackett_luce(first, seed),
        concordance=kendalls_w(first),
        concordance_by_chance=w_by_chance(first),
        alpha=krippendorffs_alpha(first),
        consistency=self_consistency(matches),
        seconds=times(matches),
        by_item=_groups(first, lambda match: match.item),
        by_annotator=_groups(first, lambda match: match.annotator),
    )


def times(matches: Sequence[Match]) -> Times | None:
    return times_of([match.seconds for match in matches])


def times_of(seconds: Sequence[int | float]) -> Times | None:
    """Of the votes whose time is known."""
    known = [each for each in seconds if each > 0]
    if not known:
        return None
    low, median, high = np.percentile(known, [25, 50, 75]).tolist()
    return Times(median, low, high)


def _groups(matches: Sequence[Match], name_of: Callable[[Match], str]) -> tuple[Group, ...]:
    held: dict[str, list[Match]] = defaultdict(list)
    for match in matches:
        held[name_of(match)].append(match)
    return tuple(Group(name, len(own), _mean_rank(own), times(own)) for name, own in sorted(held.items()))


def _mean_rank(matches: Sequence[Match]) -> dict[str, float]:
    from scipy.stats import rankdata

    means = np.asarray(rankdata(rank_table(matches), axis=1)).mean(axis=0)
    return dict(zip(methods_of(matches), means.tolist(), strict=True))
