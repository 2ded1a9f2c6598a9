"""What a teacher says: its answers and heads one by one, and the static maps of the registered methods."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from engine import runtime
from engine.models.attention import capture_attention
from engine.scaffold import training_sets
from engine.scaffold.plan import ATTENTION, GRADIENTS, HELD_OUT, NONE, SMAT, Recipe, StudentRun
from engine.task import Task, TaskItem
from tests.explaining import forget, run
from tests.oracles import scaffold as oracle
from tests.unit.scaffold.making import base, examples_for
from tests.unit.scaffold.plans import plan

KINDS = ("bert", "gpt2", "t5", "vit")
TEMPERATURES = {"gradient_l2": 1.0, "gradient_x_input": 0.1, "integrated_gradients": 0.5}


@pytest.fixture(autouse=True)
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that examples come in several batches, padded to their longest."""
    monkeypatch.setattr(training_sets, "GRADIENT_CHUNK", 3)
    monkeypatch.setattr(training_sets, "rows_at_once", lambda *asked, **more: 2)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_and_heads_are_those_of_each_example_alone(kind: str) -> None:
    model, examples = base(kind), examples_for(base(kind), 5)
    answers, heads = training_sets.predict_logits(model, examples), training_sets.head_scores(model, examples)
    for row, example in enumerate(examples):
        with torch.no_grad(), capture_attention(model.module) as recorder:
            logits = model.logits(model.collate([example]))
        assert np.allclose(answers[row], logits[0], atol=1e-9)
        [wanted] = oracle.mean_logits(recorder.logits, [len(example)], model.adapter.causal)
        assert heads[row].dtype == np.float32
        assert np.allclose(heads[row], wanted, atol=1e-5)


def scores(kind: str, setting: str) -> list[np.ndarray]:
    """Of the registered method for the predicted class, one example at a time."""
    model = base(kind)
    found = []
    for example in examples_for(model, 5):
        forget(model)
        with torch.no_grad():
            [answer] = model.predictions(model.logits(model.collate([example])), [example])
        given = {"steps": "fixed", "n_steps": 10, "baseline": "zero"} if setting == "integrated_gradients" else {}
        [one] = run(setting, Task(model, [TaskItem(example, answer, answer.index, 0)]), **given)
        found.append(one.scores)
    return found


@pytest.mark.parametrize("setting", GRADIENTS)
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_become_shares_at_their_temperature(kind: str, setting: str) -> None:
    model, examples = base(kind), examples_for(base(kind), 5)
    found = training_sets.static_maps(model, setting, examples)
    for ours, theirs, example in zip(found, scores(kind, setting), examples, strict=True):
        kept = np.exp((theirs - theirs.max())[~example.special] / TEMPERATURES[setting])
        assert np.allclose(ours[~example.special], kept / kept.sum(), atol=1e-5)
        assert not ours[example.special].any()


@pytest.mark.parametrize("setting", ATTENTION)
@pytest.mark.parametrize("kind", KINDS)
def test_attention_is_that_of_the_registered_methods(kind: str, setting: str) -> None:
    model = base(kind)
    found = training_sets.static_maps(model, setting, examples_for(model, 5))
    for ours, theirs in zip(found, scores(kind, setting), strict=True):
        assert np.allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("steps", [3, 6])
def test_more_steps_of_integrated_gradients_can_be_asked_for(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, asked, usual = base("bert"), [], training_sets.from_mapping
    monkeypatch.setattr(training_sets, "from_mapping", lambda *given: asked.append(given[1]) or usual(*given))
    training_sets.static_maps(model, "integrated_gradients", examples_for(model, 2), steps)
    assert [given["n_steps"] for given in asked] == [steps]


def test_the_stricter_baseline_learns_from_the_held_out_examples_too(tmp_path: Path) -> None:
    builder = training_sets.TrainingSetBuilder(plan(tmp_path))
    without, more, learned = (builder.collect(StudentRun(setting, 8, 0)) for setting in (NONE, HELD_OUT, SMAT))
    assert (len(without.train), len(more.train), len(more.held_out)) == (8, 13, 5)
    assert np.array_equal(more.train.teacher_logits[:8], without.train.teacher_logits)
    assert np.array_equal(more.train.teacher_logits[8:], learned.held_out.teacher_logits), "those of SMaT's outer loop"
    assert np.array_equal(more.test.teacher_logits, without.test.teacher_logits)
    assert more.train.heads is None
    assert more.train.maps is None
    assert Recipe().beta(HELD_OUT) == 0.0


def test_a_low_temperature_sharpens_and_huge_scores_stay_numbers() -> None:
    [example] = examples_for(base("bert"), 1)
    values = np.linspace(-5e4, 5e4, len(example))
    sharp = training_sets.distribution(values, example, 0.1)
    assert np.isfinite(sharp).all()
    assert sharp[example.features[-1]] == 1
    soft, usual = (training_sets.distribution(values / 5e4, example, t) for t in (2.0, 0.1))
    assert soft.max() < usual.max()
    assert soft.sum() == pytest.approx(1, abs=1e-6)


def test_rows_fit_into_the_memory_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    model, asked = base("bert"), []
    monkeypatch.setattr(
        training_sets, "rows_at_once", lambda *a, **more: asked.append((a[1], more)) or runtime.rows_at_once(*a, **more)
    )
    examples = examples_for(model, 3)
    training_sets.head_scores(model, examples)
    assert asked == [(max(map(len, examples)), {"attention": True})]
