"""`exegesis attack`: the table, JSON, files, and what is refused in one line."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from unittest.mock import Mock

import pytest
from rich.text import Text

from engine.attacks.experiment_result import (
    COLUMNS,
    AttackExperimentResult,
    AttackMetricKey,
    AttackOutcome,
    AttackRow,
    AttackScore,
)
from engine.attacks.plan import AttackParams, AttackPlan
from engine.cli.attack import _cell, sections
from tests.unit.cli.conftest import Ran, Run
from tests.unit.evaluation.making import REVIEWS, written

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def reviews(tmp_path: Path) -> str:
    return written(tmp_path / "reviews.jsonl", REVIEWS[:3])


def ran(run: Run, bert: str, reviews: str, *more: str) -> Ran:
    return run("attack", "--models", bert, "--dataset", reviews, "--methods", "gradient_l2", "--steps", "3", *more)


def test_the_table_the_file_and_the_json_agree(run: Run, bert: str, reviews: str, tmp_path: Path) -> None:
    out = tmp_path / "rows.csv"
    done = ran(run, bert, reviews, "--transfer", "gradient_x_input", "--out", str(out), "--epsilon", "1/2")
    assert (done.code, done.err) == (0, ""), done.err
    assert "gradient_l2 -> gradient_x_input" in done.out
    assert "constrained" in done.out
    with open(out, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(COLUMNS)
    assert f"rows.csv, {len(rows)} rows" in done.out
    plain = json.loads(ran(run, bert, reviews, "--transfer", "gradient_x_input", "--epsilon", "1/2", "--json").out)
    assert plain["plan"]["attack"]["epsilon"] == 0.5
    score = plain["scores"][0]
    values = [float(row["value"]) for row in rows if row["outcome"] in ("fooled", "robust") and all(
        row[name] == score[name] for name in ("method", "metric", "objective", "attacked"))]  # fmt: skip
    assert score["value"] == pytest.approx(sum(values) / len(values))
    assert [one["right"] for one in plain["examples"]] != []


def test_one_example_is_attacked_by_its_place(run: Run, bert: str, reviews: str) -> None:
    told = ("--transfer", "gradient_l2,gradient_x_input", "--json")
    one = json.loads(ran(run, bert, reviews, "--index", "2", *told).out)
    assert {example["example"] for example in one["examples"]} == {2}
    assert {score["n"] + sum(score["skipped"].values()) for score in one["scores"]} == {1}
    # What is attacked is asked for among the others too: it has its own numbers, once.
    assert {(score["attacked"], score["method"]) for score in one["scores"]} == {
        ("gradient_l2", "gradient_l2"), ("gradient_l2", "gradient_x_input")
    }  # fmt: skip
    done = ran(run, bert, reviews, "--index", "2", "--job")
    assert (done.code, done.out) == (2, "")
    assert "--index: cannot be combined with --job or --executor" in done.err


def test_a_map_of_zeros_is_said_and_fails(run: Run, bert: str, reviews: str) -> None:
    done = run("attack", "--models", bert, "--dataset", reviews, "--methods", "gradient", "--objective", "constrained")
    assert done.code == 1
    assert "zero by construction" in done.out
    assert "no example could be attacked" in done.err


@pytest.mark.parametrize(("option", "value", "words"), [
    ("--methods", "lime", "lime cannot be attacked"),
    ("--objective", "free", "--objective: must be one of unconstrained, constrained, both"),
    ("--epsilon", "2/0", "a fraction such as 8/255"),
    ("--quantity", "odds", "quantity: must be one of logit, probability, mixed"),
    ("--starts", "0", "--starts: must be"),
    ("--top-k", "1.5", "a share above 0 and below 1, or a whole number"),
    ("--place", "pixels", "texts have no pixels"),
    ("--out", "rows.txt", "--out: must be a file whose name ends with"),
    ("--transfer", "limee", "Did you mean 'lime'"),
    ("--executor", "cloud", "executor: unknown name 'cloud'"),
    ("--index", "3", "index: must be an index of"),
    ("--index", "-1", "--index: must be a whole number of at least 0"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused_in_one_line(
    run: Run, bert: str, reviews: str, option: str, value: str, words: str
) -> None:
    done = ran(run, bert, reviews, option, value)
    assert done.code == 2
    assert words in done.err
    assert done.err.count("\n") == 1


def test_without_methods_it_says_which_can_be_attacked(run: Run, bert: str, reviews: str) -> None:
    done = run("attack", "--models", bert, "--dataset", reviews)
    assert (done.code, done.err.count("gradient_x_input")) == (2, 1)


def test_what_does_not_count_as_fooled_is_said_in_red() -> None:
    key = AttackMetricKey("m", "reviews", "gradient_l2", "rank_change", "constrained", "gradient_l2")
    outcomes = tuple(
        AttackOutcome("m", "constrained", "gradient_l2", at, outcome, True, outcome == "fooled", 0, 7.5)
        for at, outcome in enumerate(("fooled", "constraint broken"))
    )
    plan, rows = AttackPlan(("m",), "reviews", ("gradient_l2",)), (AttackRow(key, 0, 0.25), AttackRow(key, 1, 1.0))
    found = AttackExperimentResult(plan, rows, (), (), outcomes=outcomes)
    [told] = [part for part in sections(found) if isinstance(part, Text) and "red" in str(part.style)]
    assert told.plain.startswith("! gradient_l2, constrained, m: 1 of 2 attacks broke the constraint")
    assert [(score.value, score.n) for score in found.scores] == [(0.25, 1)]


@pytest.mark.parametrize(("option", "name"), [("--quantity", "quantity"), ("--starts", "starts"), ("--beta", "beta")])
def test_defaults_are_those_of_the_engine(run: Run, bert: str, reviews: str, option: str, name: str) -> None:
    default = getattr(AttackParams(), name)
    left_out, said = (
        json.loads(ran(run, bert, reviews, "--index", "0", "--json", *more).out)["plan"]["attack"][name]
        for more in ((), (option, str(default)))
    )
    assert left_out == said == default


@pytest.mark.parametrize(("doubt", "told"), [("", "0.5 [0.25, 0.75]"), ("too few examples", "0.5")])
def test_a_number_is_told_with_its_interval_unless_that_is_in_doubt(doubt: str, told: str) -> None:
    assert _cell(Mock(spec=AttackScore, value=0.5, interval=(0.25, 0.75), doubt=doubt)) == told
