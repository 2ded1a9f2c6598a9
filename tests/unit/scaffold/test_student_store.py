"""Students in the store: they come back as they were, under a key that holds all that they depend on."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import runtime
from engine.scaffold.experiment import StudentStore, pack, unpack
from engine.scaffold.plan import NONE, SETTINGS, SMAT, Recipe, ScaffoldPlan, StudentRun
from engine.scaffold.result import StudentResult, TrainingPass
from tests.tiny import save_checkpoint
from tests.unit.data.conftest import class_files
from tests.unit.data.conftest import unpacked as written
from tests.unit.scaffold.plans import FEW, plan, saved, sentences, texts
from tests.unit.vision.tiny_vit import save_vit

pytestmark = pytest.mark.usefixtures("home")
PUPIL = StudentRun(SMAT, 8, 0)
PASSES = (TrainingPass(0, 1.25, 0.75, None), TrainingPass(1, 0.1 + 0.2, 0.5, 0.625))
LEARNED = StudentResult(PUPIL, 0.9, 1, 4, 2.5, "patience", PASSES, np.linspace(-1, 1, 12), np.full(12, 1 / 12))
STATIC = StudentResult(StudentRun(NONE, 8, 0), None, -1, 3, 0.5, "diverged: the loss became nan in step 4", ())


@pytest.mark.parametrize("outcome", [LEARNED, STATIC], ids=["learned", "static"])
def test_what_is_kept_comes_back_as_it_was(outcome: StudentResult, tmp_path: Path) -> None:
    kept = StudentStore(plan(tmp_path))
    assert kept.find(outcome.run) is None
    kept.put(outcome)
    for found in (unpack(outcome.run, *pack(outcome)), kept.find(outcome.run)):
        assert found is not None
        for field in dataclasses.fields(StudentResult):
            ours, its = getattr(found, field.name), getattr(outcome, field.name)
            same = np.array_equal(ours, its) if isinstance(its, np.ndarray) else ours == its
            assert same, field.name
    other = dataclasses.replace(outcome.run, seed=1)
    assert kept.find(other) is None


OTHERWISE: dict[str, Callable[[Path], dict[str, Any]]] = {
    "teacher": lambda folder: {"teacher": saved("bert", seed=3)},
    "base": lambda folder: {"base": saved("bert", seed=4)},
    "data": lambda folder: {"dataset": texts(folder, sentences(seed=9))},
    "more needed": lambda folder: {"train_sizes": (8, 9)},
}


@pytest.mark.parametrize("what", OTHERWISE)
def test_another_plan_has_other_keys(what: str, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    mine, other = plan(tmp_path), plan(tmp_path, **OTHERWISE[what](tmp_path / "other"))
    assert StudentStore(mine).key(PUPIL) == StudentStore(plan(tmp_path)).key(PUPIL)
    assert StudentStore(mine).key(PUPIL) != StudentStore(other).key(PUPIL)


GRADIENT = ("beta_attention", "outer_rate")
IDLE = {
    "none": ("normalisation", "beta_attention", "beta_gradient", "outer_rate"),
    "none_held_out": ("normalisation", "beta_attention", "beta_gradient", "outer_rate"),
    "gradient_l2": GRADIENT,
    "gradient_x_input": GRADIENT,
    "integrated_gradients": GRADIENT,
    "attention_logits": ("beta_gradient", "outer_rate"),
    "attention_logits_last": ("beta_gradient", "outer_rate"),
    "smat": ("beta_gradient",),
}
"""What a setting does not use: no explainer has no weights, and a static one does not learn."""


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Recipe)])
def test_every_setting_of_the_recipe_counts_where_it_is_used(field: str, tmp_path: Path) -> None:
    value = getattr(Recipe(**FEW), field)
    changed = {bool: lambda: not value, str: lambda: "softmax"}.get(type(value), lambda: value + 1)()
    mine, other = plan(tmp_path), plan(tmp_path, recipe={field: changed})
    for setting in SETTINGS:
        pupil = dataclasses.replace(PUPIL, setting=setting)
        same = StudentStore(mine).key(pupil) == StudentStore(other).key(pupil)
        assert same == (field in IDLE.get(setting, ()))


def test_every_part_of_a_student_counts_and_the_other_students_do_not(tmp_path: Path) -> None:
    kept = StudentStore(plan(tmp_path))
    keys = {
        kept.key(pupil) for pupil in (PUPIL, StudentRun(NONE, 8, 0), StudentRun(SMAT, 7, 0), StudentRun(SMAT, 8, 9))
    }
    assert len(keys) == 4
    more = StudentStore(plan(tmp_path, settings=(SMAT,), seeds=(0, 9)))
    assert more.key(PUPIL) == kept.key(PUPIL), "a plan of more seeds finds what is taught already"


def test_weights_count_and_not_where_they_lie(tmp_path: Path) -> None:
    first, same, other = (
        save_checkpoint("bert", tmp_path / name, seed=s) for name, s in zip("abc", (2, 2, 3), strict=True)
    )
    key = StudentStore(plan(tmp_path, teacher=str(first))).key(PUPIL)
    (first / "model.safetensors").write_bytes((other / "model.safetensors").read_bytes())
    assert StudentStore(plan(tmp_path, teacher=str(first))).key(PUPIL) != key
    (first / "model.safetensors").write_bytes((same / "model.safetensors").read_bytes())
    assert StudentStore(plan(tmp_path, teacher=str(first))).key(PUPIL) == key


def test_parts_of_a_folder_of_pictures_are_different_examples(tmp_path: Path) -> None:
    vit = str(save_vit(tmp_path / "vit"))
    dataset = str(written(tmp_path / "pictures", class_files()) / "set")
    keys = {StudentStore(ScaffoldPlan(vit, dataset, base=vit, split=split)).key(PUPIL) for split in ("train", "test")}
    assert len(keys) == 2


def test_each_kind_of_device_has_its_own_students(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = StudentStore(plan(tmp_path)).key(PUPIL)
    monkeypatch.setattr(runtime, "device_type", lambda: "cuda")
    assert StudentStore(plan(tmp_path)).key(PUPIL) != here


def test_a_checkpoint_lies_under_the_key(tmp_path: Path) -> None:
    kept = StudentStore(plan(tmp_path))
    assert kept.folder(PUPIL).name == kept.key(PUPIL)
