"""Intervals of shares and of their differences, where some answers are one person's and so resemble each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from engine.study.ratings.intervals import ERROR, student
from engine.study.ratings.partial_order import Interval

RESAMPLES = 2000
SEED = 0
"""The bootstrap's own: the same answers have the same intervals."""

Counts = Float[np.ndarray, "person condition"]


@dataclass(frozen=True)
class Ratios:
    """Sums over sums by condition, and again over resampled people; NaN where a condition has nothing.

    `people`: how many a condition has.
    """

    value: Float[np.ndarray, "condition"]
    count: Float[np.ndarray, "condition"]
    again: Float[np.ndarray, "resample condition"]
    people: tuple[int, ...]

    def error(self, one: int) -> float:
        return _spread(self.again[:, one], self.people[one])

    def error_of_gain(self, one: int, base: int) -> float:
        return _spread(self.again[:, one] - self.again[:, base], min(self.people[one], self.people[base]))


def ratios(sums: Counts, counts: Counts) -> Ratios:
    """Pooled over people; each person's answers come and go together."""
    people = len(counts)
    drawn = np.random.default_rng(SEED).multinomial(people, np.full(people, 1 / people), RESAMPLES).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        value, again = sums.sum(0) / counts.sum(0), (drawn @ sums) / (drawn @ counts)
    return Ratios(value, counts.sum(0), again, tuple((counts > 0).sum(0).tolist()))


def wilson(share: float, count: int | float, quantile: float) -> Interval:
    """The score interval of a share of `count` answers.

    Source: Wilson (1927); Brown, Cai and DasGupta (2001), equation 4.
    """
    push = quantile**2 / count
    centre = (share + push / 2) / (1 + push)
    reach = quantile / (1 + push) * float(np.sqrt(share * (1 - share) / count + push / (4 * count)))
    return max(0.0, centre - reach), min(1.0, centre + reach)


def share_interval(found: Ratios, one: int) -> Interval:
    """95 % for other people on the same items, or of one person's other answers.

    Wilson's, of as many independent answers as these are worth: their number over the design effect, which is how many
    times the variance over resampled people exceeds that of independent answers. It is not taken for less than 1, for
    few people may agree by luck. Student's t stands for the normal quantile, since few people tell little of it.
    Source: Dean and Pagano (2015), Journal of Survey Statistics and Methodology 3.
    """
    share, count = float(found.value[one]), float(found.count[one])
    if found.people[one] < 2:
        return wilson(share, count, _normal(1))
    alone = share * (1 - share) / count
    effect = max(1.0, found.error(one) ** 2 / alone) if alone > 0 else 1.0
    return wilson(share, count / effect, student(found.people[one], 1))


def gain_interval(found: Ratios, one: int, base: int, comparisons: int) -> Interval:
    """The difference of two shares; all `comparisons` of a study hold together in 95 % (Bonferroni).

    Agresti and Caffo's for independent answers, which adds a right and a wrong one to each share. Of several people the
    standard error is that over resampled people if it is larger, with Student's t: what a person is better at in both
    makes no difference, and how differently an explanation helps people makes one.
    Source: Agresti and Caffo (2000), The American Statistician 54.
    """
    counts = found.count[[one, base]] + 2
    shares = (found.value[[one, base]] * (counts - 2) + 1) / counts
    people = min(found.people[one], found.people[base])
    error = float(np.sqrt((shares * (1 - shares) / counts).sum()))
    quantile = _normal(comparisons)
    if people > 1:
        error, quantile = max(error, found.error_of_gain(one, base)), student(people, comparisons)
    middle, reach = float(shares[0] - shares[1]), quantile * error
    return max(-1.0, middle - reach), min(1.0, middle + reach)


def mean_gain_interval(found: Ratios, one: int, base: int, comparisons: int, scatter: float) -> Interval:
    """The difference of two means by Student's t; all hold together as those of shares do.

    scatter: the standard deviation of single answers. Few people may agree by luck, so the standard error is not taken
    for less than that of independent answers.
    """
    gain, people = float(found.value[one] - found.value[base]), min(found.people[one], found.people[base])
    alone = scatter * float(np.sqrt((1 / found.count[[one, base]]).sum()))
    quantile = student(people, comparisons) if people > 1 else _normal(comparisons)
    reach = quantile * max(alone, found.error_of_gain(one, base) if people > 1 else 0.0)
    return gain - reach, gain + reach


def _spread(again: Float[np.ndarray, "resample"], people: int) -> float:
    """A standard error; the spread over resamples falls short of it by the factor that is taken back here."""
    known = again[np.isfinite(again)]
    return float(known.std() * np.sqrt(people / max(people - 1, 1))) if len(known) else 0.0


def _normal(comparisons: int) -> float:
    from scipy.special import ndtri

    return float(ndtri(1 - ERROR / (2 * comparisons)))
