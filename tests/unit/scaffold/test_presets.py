"""The paper's experiments by name: their published settings, and each from end to end on tiny stand-ins."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path

import pytest

from engine.data.datasets import registered_name
from engine.errors import ExegesisError, UsageError
from engine.scaffold.experiment import scaffold
from engine.scaffold.plan import HELD_OUT, NONE, SEEDS, SETTINGS, SMAT, ScaffoldPlan
from engine.scaffold.presets import OPENING_PLANS, PRESETS, explainer_plan, preset_plan
from tests.unit.scaffold.plans import FEW, pairs, pictures, saved, texts
from tests.unit.vision.tiny_vit import save_vit

pytestmark = pytest.mark.usefixtures("home")


@pytest.mark.parametrize(
    ("name", "base", "sizes", "batch", "patience", "rate"),
    [
        ("imdb", "google/electra-small-discriminator", (500, 1000, 2000), 32, 10, 5e-4),
        ("cifar100", "google/vit-base-patch16-224-in21k", (2250, 4500, 9000), 16, 5, 5e-4),
        ("mlqe", "FacebookAI/xlm-roberta-base", (2100, 4200, 8400), 16, 5, 2e-4),
    ],
)
def test_the_settings_are_the_published_ones(
    name: str, base: str, sizes: tuple[int, ...], batch: int, patience: int, rate: float
) -> None:
    made = preset_plan(name, "a folder")
    recipe = made.recipe
    assert (made.teacher, made.base, made.train_sizes, made.settings, made.seeds) == (
        "a folder", base, sizes, SETTINGS, SEEDS,
    )  # fmt: skip
    assert (recipe.batch_size, recipe.patience, recipe.outer_rate, recipe.inner_rate) == (batch, patience, rate, 5e-3)
    assert (recipe.normalisation, recipe.beta_attention, recipe.beta_gradient) == ("sparsemax", 5.0, 0.2)


def test_students_of_imdb_see_other_reviews_than_their_teacher_has_learned() -> None:
    assert (preset_plan("imdb", "a").split, preset_plan("cifar100", "a").split, preset_plan("mlqe", "a").split) == (
        "test", "train", "train",
    )  # fmt: skip


@pytest.mark.parametrize("name", PRESETS)
def test_a_teacher_that_is_not_there_comes_with_the_command_that_makes_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from engine.cli import training

    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        preset_plan(name)
    command = PRESETS[name].command
    assert f"Train it with: {command}; or name another folder with --teacher FOLDER." in str(caught.value)
    words = shlex.split(command)
    assert words[:2] == ["exegesis", "train"]
    given = {
        flag.removeprefix("--").replace("-", "_"): value for flag, value in zip(*[iter(words[2:])] * 2, strict=True)
    }
    monkeypatch.setattr(training, "_on_pictures", lambda chosen: name == "cifar100")
    config = training._config(given)
    assert (config.base, config.out) == (PRESETS[name].base, PRESETS[name].out)
    (tmp_path / PRESETS[name].out).mkdir()
    assert preset_plan(name).teacher == PRESETS[name].out


def test_the_data_sets_of_texts_are_known() -> None:
    for name in ("imdb", "mlqe"):
        assert registered_name(PRESETS[name].dataset)


def test_an_unknown_preset_lists_the_known() -> None:
    with pytest.raises(
        UsageError, match=r"preset: unknown name 'imd'. Did you mean 'imdb'\? Known: cifar100, imdb, mlqe"
    ):
        preset_plan("imd")


def stand_in(name: str, folder: Path) -> ScaffoldPlan:
    """The preset with a tiny teacher, a tiny base and a few examples; everything else is its own."""
    if name == "cifar100":
        teacher, base, data = str(save_vit(folder / "vit")), str(save_vit(folder / "base")), pictures(folder)
    elif name == "mlqe":
        teacher, base, data = saved("xlm-roberta", 1), saved("xlm-roberta", 1, 1), pairs(folder)
    else:
        teacher, base, data = saved("electra"), saved("electra", 2, 1), texts(folder)
    made = preset_plan(name, teacher, data)
    recipe = dataclasses.replace(made.recipe, **{**FEW, "epochs": 1})
    return dataclasses.replace(made, base=base, train_sizes=(8,), seeds=(9,), recipe=recipe)


@pytest.mark.parametrize("name", PRESETS)
def test_each_goes_from_end_to_end_on_tiny_stand_ins(name: str, tmp_path: Path) -> None:
    found = scaffold(stand_in(name, tmp_path))
    assert (found.complete, len(found.students), dict(found.failed)) == (True, 8, {})
    assert found.metric == ("pearson" if name == "mlqe" else "accuracy")
    for one in found.students:
        assert one.stopped == "epochs"
        assert one.simulability is not None
        assert -1 <= one.simulability <= 1
        assert one.steps == (4 if one.run.setting == HELD_OUT else 2), "with more examples there are more steps"
    learned = found.median_student(8)
    assert learned is not None
    weights = found.weights(learned)
    assert weights is not None
    assert weights.shape == (3, 4)
    assert weights.sum() == pytest.approx(1.0, abs=1e-6)


def test_a_plan_for_an_explainer_has_the_sizes_of_its_task() -> None:
    quick, opening = explainer_plan("bert-reviews", "reviews-generated", thorough=False), OPENING_PLANS["text"]
    assert (quick.settings, quick.seeds, quick.train_sizes) == ((NONE, SMAT), (0,), (1000,))
    assert quick.recipe == opening.recipe
    thorough = explainer_plan("bert-reviews", "reviews-generated", thorough=True)
    assert (thorough.settings, len(thorough.seeds)) == ((NONE, "attention_logits", SMAT), 5)
    assert explainer_plan("bert-quality", "quality", thorough=False).recipe == OPENING_PLANS["regression"].recipe


def test_a_small_data_set_is_divided_in_the_same_proportions(tmp_path: Path) -> None:
    rows = [f"text {i},{('bad', 'good')[i % 2]}" for i in range(200)]
    file = tmp_path / "small.csv"
    file.write_text("\n".join(["text,label", *rows]))
    one = explainer_plan(saved("bert"), str(file), thorough=False)
    # 1,000 to learn, 200 held out, 300 for validation, 500 for the test, of 2,000 in all: a tenth of each.
    sizes = (one.train_sizes, one.recipe.held_out, one.recipe.validation, one.recipe.test)
    assert sizes == ((100,), 20, 30, 50)
    file.write_text("\n".join(["text,label", *rows[:59]]))
    with pytest.raises(ExegesisError, match="has 59 examples, but at least 60 are needed"):
        explainer_plan(saved("bert"), str(file), thorough=False)
