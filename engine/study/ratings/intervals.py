"""Intervals that may be compared: where two do not overlap, the methods differ, for all pairs of a study at once."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from jaxtyping import Float

from engine.study.ratings.partial_order import Interval

ERROR = 0.05
"""Share of studies of equal methods that may tell any two of them apart."""

Errors = Float[np.ndarray, "method method"]
"""Standard errors: of a method's skill on the diagonal, of the difference of two skills elsewhere."""


def comparable(skills: Float[np.ndarray, "method"], errors: Errors, pieces: int) -> list[Interval]:
    """At least 95 % for each method alone, and at most 5 % that any two of equal methods do not overlap.

    Plain 95 % intervals do not promise the second: skills are relative to each other, and a study compares many pairs.
    So all are stretched by one factor, the least for which two that do not overlap differ by more than Student's t
    allows at 5 % divided by the number of pairs (Bonferroni), with `pieces` of evidence less one degrees of freedom.
    """
    single, paired = student(pieces, 1), student(pieces, len(skills) * (len(skills) - 1) // 2)
    own = np.diag(errors)
    pairs = [(i, j) for i, j in combinations(range(len(skills)), 2) if own[i] + own[j] > 0]
    stretch = max([single, *(paired * float(errors[i, j] / (own[i] + own[j])) for i, j in pairs)])
    reach = stretch * own
    return list(zip((skills - reach).tolist(), (skills + reach).tolist(), strict=True))


def student(pieces: int, pairs: int) -> float:
    """The two-sided 5 % quantile of Student's t for that many comparisons at once."""
    from scipy.stats import t

    return float(t.ppf(1 - ERROR / (2 * pairs), max(pieces - 1, 1)))


def errors_of(again: Float[np.ndarray, "resample method"]) -> Errors:
    """Standard errors as the spread over resamples."""
    gaps = again[:, :, None] - again[:, None, :]
    errors = gaps.std(axis=0)
    np.fill_diagonal(errors, again.std(axis=0))
    return errors
