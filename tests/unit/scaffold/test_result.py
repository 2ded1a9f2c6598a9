"""Agreement of a student's predictions with its teacher's, and students as tidy rows, the same in every format."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pandas
import pytest
from scipy.stats import pearsonr

from engine.scaffold.plan import NONE, SMAT, ScaffoldPlan, StudentRun
from engine.scaffold.result import COLUMNS, FORMATS, ScaffoldResult, StudentResult, TrainingPass, rows, simulability

TEACHER = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 3.0], [1.0, 0.0, 0.9]])


def test_classes_count_and_their_sizes_do_not() -> None:
    assert simulability(TEACHER * 7 - 100, TEACHER, regression=False) == 1
    student = TEACHER.copy()
    student[0] = [0.0, 9.0, 0.0]
    assert simulability(student, TEACHER, regression=False) == 0.75
    assert simulability(np.roll(TEACHER, 1, axis=1), TEACHER, regression=False) == 0


def test_scores_are_correlated() -> None:
    draw = np.random.default_rng(0)
    teacher = draw.normal(size=(50, 1))
    student = 0.3 * teacher + draw.normal(size=(50, 1))
    wanted = pearsonr(student[:, 0], teacher[:, 0]).statistic
    assert simulability(student, teacher, regression=True) == pytest.approx(wanted)
    assert simulability(5 - 2 * teacher, teacher, regression=True) == pytest.approx(-1)


@pytest.mark.parametrize("constant", [0.0, 4.0])
def test_a_constant_score_has_no_correlation(constant: float) -> None:
    teacher = np.arange(5.0)[:, None]
    same = np.full((5, 1), constant)
    same[2] += 1e-13
    assert simulability(same, teacher, regression=True) is None
    assert simulability(teacher, same, regression=True) is None


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
@pytest.mark.parametrize("regression", [False, True])
def test_answers_that_are_no_numbers_agree_with_nothing(wrong: float, regression: bool) -> None:
    student = TEACHER.copy()
    student[1, 0] = wrong
    assert simulability(student, TEACHER, regression) is None


PLAN = ScaffoldPlan("a teacher", "a set", (NONE, SMAT), (8,), (3,))
STATIC = StudentResult(
    StudentRun(NONE, 8, 3),
    0.75,
    0,
    4,
    1.0,
    "epochs",
    (TrainingPass(0, 0.5, None, 0.5), TrainingPass(1, 0.25, None, None)),
)
LEARNED = StudentResult(
    StudentRun(SMAT, 8, 3), None, -1, 2, 1.0, "epochs", (TrainingPass(0, 0.5, 0.7, 0.1),), np.ones(4), np.ones(4)
)
FOUND = ScaffoldResult(PLAN, (2, 2), (STATIC, LEARNED))


def test_a_row_is_one_observation() -> None:
    found = [(row["method"], row["metric"], row["value"], row["epoch"]) for row in rows(FOUND)]
    assert found == [
        ("none", "simulability", 0.75, None), ("none", "validation", 0.5, 1), ("none", "loss", 0.5, 1),
        ("none", "validation", None, 2), ("none", "loss", 0.25, 2),
        ("smat", "simulability", None, None), ("smat", "validation", 0.1, 1), ("smat", "loss", 0.5, 1),
        ("smat", "outer", 0.7, 1),
    ]  # fmt: skip
    same = {(row["model"], row["dataset"], row["example"], row["train_size"], row["seed"]) for row in rows(FOUND)}
    assert same == {("a teacher", "a set", None, 8, 3)}


def test_all_formats_hold_the_same(tmp_path: Path) -> None:
    expected = list(rows(FOUND))
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
    made = FORMATS[format](ScaffoldResult(PLAN, (2, 2), ()))
    read = {"csv": pandas.read_csv, "json": json.load, "parquet": pandas.read_parquet}[format]
    found = read(io.BytesIO(made))
    assert len(found) == 0
    assert format == "json" or list(found.columns) == list(COLUMNS)
