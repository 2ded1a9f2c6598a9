"""Charts of attacks: curves along the steps with the kept one marked, bars by objective, tables, what a run shows."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from components.adversarial.charts import Along, means_chart, span_of, table_of, trail_chart, trail_data
from components.adversarial.live import Live, forget, live_of
from components.adversarial.many import behind
from components.adversarial.many_words import how, left_out, summary
from components.charts.frame import ChartFrame
from engine.attacks.findings import AttackOutcome, Findings, Of, Row, Skip
from engine.attacks.plan import AttackPlan
from engine.attacks.trail import Moment
from engine.evaluation.result import Facts
from tests.unit.components.attacked import TRAIL

TITLES = {"gradient_l2": "Gradient, size", "gradient_x_input": "Gradient x input"}
PLAN = AttackPlan(("m",), "reviews", ("gradient_l2", "gradient_x_input"), examples=2)
FRAME = ChartFrame(TITLES)


def of(method: str, objective: str, metric: str = "rank_change") -> Of:
    return Of("m", "reviews", method, metric, objective, method)


FOUND = Findings(
    PLAN,
    (
        Row(of("gradient_l2", "unconstrained"), 0, 0.2), Row(of("gradient_l2", "unconstrained"), 1, 0.6),
        Row(of("gradient_x_input", "unconstrained"), 0, 1.0), Row(of("gradient_x_input", "constrained"), 0, 0.5),
    ),
    (Skip(of("gradient_x_input", "unconstrained"), 1, "too long"),),
    (Facts("m", 0, "bad", "good", 0.7, False, 9), Facts("m", 1, "good", "good", 0.9, True, 9)),
)  # fmt: skip


def drawn(made: dict[str, Any], mark: str) -> list[dict[str, Any]]:
    found = next(one for one in made["layer"] if one["mark"]["type"] == mark)
    rows: list[dict[str, Any]] = made["datasets"][found.get("data", made.get("data", {}))["name"]]
    return rows


def test_the_kept_step_and_lost_classes_are_marked() -> None:
    attacks = [Along("unconstrained", TRAIL, 2), Along("constrained", TRAIL)]
    table = trail_data(attacks, "probability")
    assert table["value"].tolist() == [0.9, 0.4, 0.8] * 2
    assert table[table["kept"]][["step", "name"]].to_numpy().tolist() == [[2, "Unconstrained"]]
    assert table["class"].tolist() == ["kept", "another class", "kept"] * 2
    made = trail_chart(attacks, "probability", "dark").to_dict()
    assert [layer["mark"]["type"] for layer in made["layer"]] == ["line", "point", "point"]
    assert made["layer"][0]["encoding"]["y"]["scale"] == {"domain": [0, 1]}
    free = trail_chart(attacks, "probability", "light", regression=True).to_dict()
    assert free["layer"][0]["encoding"]["y"]["scale"] == {"zero": False}


def test_a_bar_for_each_method_within_each_objective() -> None:
    scores = [score for score in FOUND.scores if score.of.metric == "rank_change"]
    span = span_of(scores)
    assert span[0] == 0
    made = means_chart(scores, FRAME, PLAN.methods, PLAN.objectives, span).to_dict()
    bars = {(row["group"], row["method"]): row["value"] for row in drawn(made, "bar")}
    assert bars == {
        ("Unconstrained", "gradient_l2"): pytest.approx(0.4), ("Unconstrained", "gradient_x_input"): 1.0,
        ("Constrained", "gradient_x_input"): 0.5,
    }  # fmt: skip
    assert {row["slice"] for row in drawn(made, "bar")} == {"unconstrained", "constrained"}
    rows = table_of(scores, TITLES).to_dict("records")
    assert [(row["Method"], row["Mean"], row["Without a value"]) for row in rows] == [
        ("Gradient, size", 0.4, 0), ("Gradient x input", 1.0, 1), ("Gradient x input", 0.5, 0)
    ]  # fmt: skip


def test_bars_of_signed_means_hold_zero() -> None:
    low = Row(of("gradient_l2", "constrained", "probability_change"), 0, -0.3)
    found = dataclasses.replace(FOUND, rows=(low,), skips=())
    first, last = span_of(found.scores)
    assert first < -0.3
    assert last == 0


def test_examples_behind_a_bar_come_the_highest_first() -> None:
    rows = behind(FOUND, ("m", "gradient_l2", "unconstrained"), "rank_change")
    assert [(row.example, row.value) for row in rows] == [(1, 0.6), (0, 0.2)]
    assert behind(FOUND, ("m", "gradient_l2", "constrained"), "rank_change") == []


def test_what_was_left_out_is_counted_in_words() -> None:
    assert left_out(FOUND, TITLES) == [("too long", "1 example on m", "Gradient x input")]
    assert how(FOUND, 2).startswith("2 examples, at most 500 steps each from 3 starts")
    outcome = AttackOutcome("m", "unconstrained", "gradient_l2", 1, "class changed", False, False, 0, 7.5)
    broken = dataclasses.replace(FOUND, outcomes=(outcome,))
    assert left_out(broken, TITLES)[1] == ("the attack changed the class", "1 example on m", "Gradient, size")
    assert [score.value for score in broken.scores][:1] == [0.2]
    told = summary([score for score in FOUND.scores if score.of.metric == "rank_change"], TITLES)
    assert told.startswith("Least, unconstrained: Gradient, size (0.4); most: Gradient x input (1).")


def test_a_run_is_seen_step_by_step() -> None:
    live = Live()
    assert (live.share, live.words, len(live.trail().step)) == (0.0, "", 0)
    for step, value in ((0, 1.0), (1, np.nan), (2, 3.0)):
        live.add(Moment(step, 4, np.array([value]), np.array([0.5]), np.array([0.9])))
    assert (live.share, live.words) == (0.5, "step 2 of 4")
    assert live.trail().objective.tolist() == [1.0, 3.0]
    assert live_of("a key") is live_of("a key")
    first = live_of("a key")
    forget("a key")
    assert live_of("a key") is not first
    forget("a key")
