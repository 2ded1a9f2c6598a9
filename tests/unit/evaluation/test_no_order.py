"""Maps that are the same everywhere put nothing in order: what would be measured of them is chance."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from engine.evaluation.experiment import evaluate
from engine.evaluation.measurement import Measurements, UnitScores, withdraw_constant_maps
from engine.evaluation.plan import EvaluationPlan
from engine.evaluation.result import CONSTANT_MAPS
from engine.evaluation.scores import leaderboard
from engine.metrics.results import MetricKey, MetricRow
from engine.metrics.sensitivity import FLAT
from engine.reproduction.papers import EMBEDDED
from engine.reproduction.thesis import ThesisQuery, findings_of
from tests.explaining import checkpoint
from tests.unit.evaluation.by_hand import by_hand
from tests.unit.evaluation.making import REVIEWS, written

METRICS = ("comprehensiveness", "without_top", "gt_overlap", "plausibility_auc", "truth_mass", "evaluations")
ORDER = METRICS[:4]


@pytest.mark.usefixtures("home")
def test_a_method_whose_maps_are_zero_by_construction_has_no_value_by_any_order(tmp_path: Path) -> None:
    data = written(tmp_path / "reviews.jsonl", REVIEWS[:3])
    found = evaluate([str(checkpoint("bert", 2))], data, ["gradient", "gradient_l2"], METRICS)
    scores = {(one.metric, one.method): one for one in found.scores if one.percent is None}
    for metric in ORDER:
        assert (scores[metric, "gradient"].value, scores[metric, "gradient"].skipped) == (None, {CONSTANT_MAPS: 3})
    assert scores["truth_mass", "gradient"].skipped == {FLAT: 3}
    assert scores["evaluations", "gradient"].n == 3, "what it cost was measured"
    assert all(scores[metric, "gradient_l2"].n == 3 for metric in METRICS if metric != "without_top")
    assert not any(one.best or one.level for one in leaderboard(found) if one.score.method == "gradient")


def test_one_map_without_an_order_among_others_is_judged_by_chance() -> None:
    notes = Measurements("m", "d")
    for method in ("lime", "occlusion", "random"):
        for example in (0, 1):
            notes.add(example, method, "mean_rank", 2.0)
    flat, other = np.zeros(4), np.arange(4.0)
    maps = [_maps(0, lime=flat, occlusion=flat, random=other), _maps(1, lime=other, occlusion=flat + 0.5, random=other)]
    withdraw_constant_maps(EvaluationPlan(("m",), "d", ("lime", "occlusion"), ("mean_rank",)), maps, notes)
    assert [(row.of.method, row.example) for row in notes.rows] == [
        ("lime", 0),
        ("lime", 1),
        ("random", 0),
        ("random", 1),
    ]
    assert [(skip.of.method, skip.example, skip.reason) for skip in notes.skips] == [
        ("occlusion", 0, CONSTANT_MAPS), ("occlusion", 1, CONSTANT_MAPS)
    ]  # fmt: skip


def test_of_inputs_of_one_unit_nothing_is_taken_back() -> None:
    notes = Measurements("m", "d", [MetricRow(MetricKey("m", "d", "lime", "comprehensiveness"), 0, 0.5)])
    withdraw_constant_maps(
        EvaluationPlan(("m",), "d", ("lime",), ("comprehensiveness",)), [_maps(0, lime=np.ones(1))], notes
    )
    assert (len(notes.rows), notes.skips) == (1, [])


def test_in_the_reproduction_the_random_order_stands_for_it() -> None:
    experiment = ThesisQuery(claims=("marked-gradients-behind",)).experiments()[0]
    role = dataclasses.replace(experiment.roles[0], why="")
    experiment = dataclasses.replace(experiment, roles=(role,))
    found = by_hand({
        (role.place, "gradient", "mean_rank_pct"): [CONSTANT_MAPS, "too long", CONSTANT_MAPS],
        (role.place, "random", "mean_rank_pct"): [0.5, 0.25, 0.75],
    })  # fmt: skip
    values = findings_of([(experiment, found)], EMBEDDED).values
    assert values[experiment.data.key, role.parts[0], "gradient", "mean_rank_pct"] == {0: 0.5, 2: 0.75}


def _maps(index: int, **scores: np.ndarray) -> UnitScores:
    return UnitScores(index, scores, {}, {}, "", np.zeros(len(next(iter(scores.values()))), dtype=int), ())
