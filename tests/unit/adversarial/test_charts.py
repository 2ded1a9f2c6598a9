"""Charts of attacks: curves along the steps with the kept one marked, bars by objective, tables, what a run shows."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from components.adversarial.descriptions import describe_experiment, excluded_lines, summarize_means
from components.adversarial.example_panel import AttackCurve, LiveAttack, curve_chart, curve_data, forget, live_attack
from components.adversarial.experiment_panel import axis_span, examples_of_bar, means_chart, means_table
from components.charts.frame import ChartFrame
from engine.attacks.experiment_result import (
    AttackExperimentResult,
    AttackMetricKey,
    AttackOutcome,
    AttackRow,
    AttackSkip,
)
from engine.attacks.optimizer import StepValues
from engine.attacks.plan import AttackPlan
from engine.evaluation.result import ExampleFacts
from tests.unit.adversarial.making import TRAJECTORY

TITLES = {"gradient_l2": "Gradient, size", "gradient_x_input": "Gradient x input"}
PLAN = AttackPlan(("m",), "reviews", ("gradient_l2", "gradient_x_input"), examples=2)
FRAME = ChartFrame(TITLES)


def metric_key(method: str, objective: str, metric: str = "rank_change") -> AttackMetricKey:
    return AttackMetricKey("m", "reviews", method, metric, objective, method)


FOUND = AttackExperimentResult(
    PLAN,
    (
        AttackRow(metric_key("gradient_l2", "unconstrained"), 0, 0.2),
        AttackRow(metric_key("gradient_l2", "unconstrained"), 1, 0.6),
        AttackRow(metric_key("gradient_x_input", "unconstrained"), 0, 1.0),
        AttackRow(metric_key("gradient_x_input", "constrained"), 0, 0.5),
    ),
    (AttackSkip(metric_key("gradient_x_input", "unconstrained"), 1, "too long"),),
    (ExampleFacts("m", 0, "bad", "good", 0.7, False, 9), ExampleFacts("m", 1, "good", "good", 0.9, True, 9)),
)  # fmt: skip


def drawn(drawing: dict[str, Any], mark: str) -> list[dict[str, Any]]:
    result = next(one for one in drawing["layer"] if one["mark"]["type"] == mark)
    rows: list[dict[str, Any]] = drawing["datasets"][result.get("data", drawing.get("data", {}))["name"]]
    return rows


def test_the_kept_step_and_lost_classes_are_marked() -> None:
    attacks = [AttackCurve("unconstrained", TRAJECTORY, 2), AttackCurve("constrained", TRAJECTORY)]
    table = curve_data(attacks, "probability")
    assert table["value"].tolist() == [0.9, 0.4, 0.8] * 2
    assert table[table["best"]][["step", "name"]].to_numpy().tolist() == [[2, "Unconstrained"]]
    assert table["class"].tolist() == ["unchanged", "another class", "unchanged"] * 2
    drawing = curve_chart(attacks, "probability", "dark").to_dict()
    assert [layer["mark"]["type"] for layer in drawing["layer"]] == ["line", "point", "point"]
    assert drawing["layer"][0]["encoding"]["y"]["scale"] == {"domain": [0, 1]}
    free = curve_chart(attacks, "probability", "light", regression=True).to_dict()
    assert free["layer"][0]["encoding"]["y"]["scale"] == {"zero": False}


def test_a_bar_for_each_method_within_each_objective() -> None:
    scores = [score for score in FOUND.scores if score.key.metric == "rank_change"]
    span = axis_span(scores)
    assert span[0] == 0
    drawing = means_chart(scores, FRAME, PLAN.methods, PLAN.objectives, span).to_dict()
    bars = {(row["group"], row["method"]): row["value"] for row in drawn(drawing, "bar")}
    assert bars == {
        ("Unconstrained", "gradient_l2"): pytest.approx(0.4), ("Unconstrained", "gradient_x_input"): 1.0,
        ("Constrained", "gradient_x_input"): 0.5,
    }  # fmt: skip
    assert {row["slice"] for row in drawn(drawing, "bar")} == {"unconstrained", "constrained"}
    rows = means_table(scores, TITLES).to_dict("records")
    assert [(row["Method"], row["Mean"], row["Without a value"]) for row in rows] == [
        ("Gradient, size", 0.4, 0), ("Gradient x input", 1.0, 1), ("Gradient x input", 0.5, 0)
    ]  # fmt: skip


def test_bars_of_signed_means_hold_zero() -> None:
    low = AttackRow(metric_key("gradient_l2", "constrained", "probability_change"), 0, -0.3)
    result = dataclasses.replace(FOUND, rows=(low,), skips=())
    first, last = axis_span(result.scores)
    assert first < -0.3
    assert last == 0


def test_examples_behind_a_bar_come_the_highest_first() -> None:
    rows = examples_of_bar(FOUND, ("m", "gradient_l2", "unconstrained"), "rank_change")
    assert [(row.example, row.value) for row in rows] == [(1, 0.6), (0, 0.2)]
    assert examples_of_bar(FOUND, ("m", "gradient_l2", "constrained"), "rank_change") == []


def test_what_was_left_out_is_counted_in_words() -> None:
    assert excluded_lines(FOUND, TITLES) == [("too long", "1 example on m", "Gradient x input")]
    assert describe_experiment(FOUND, 2).startswith("2 examples, at most 500 steps each from 3 starts")
    outcome = AttackOutcome("m", "unconstrained", "gradient_l2", 1, "class changed", False, False, 0, 7.5)
    broken = dataclasses.replace(FOUND, outcomes=(outcome,))
    assert excluded_lines(broken, TITLES)[1] == ("the attack changed the class", "1 example on m", "Gradient, size")
    assert [score.value for score in broken.scores][:1] == [0.2]
    text = summarize_means([score for score in FOUND.scores if score.key.metric == "rank_change"], TITLES)
    assert text.startswith("Smallest change (unconstrained): Gradient, size (0.4). Largest: Gradient x input (1).")


def test_a_run_is_seen_step_by_step() -> None:
    live = LiveAttack()
    assert (live.share, live.words, len(live.trajectory().step)) == (0.0, "", 0)
    for step, value in ((0, 1.0), (1, np.nan), (2, 3.0)):
        live.add(StepValues(step, 4, np.array([value]), np.array([0.5]), np.array([0.9])))
    assert (live.share, live.words) == (0.5, "step 2 of 4")
    assert live.trajectory().objective.tolist() == [1.0, 3.0]
    assert live_attack("a key") is live_attack("a key")
    first = live_attack("a key")
    forget("a key")
    assert live_attack("a key") is not first
    forget("a key")


def test_ticks_are_written_as_people_write_them() -> None:
    """A format that is empty writes a tick of 20 as "2e+1"."""
    shown = json.dumps(curve_chart([AttackCurve("unconstrained", TRAJECTORY)], "objective", "light").to_dict())
    assert '"format": ""' not in shown
