"""`exegesis randomize`: tidy files, curves and verdicts, and what is refused in one line."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas
import pytest

from engine.cli.randomize import _exclusions
from engine.jobs import list_jobs
from engine.randomization.experiment import randomize
from engine.randomization.result import COLUMNS, ModelRandomization
from engine.table_io import unescape_cell
from tests.unit.cli.conftest import Run
from tests.unit.randomization.making import reviews

pytestmark = pytest.mark.usefixtures("home")

ASKED = ("--methods", "gradient_l2,lime", "--param", "lime.n_samples=20", "--seeds", "1", "--head")


def test_the_files_hold_a_row_a_value_and_are_those_of_the_engine(run: Run, bert: str, tmp_path: Path) -> None:
    data = reviews(tmp_path)
    for ending in ("csv", "json", "parquet"):
        out = str(tmp_path / f"rows.{ending}")
        done = run("randomize", "--models", bert, "--dataset", data, *ASKED, "--job", "--out", out)
        assert (done.code, done.err) == (0, ""), done.err
    [job] = [one for one in list_jobs() if one.computed]
    assert job.kind == "randomize"
    params = {"lime": {"n_samples": 20}}
    found = randomize([bert], data, ["gradient_l2", "lime"], seeds=1, head=True, params=params)
    expected = list(found.rows)
    assert json.loads((tmp_path / "rows.json").read_text()) == expected
    with open(tmp_path / "rows.csv", encoding="utf-8", newline="") as file:
        sheet = list(csv.DictReader(file))
    assert [(float(row["value"]), row["block"], unescape_cell(row["model"])) for row in sheet] == [
        (row["value"], row["block"], bert) for row in expected
    ]
    table = pandas.read_parquet(tmp_path / "rows.parquet")
    assert list(table.columns) == list(COLUMNS)
    assert len(table) == len(expected)


def test_people_read_a_row_a_stage_and_a_verdict_a_method(run: Run, bert: str, tmp_path: Path) -> None:
    data = reviews(tmp_path)
    told = run("randomize", "--models", bert, "--dataset", data, *ASKED).out
    lines = told.splitlines()
    assert f"{bert} on {data}, cascading" in lines
    assert [line.split("  ")[0] for line in lines if line.startswith(("down to", "block"))] == [
        "down to head", "down to block 3", "down to block 2", "down to block 1", "block 3", "block 2", "block 1",
    ]  # fmt: skip
    assert "lime: " in told
    assert "The check does not apply: it uses only the model's predictions, not its parameters." in told
    plain = run("randomize", "--models", bert, "--dataset", data, *ASKED, "--json").json
    [one] = plain["models"]
    assert plain["plan"]["company"] == ["gradient_l2", "lime", "random"]
    assert {curve["metric"] for curve in one["curves"]} == {
        "spearman", "spearman_abs", "top_k", "probability", "class_changed",
    }  # fmt: skip
    points = one["curves"][0]["points"]
    assert [point["random"] for point in points] == [
        ["head"],
        ["head", "3"],
        ["head", "3", "2"],
        ["head", "3", "2", "1"],
    ]
    assert [made["method"] for made in one["verdicts"]] == ["gradient_l2", "lime", "random"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--dataset", "reviews", "--mode", "cascade"), "mode: unknown name 'cascade'. Did you mean 'cascading'?"),
        ((), "--dataset: is missing. Example: --dataset reviews."),
        (("--dataset", "reviews", "--seeds", "0"), "--seeds: must be a whole number of at least 1, got '0'."),
        (("--dataset", "reviews", "--methods", "random"), "methods: random does not depend on the model"),
        (("--dataset", "reviews", "--out", "rows.txt"), "--out: must be a file whose name ends with one of .csv"),
        (("--dataset", "reviews", "--executor", "rai"), "executor: unknown name 'rai'. Did you mean 'ray'?"),
        (("--dataset", "reviews", "--job", "--executor", "ray"), "--job: runs on this machine"),
    ],
)
def test_what_cannot_be_done_is_told_in_one_line(run: Run, bert: str, given: tuple[str, ...], told: str) -> None:
    assert told in run("randomize", "--models", bert, *given).complaint(2)


def test_why_maps_are_exclusions_is_counted_by_method() -> None:
    why = np.array([[[0, -1], [0, 1]], [[-1, -1], [1, -1]]], dtype=np.int8)
    found = Mock(
        spec=ModelRandomization, failed={}, methods=("lime", "random"), why=why, reasons=("equal scores", "no number")
    )
    assert list(_exclusions(found)) == [
        "2 maps of lime left out: equal scores",
        "1 map of lime left out: no number",
        "1 map of random left out: no number",
    ]
