"""`exegesis behavior`: accuracies and base rates as tables, tidy files, JSON, and what is refused in one line."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from engine.behavior.experiment import behavior
from engine.behavior.result import answers_of, rows
from tests.unit.cli.conftest import Run
from tests.unit.randomization.making import reviews

pytestmark = pytest.mark.usefixtures("home")

ASKED = ("--methods", "gradient_x_input", "--edit", "delete", "--margin", "0", "--examples", "4")


def test_tables_files_and_json_are_those_of_the_engine(run: Run, bert: str, tmp_path: Path) -> None:
    data, out = reviews(tmp_path), tmp_path / "rows.csv"
    done = run("behavior", "--models", bert, "--dataset", data, *ASKED, "--out", str(out))
    assert (done.code, done.err) == (0, "")
    result = behavior([bert], data, ["gradient_x_input"], edit="delete", margin=0, examples=4)
    [found] = result.models
    sign, order = answers_of(found, result.plan)
    assert f"{sign.cases} cases of {sign.all_cases} count; majority" in done.out
    assert f"{order.cases} pairs of {order.all_cases} count; random guessing 50%." in done.out
    for one in (*sign.ways, *order.ways):
        assert any(line.split()[:2] == [one.way, f"{one.accuracy:.0%}"] for line in done.out.splitlines())
    assert "integrated gradients and Shapley values are right for 50% and 50% of the models" in " ".join(
        done.out.split()
    )
    with out.open(encoding="utf-8", newline="") as file:
        written = list(csv.DictReader(file))
    assert [float(row["value"]) for row in written] == [row["value"] for row in rows(found)]
    printed = run("behavior", "--models", bert, "--dataset", data, *ASKED, "--json").json
    assert [one["question"] for one in printed["answers"]] == ["sign", "order"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (("--dataset", "reviews", "--task", "other"), "task: unknown name 'other'"),
        (("--dataset", "reviews", "--size", "9"), "size: must be a whole number from 1 to 3, got 9"),
        (("--dataset", "reviews", "--task", "feature", "--feature", ","), "feature: must be words between commas"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(run: Run, bert: str, given: tuple[str, ...], told: str) -> None:
    assert told in run("behavior", "--models", bert, *given).complaint(2)
