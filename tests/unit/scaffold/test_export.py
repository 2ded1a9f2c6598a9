"""Students as tidy rows: one observation a row, the same in every format."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas
import pytest

from engine.scaffold.export import COLUMNS, FORMATS, rows
from engine.scaffold.plan import NONE, SMAT, Plan, Pupil
from engine.scaffold.result import Outcome, Pass, Scaffold

PLAN = Plan("a teacher", "a set", (NONE, SMAT), (8,), (3,))
STATIC = Outcome(Pupil(NONE, 8, 3), 0.75, 0, 4, 1.0, "epochs", (Pass(0, 0.5, None, 0.5), Pass(1, 0.25, None, None)))
LEARNED = Outcome(Pupil(SMAT, 8, 3), None, -1, 2, 1.0, "epochs", (Pass(0, 0.5, 0.7, 0.1),), np.ones(4), np.ones(4))
FOUND = Scaffold(PLAN, (2, 2), (STATIC, LEARNED))


def test_a_row_is_one_observation() -> None:
    found = [(row.method, row.metric, row.value, row.epoch) for row in rows(FOUND)]
    assert found == [
        ("none", "simulability", 0.75, None), ("none", "validation", 0.5, 1), ("none", "loss", 0.5, 1),
        ("none", "validation", None, 2), ("none", "loss", 0.25, 2),
        ("smat", "simulability", None, None), ("smat", "validation", 0.1, 1), ("smat", "loss", 0.5, 1),
        ("smat", "outer", 0.7, 1),
    ]  # fmt: skip
    same = {(row.model, row.dataset, row.example, row.train_size, row.seed) for row in rows(FOUND)}
    assert same == {("a teacher", "a set", None, 8, 3)}


def test_all_formats_hold_the_same(tmp_path: Path) -> None:
    expected = [row.as_plain() for row in rows(FOUND)]
    assert json.loads(FORMATS["json"](FOUND)) == expected
    sheet = list(csv.DictReader(io.StringIO(FORMATS["csv"](FOUND).decode())))
    assert [row["value"] for row in sheet] == ["" if row["value"] is None else repr(row["value"]) for row in expected]
    file = tmp_path / "rows.parquet"
    file.write_bytes(FORMATS["parquet"](FOUND))
    table = pandas.read_parquet(file)
    assert list(table.columns) == list(sheet[0]) == list(COLUMNS)
    assert table["epoch"].isna().tolist() == [row["epoch"] is None for row in expected]


@pytest.mark.parametrize("format", FORMATS)
def test_no_student_leaves_a_file_that_can_be_read(format: str) -> None:
    made = FORMATS[format](Scaffold(PLAN, (2, 2), ()))
    read = {"csv": pandas.read_csv, "json": json.load, "parquet": pandas.read_parquet}[format]
    found = read(io.BytesIO(made))
    assert len(found) == 0
    assert format == "json" or list(found.columns) == list(COLUMNS)
