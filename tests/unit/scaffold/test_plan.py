"""Plans: what cannot be taught is refused in words; a student that diverges leaves its last good state."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tests.tiny
from engine import jobs
from engine.errors import ExegesisError, UsageError
from engine.params import from_mapping
from engine.scaffold.experiment import scaffold
from engine.scaffold.plan import NORMALIZATIONS, Recipe, check, plan_from_json
from engine.scaffold.presets import explainer_plan
from tests.tiny import save_checkpoint
from tests.unit.scaffold.plans import plan, saved, texts

pytestmark = pytest.mark.usefixtures("home")


@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_every_normalisation_can_be_asked_for(name: str) -> None:
    assert from_mapping(Recipe, {"normalisation": name}, "recipe").normalisation == name


def test_where_none_is_no_choice_it_is_refused() -> None:
    with pytest.raises(UsageError, match=r"recipe\.epochs: must be a whole number of at least 1, got 'none'"):
        from_mapping(Recipe, {"epochs": "none"}, "recipe")


def test_a_teacher_with_one_head_has_nothing_to_choose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = plan(tmp_path)  # before the patch: its checkpoints are kept for other tests
    for name in ("num_hidden_layers", "num_attention_heads"):
        monkeypatch.setitem(tests.tiny.SIZE, name, 1)
    teacher = str(save_checkpoint("bert", tmp_path / "one"))
    with pytest.raises(
        UsageError, match=r"must have at least 2 attention heads .*, got .* with 1\. Choose another model\."
    ):
        scaffold(replace(whole, teacher=teacher))


@pytest.mark.parametrize(("family", "labels", "same"), [("bert", 2, "the same class"), ("bert", 1, "the same score")])
def test_a_teacher_that_says_the_same_of_all_is_refused(tmp_path: Path, family: str, labels: int, same: str) -> None:
    asked = plan(
        tmp_path,
        teacher=saved(family, labels),
        base=saved(family, labels, 1),
        dataset=texts(tmp_path, ["good film"] * 40),
    )
    with pytest.raises(ExegesisError, match=rf"predicts {same} for all 10 test examples, so simulability would"):
        scaffold(asked)


def test_too_few_examples_for_the_splits_are_counted(tmp_path: Path) -> None:
    with pytest.raises(ExegesisError) as caught:
        scaffold(plan(tmp_path, train_sizes=(8, 20)))
    assert (
        "has 40 examples, but the four splits need 41: 20 for training, 5 held out, 6 for validation, 10 for testing"
        in str(caught.value)
    )


def test_a_student_that_diverges_stops_and_its_last_good_state_is_measured(tmp_path: Path) -> None:
    found = scaffold(plan(tmp_path, recipe={"inner_rate": 1e30, "clip": 0.0}))
    assert [one.diverged for one in found.students] == [True, True]
    for one in found.students:
        assert one.stopped.startswith("diverged: the loss became nan in step")
        assert one.best_epoch == -1
        assert one.simulability is not None
    start = scaffold(plan(tmp_path, settings=("none",), recipe={"inner_rate": 0.0})).students[0]
    assert found.students[0].simulability == start.simulability, "its start, as no pass came to an end"
    learned = found.students[1].phi
    assert learned is not None
    assert learned == pytest.approx([1 / 12] * 12)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"settings": ("none", "magic")}, "setting: unknown name 'magic'"),
        ({"settings": ()}, r"settings: must be one or more different values, got \[\]"),
        ({"seeds": (0, 0)}, "seeds: must be one or more different values"),
        ({"seeds": (-1,)}, "seeds: must be whole numbers of at least 0, got -1"),
        ({"train_sizes": (0,)}, "train_sizes: must be whole numbers of at least 1, got 0"),
        ({"recipe": {"normalisation": "max"}}, "recipe.normalisation: must be one of sparsemax, softmax"),
        ({"recipe": {"inner_rate": -1.0}}, "recipe.inner_rate: must be a number of at least 0"),
        ({"teacher": "no-such"}, "unknown name 'no-such'"),
        ({"teacher": "tiny-llama"}, "teacher: tiny-llama is a language model, .* Choose a classifier"),
    ],
)
def test_a_plan_that_is_none_is_refused_before_anything_is_loaded(
    tmp_path: Path, given: dict[str, Any], told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        check(plan(tmp_path, **given))


def test_a_language_model_is_refused_by_job_and_dialog(tmp_path: Path) -> None:
    asked = plan(tmp_path, teacher="tiny-llama")
    for enter in (
        lambda: jobs.create("scaffold", asked.as_plain()),
        lambda: explainer_plan("tiny-llama", asked.dataset, thorough=False),
    ):
        with pytest.raises(UsageError, match="teacher: tiny-llama is a language model"):
            enter()


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"setting": ["none"]}, "plan of a scaffold: must have teacher and dataset, and may have"),
        ({"settings": "none"}, "settings: must be a list, got 'none'"),
        ({"recipe": 5}, "recipe: must be an object with named settings, got 5"),
        ({"recipe": {"rate": 5}}, "unknown name 'rate'"),
        ({"teacher": 5}, "teacher: must be a text, got 5"),
        ({"dataset": None}, "dataset: must be a text, got None"),
        ({"base": 5}, "base: must be a text or null, got 5"),
    ],
)
def test_plain_values_of_another_shape_are_refused(tmp_path: Path, given: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        plan_from_json(plan(tmp_path).as_plain() | given)


def test_plain_values_are_the_plan_again(tmp_path: Path) -> None:
    asked = plan(tmp_path, split="train")
    assert plan_from_json(asked.as_plain()) == asked
    assert plan_from_json({"teacher": "a", "dataset": "b"}).recipe == Recipe()


def test_a_base_of_another_shape_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tests.tiny.SIZE, "num_hidden_layers", 2)
    base = str(save_checkpoint("bert", tmp_path / "smaller"))
    monkeypatch.undo()
    with pytest.raises(
        ExegesisError,
        match=r"must have num_hidden_layers 3, as the teacher .*, got .* with 2\. Choose the teacher's own base",
    ):
        scaffold(plan(tmp_path, base=base))
    with pytest.raises(UsageError, match=r"base: must be of type 'bert', as the teacher .*, got .* of type 'electra'"):
        scaffold(plan(tmp_path, base=saved("electra")))


def test_a_teacher_of_which_nobody_says_what_it_was_made_of_needs_a_base(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match=r"base: is missing\. Students start from the pre-trained model that .* was fine-tuned from"
    ):
        scaffold(plan(tmp_path, base=None))


def test_a_part_that_is_not_there_is_refused_and_a_file_without_parts_is_taken_whole(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is one file without splits, got 'test'"):
        scaffold(plan(tmp_path, split="test"))
    assert scaffold(plan(tmp_path, settings=("none",))).complete
