"""The time that teaching is estimated to take: the sum by hand, and the order of what it then takes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from engine.errors import ExegesisError
from engine.scaffold import training
from engine.scaffold.plan import HELD_OUT, NONE, SMAT
from engine.scaffold.training import SettingPace, estimate_seconds, total_seconds
from tests.unit.scaffold.plans import plan


def test_the_sum_counts_outputs_steps_and_predictions(tmp_path: Path) -> None:
    # 2 passes over 8 and over 6 examples in batches of 4: 2 x 2 steps each; validated before and after each pass.
    asked = dataclasses.replace(plan(tmp_path), train_sizes=(8, 6), seeds=(0, 1))
    paces = {NONE: SettingPace(0.0, 1.0, 0.01), SMAT: SettingPace(0.5, 3.0, 0.01)}
    predictions = 3 * 6 + 10
    students = 2 * 2 * (4 * 1.0 + predictions * 0.01) + 2 * 2 * (4 * 3.0 + predictions * 0.01)
    teacher = 0.1 * (8 + 5 + 6 + 10) + 0.5 * (8 + 5)
    assert total_seconds(asked, 0.1, paces) == pytest.approx(students + teacher)


def test_held_out_examples_are_counted_where_students_learn_from_them(tmp_path: Path) -> None:
    asked = dataclasses.replace(plan(tmp_path), settings=(HELD_OUT,), seeds=(0,))
    # 2 passes over 8 + 5 examples in batches of 4: 4 steps each.
    seconds = 0.1 * (8 + 5 + 6 + 10) + 2 * 4 * 1.0 + (3 * 6 + 10) * 0.01
    assert total_seconds(asked, 0.1, {HELD_OUT: SettingPace(0.0, 1.0, 0.01)}) == pytest.approx(seconds)


def test_a_plan_is_measured_on_its_own_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "MEASURED_ON", 8)
    one = plan(tmp_path)
    seconds = estimate_seconds(one)
    assert 0 < seconds < 60
    longer = dataclasses.replace(one, recipe=dataclasses.replace(one.recipe, epochs=2000))
    assert estimate_seconds(longer) > 10 * seconds


def test_a_data_set_that_is_too_small_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExegesisError, match="the four splits need"):
        estimate_seconds(plan(tmp_path, recipe={"test": 500}))
