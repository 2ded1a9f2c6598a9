"""The metrics that need nothing but maps and marks: rows of each example."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from engine.evaluation.maps import Maps
from engine.evaluation.notes import Notes
from engine.evaluation.plan import Plan
from engine.evaluation.reasons import SAME
from engine.metrics.agreement import Agreement, agreement
from engine.metrics.catalog import METRICS, SIDES, Metric, Needs
from engine.metrics.plausibility import (
    Marks,
    average_precision,
    recall_at_k,
    roc_auc,
    skip_reason,
    token_f1,
    truth_mass,
    truth_scores,
)
from engine.metrics.ranking import is_constant
from engine.metrics.sensitivity import FLAT, complexity

NO_ORDER = "one of the two maps has no order: its scores are all equal"
TRUTH = {"gt_overlap": "exact", "gt_share": "overlap", "mean_rank": "mean_rank", "mean_rank_pct": "mean_rank_pct"}
"""The metrics by truth, and what they are called in `engine.metrics.plausibility`."""
ORDERED: tuple[Needs, ...] = ("removal", "marks", "pair")
"""What metrics need that look at the order of the units,"""
UNORDERED = ("truth_mass",)
"""and those of them that do not."""
AGREEMENT = {"rank_spearman": "spearman", "rank_top_k": "top_k"}

Scores = Float[np.ndarray, "unit"]


def judge(plan: Plan, maps: Sequence[Maps], notes: Notes) -> None:
    """Notes the values of all examples of one model, all at once: F1 takes as many units as are usually marked."""
    shares = {side: _usual_share(maps, side) for side in ("", *SIDES)}
    for one in maps:
        for id in (*plan.needs("nothing"), *plan.needs("marks"), *plan.needs("pair")):
            for method in plan.company:
                notes.note(one.index, method, id, _value(plan, one, method, METRICS[id], shares))
        for id in plan.needs("others"):
            for (a, b), found in _agreements(one, AGREEMENT[id], plan.company):
                notes.note(one.index, a, id, found, against=b)


def withdraw_orders(plan: Plan, maps: Sequence[Maps], notes: Notes) -> None:
    """Takes back what was measured of an order where a method gives none on any example, as `gradient` where LayerNorm
    follows the embeddings: it would be that of chance, which may be the best by luck.

    A single map without an order is judged by a random one, as its method told its reader nothing there.
    """
    ordered = [id for what in ORDERED for id in plan.needs(what) if id not in UNORDERED]
    for method in plan.company:
        found = [one.scores[method] for one in maps if len(one.scores.get(method, ())) > 1]
        if found and all(map(is_constant, found)):
            notes.withdraw(method, ordered, SAME)


def _value(plan: Plan, one: Maps, method: str, metric: Metric, shares: Mapping[str, float]) -> float | str:
    """The metric's value, or why it has none."""
    if method in one.failed:
        return one.failed[method]
    if metric.needs == "nothing":
        return _alone(one, method, metric.id)
    chosen = of_side(one, metric.side)
    if isinstance(chosen, str):
        return chosen
    marks, inside = chosen
    scores = one.scores[method][inside]
    if metric.id == "truth_mass":
        mass = truth_mass(scores, marks)
        return FLAT if mass is None else mass
    if metric.id in TRUTH:
        found: Any = truth_scores(scores, marks, one.ties)
        return float(getattr(found, TRUTH[metric.id]))
    return _plausible(metric.id.removesuffix(f"_{metric.side}"), scores, marks, one.ties, plan.k, shares[metric.side])


def _alone(one: Maps, method: str, id: str) -> float | str:
    evaluations, seconds = one.cost[method]
    if id == "complexity":
        found = complexity(one.scores[method])
        return FLAT if found is None else found
    return {"evaluations": float(evaluations), "seconds": seconds}[id]


def _plausible(id: str, scores: Scores, marks: Marks, ties: Sequence[int], k: int, share: float) -> float:
    if id == "plausibility_auc":
        return roc_auc(scores, marks)
    if id == "plausibility_ap":
        return average_precision(scores, marks)
    return token_f1(scores, marks, share, ties) if id == "token_f1" else recall_at_k(scores, marks, k, ties)


def of_side(one: Maps, side: str = "") -> tuple[Marks, np.ndarray] | str:
    """The marks of both texts or of one, and which units those are; or why nothing can be judged by them.

    An example in which nothing is marked at all is no example of a mistake, in neither text; that is said as such.
    """
    if isinstance(one.marks, str):
        return one.marks
    inside = np.ones(len(one.marks), dtype=bool) if not side else one.segments == SIDES[side]
    marks = one.marks[inside]
    why = skip_reason(marks)
    return (marks, inside) if why is None else why if not side or not one.marks.any() else f"{why} in the {side} text"


def _usual_share(maps: Sequence[Maps], side: str) -> float:
    """The mean over examples of the share of units that are marked, of those that can be judged."""
    found = [chosen[0].mean() for one in maps if not isinstance(chosen := of_side(one, side), str)]
    return float(np.mean(found)) if found else 1.0


def _agreements(one: Maps, measure: str, methods: Sequence[str]) -> Iterator[tuple[tuple[str, str], float | str]]:
    maps = {method: one.scores[method] for method in methods if method in one.scores}
    found = agreement(maps, measure) if maps else None
    for a, b in itertools.combinations(methods, 2):
        failed = one.failed.get(a) or one.failed.get(b)
        yield (a, b), failed or _pair(found, a, b)


def _pair(found: Agreement | None, a: str, b: str) -> float | str:
    if found is None:
        return NO_ORDER
    value = float(found.values[found.methods.index(a), found.methods.index(b)])
    return NO_ORDER if np.isnan(value) else value
