"""Scores as Quantus has them: the structure, by hand, and two of its metrics computed once more on the same maps."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from engine.evaluation.quantus_export import quantus_scores
from engine.evaluation.result import ModelEvaluation
from engine.metrics.plausibility import truth_mass
from engine.metrics.results import MetricKey, MetricRow, MetricSkip
from engine.metrics.sensitivity import complexity


def key(metric: str, method: str = "lime", against: str = "", percent: int | None = None) -> MetricKey:
    return MetricKey("m", "d", method, metric, against, percent)


def result(rows: list[MetricRow], skips: list[MetricSkip]) -> ModelEvaluation:
    return ModelEvaluation("m", "d", tuple(rows), tuple(skips), (), "", True, 0, 0, "mask")


def test_a_list_has_a_score_an_example_and_none_where_there_is_none() -> None:
    rows = [
        MetricRow(key("complexity"), 7, 0.5), MetricRow(key("complexity"), 2, 0.25),
        MetricRow(key("complexity", "random"), 2, 1.0),
        MetricRow(key("without_top", percent=10), 2, 0.9), MetricRow(key("without_top", percent=20), 7, 0.8),
        MetricRow(key("rank_spearman", against="random"), 7, -1.0),
    ]  # fmt: skip
    skips = [MetricSkip(key("complexity", "random"), 7, "why"), MetricSkip(key("without_top"), 9, "why")]
    scores = quantus_scores(result(rows, skips))
    assert scores == {
        "lime": {
            "complexity": [0.25, 0.5, None],
            "without_top": {"10%": [0.9, None, None], "20%": [None, 0.8, None]},
            "rank_spearman": {"with random": [None, -1.0, None]},
        },
        "random": {"complexity": [1.0, None, None]},
    }
    assert json.loads(json.dumps(scores, allow_nan=False)) == scores


MAPS = np.array([[0.5, -2.0, 1.0, 0.0], [3.0, 1.0, -1.0, 0.25]])
MARKS = np.array([[False, True, False, False], [True, False, True, False]])


def test_the_numbers_are_those_of_quantus() -> None:
    """The formulas of `Complexity` and `RelevanceMassAccuracy` of Quantus 0.6 with abs=True, normalise=False."""
    rows = []
    for at, (scores, marks) in enumerate(zip(MAPS, MARKS, strict=True)):
        rows += [MetricRow(key("complexity"), at, complexity(scores)), MetricRow(key("truth_mass"), at,
                 truth_mass(scores, marks))]  # fmt: skip
    ours = quantus_scores(result(rows, []))
    shares = np.abs(MAPS) / np.abs(MAPS).sum(1, keepdims=True)
    entropies = [-sum(share * math.log(share + 1e-12) for share in row) for row in shares]
    masses = [sum(row[marks]) for row, marks in zip(shares, MARKS, strict=True)]
    assert ours["lime"]["complexity"] == pytest.approx(entropies, abs=1e-9)
    assert ours["lime"]["truth_mass"] == pytest.approx(masses)
