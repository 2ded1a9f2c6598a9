"""`exegesis rules` and `exegesis slide`: what they print, and what is refused in one line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from engine.experiments.run import carry_out
from engine.rules.experiment import to_json
from engine.rules.plan import RulesPlan
from engine.rules.result import score_rule
from engine.table_io import unescape_cell
from tests.unit.cli.conftest import Run
from tests.unit.randomization.making import reviews
from tests.unit.vision.tiny_vit import save_vit

pytestmark = pytest.mark.usefixtures("home")

RULES = ('"not" or "never" -> LABEL_0', 'starts with "the" -> LABEL_1')


def test_the_command_prints_the_scores_and_writes_the_rows(run: Run, bert: str, tmp_path: Path) -> None:
    asked = [
        "rules",
        "--models",
        bert,
        "--dataset",
        reviews(tmp_path),
        "--rule",
        ",".join(RULES),
        "--methods",
        "gradient_l2",
    ]
    file = tmp_path / "rows.csv"
    done = run(*asked, "--out", str(file))
    assert (done.code, done.err) == (0, "")
    plan = RulesPlan((bert,), asked[4], RULES, ("gradient_l2",))
    result = carry_out(plan)
    [line] = [
        line
        for line in done.out.splitlines()
        if line.startswith(RULES[0]) and "held-out" not in line and ":" not in line
    ]
    assert line.split(RULES[0])[1].split()[0] == str(score_rule(result.models[0].rules[0]).share.n)
    assert run(*asked, "--json").json == json.loads(json.dumps(to_json(result)))
    with open(file, encoding="utf-8", newline="") as sheet:
        rules = {unescape_cell(row["rule"]) for row in csv.DictReader(sheet)}
    assert rules == set(RULES)


def test_a_rule_that_cannot_be_read_is_refused_at_its_place(run: Run, bert: str, tmp_path: Path) -> None:
    data = reviews(tmp_path)
    told = run("rules", "--models", bert, "--dataset", data, "--rule", "good -> LABEL_0").complaint(2)
    assert told.startswith("rules: character 1: expected")
    assert run("rules", "--models", bert, "--dataset", data).complaint(2).startswith("rules: must be 1 to 4")


def test_sliding_prints_the_positions_with_the_largest_falls(run: Run, tmp_path: Path) -> None:
    model = str(save_vit(tmp_path / "vit"))
    asked = [
        "slide",
        "--model",
        model,
        "--dataset",
        "scenes:count=3",
        "--index",
        "1",
        "--window",
        "2",
        "--target",
        "eel",
    ]
    plain = run(*asked, "--json").json
    assert plain["target"] == "eel"
    assert len(plain["probabilities"]) == len(plain["positions"]) == 4
    falls = [plain["whole"][2] - row[2] for row in plain["probabilities"]]
    lines = run(*asked, "--top", "1").out.splitlines()
    [row] = [line.split() for line in lines if line[:3].strip().isdigit()]
    assert float(row[2]) == pytest.approx(max(falls), abs=1e-4)
    assert run(*asked[:-4], "--window", "4").complaint(2).startswith("window: must be a whole number from 1 to 3")
    assert "unknown name 'fox'" in run(*asked[:-1], "fox").complaint(2)


def test_a_text_cannot_be_slid_over(run: Run, tmp_path: Path) -> None:
    model = str(save_vit(tmp_path / "vit"))
    assert (
        run("slide", "--model", model, "--dataset", "reviews", "--index", "0")
        .complaint(2)
        .startswith("slide: needs an image")
    )
