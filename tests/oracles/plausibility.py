"""Scores against marks once more, pair by pair and threshold by threshold."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence


def auc_by_pairs(scores: Sequence[float], marks: Sequence[bool]) -> float:
    """The share of (marked, unmarked) pairs in the right order; ties are half right."""
    marked = [score for score, mark in zip(scores, marks, strict=True) if mark]
    others = [score for score, mark in zip(scores, marks, strict=True) if not mark]
    right = [1.0 if a > b else 0.5 if a == b else 0.0 for a, b in itertools.product(marked, others)]
    return sum(right) / len(right)


def precision_by_thresholds(scores: Sequence[float], marks: Sequence[bool]) -> float:
    """Sum over thresholds of precision times what recall gains."""
    total, before, recall_before = sum(marks), 0.0, 0.0
    for threshold in sorted(set(scores), reverse=True):
        above = [mark for score, mark in zip(scores, marks, strict=True) if score >= threshold]
        recall = sum(above) / total
        before += (recall - recall_before) * sum(above) / len(above)
        recall_before = recall
    return before


def f1_of(chosen: set[int], marked: set[int]) -> float:
    """From precision and recall."""
    hits = len(chosen & marked)
    precision, recall = hits / len(chosen), hits / len(marked)
    return 0.0 if hits == 0 else 2 * precision * recall / (precision + recall)


def entropy_of_shares(scores: Sequence[float]) -> float:
    """- sum p log p, a share at a time."""
    shares = [abs(score) / sum(map(abs, scores)) for score in scores]
    return -sum(p * math.log(p) for p in shares if p > 0)
