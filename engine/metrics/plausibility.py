"""How well a map finds what people marked: the marks are classes, the scores say how sure the map is of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from engine.errors import UsageError, not_allowed
from engine.metrics.agreement import average_ranks
from engine.metrics.marks import undecided
from engine.metrics.ranking import ranking

Scores = Float[np.ndarray, "unit"]
Marks = Bool[np.ndarray, "unit"]

K = 5
"""The scores that `recall_at_k` looks at, unless it is told otherwise."""


def roc_auc(scores: Scores, marks: Marks) -> float:
    """How often a marked unit has a higher score than an unmarked one, equal scores counting half; from 0 to 1.

    By ranks (Mann and Whitney, 1947), which is the area under the ROC curve (Hanley and McNeil, 1982).
    """
    _check(marks)
    found = int(marks.sum())
    ranks = average_ranks(scores)[marks].sum()
    return float((ranks - found * (found + 1) / 2) / (found * (len(marks) - found)))


def average_precision(scores: Scores, marks: Marks) -> float:
    """Precision at each threshold, weighted by the recall that it adds; from 0 to 1. Equal scores share a threshold."""
    _check(marks)
    levels, place = np.unique(-scores, return_inverse=True)
    hits = np.cumsum(np.bincount(place, weights=marks, minlength=len(levels)))
    precision = hits / np.cumsum(np.bincount(place, minlength=len(levels)))
    return float((np.diff(hits, prepend=0) * precision).sum() / marks.sum())


def token_f1(scores: Scores, marks: Marks, share: float, seed: Sequence[int] = (0,)) -> float:
    """F1 of max(1, round(share n)) units with the highest scores, from 0 to 1.

    `share`: of the units of an average example of the data set that are marked (DeYoung et al., 2020, section 5).
    """
    _check(marks)
    if not 0 < share <= 1:
        raise not_allowed("share", "more than 0 and at most 1", share)
    chosen = max(1, round(share * len(marks)))
    hits = marks[ranking(scores, seed)[:chosen]].sum()
    return float(2 * hits / (chosen + marks.sum()))


def recall_at_k(scores: Scores, marks: Marks, k: int = K, seed: Sequence[int] = (0,)) -> float:
    """The share of the marked units among the k highest scores, from 0 to 1."""
    _check(marks)
    if k < 1:
        raise not_allowed("k", "a whole number of at least 1", k)
    return float(marks[ranking(scores, seed)[:k]].sum() / marks.sum())


def _check(marks: Marks) -> None:
    if reason := undecided(marks):
        raise UsageError(f"marks: {reason}, so that no map can be judged. Leave the example out.")
