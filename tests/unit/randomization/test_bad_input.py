"""What is refused in one line, and what is odd but allowed: one block, a text too short, a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.errors import ExegesisError, UsageError
from engine.experiments.run import check
from engine.models.classifier import AnyClassifier
from engine.randomization.curves import NO_ANSWER, curves_of, verdicts_of
from engine.randomization.experiment import randomize
from engine.randomization.model_copy import Weights, copy_of, reinitialize
from engine.randomization.plan import RandomizationPlan
from engine.randomization.result import MEASURES, not_applicable, stages_of
from tests.explaining import checkpoint, classifier
from tests.unit.evaluation.making import written
from tests.unit.randomization.making import TEXTS, reviews, serve
from tests.unit.vision.tiny_vit import save_vit

pytestmark = pytest.mark.usefixtures("home")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"modes": ("cascade",)}, "mode: unknown name 'cascade'. Did you mean 'cascading'?"),
        ({"modes": ()}, "modes: must name at least one"),
        ({"methods": ("random",)}, "methods: random does not depend on the model, so the check cannot test it"),
        ({"methods": ("grad_cam",)}, "method: unknown name 'grad_cam'"),
        ({"methods": ("gradient", "gradient")}, "methods: must be different names"),
        ({"seeds": 0}, "seeds: must be a whole number of at least 1, got 0"),
        ({"examples": True}, "examples: must be a whole number of at least 1, got True"),
        ({"seed": -1}, "seed: must be a whole number of at least 0, got -1"),
        ({"dtype": "int8"}, "dtype: unknown name 'int8'"),
        ({"models": ("bert-marked", "digits-vit")}, "models: bert-marked and digits-vit must both read texts"),
        ({"params": {"lime": {}}}, "params: method: unknown name 'lime'"),
        ({"params": {"gradient": {"x": 1}}}, "parameter of gradient: unknown name 'x'"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        check(replace(RandomizationPlan(("bert-marked",), "reviews"), **given))
    assert told in str(caught.value)


def test_the_stages_of_a_cascade_and_of_one_block() -> None:
    plan = RandomizationPlan(("m",), "d", head=True, embeddings=True)
    made = [(one.mode[0], one.block, len(one.parts)) for one in stages_of(plan, 2)]
    assert made == [
        ("c", "head", 1), ("c", "2", 2), ("c", "1", 3), ("c", "embeddings", 4),
        ("i", "head", 1), ("i", "2", 1), ("i", "1", 1), ("i", "embeddings", 1),
    ]  # fmt: skip
    alone = stages_of(RandomizationPlan(("m",), "d"), 1)
    assert [(one.mode, one.parts) for one in alone] == [("cascading", ("1",)), ("independent", ("1",))]


def test_a_vit_of_one_block_is_checked_with_ssim(tmp_path: Path) -> None:
    folder = str(save_vit(tmp_path / "vit", image=64, num_hidden_layers=1))
    methods = ("gradient_l2", "attention_rollout")
    [found] = randomize([folder], "digits", methods, examples=2, seeds=1).models
    assert (found.blocks, len(found.stages)) == (1, 2)
    assert np.array_equal(found.likeness[0], found.likeness[1], equal_nan=True)
    seen = found.likeness[0, 0, :, MEASURES.index("ssim")]
    assert np.isfinite(seen[: len(methods)]).all()
    assert (seen < 0.999).all()
    assert not found.failed


def test_examples_that_fail_are_left_out_with_the_reason(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"text": "a quiet triumph and the acting never falters", "label": 1}, {"text": "lovely view", "label": 1},
        {"text": "the film is a quiet triumph and the acting never falters although the plot drags", "label": 0},
        {"text": 5, "label": 0},
    ]  # fmt: skip
    data = written(tmp_path / "some.jsonl", rows)
    [found] = randomize([str(checkpoint("bert"))], data, ["exact_shapley"], seeds=1, modes=("cascading",)).models
    assert set(found.examples) == {0, 1, 2}
    assert list(found.failed) == [3]
    assert not found.complete
    place, long = found.examples.index(1), found.examples.index(2)
    assert "14" in found.reason(0, 0, 0, long)
    assert found.reason(0, 0, 0, place) == ""


def test_a_model_that_gives_no_numbers_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = classifier("bert", dtype="float32")
    module: Any = copy_of(model.module)
    module.classifier.weight = torch.nn.Parameter(torch.full_like(module.classifier.weight, torch.nan), False)
    serve(monkeypatch, replace(model, module=module, memo={}))
    [found] = randomize([str(checkpoint("bert"))], reviews(tmp_path), ["gradient_l2"], seeds=1).models
    assert (found.examples, found.complete) == ((), False)
    [why] = set(found.failed.values())
    assert "logits" in why
    assert [point.skipped for point in curves_of(found)[0].points] == [{why: len(TEXTS)}] * 3
    assert [made.kind for made in verdicts_of(found)] == ["no_order", "baseline"]


def test_where_a_randomized_model_gives_no_numbers_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(model: AnyClassifier, part: str, names: Sequence[str], seed: int) -> Weights:
        made = reinitialize(model, part, names, seed)
        return {name: values * torch.nan for name, values in made.items()} if part == "2" else made

    asked = ([str(checkpoint("bert"))], reviews(tmp_path), ["gradient_l2"])
    with monkeypatch.context() as patch:
        patch.setattr("engine.randomization.model_copy.reinitialize", broken)
        [found] = randomize(*asked, seeds=1).models
    curves = {(curve.mode, curve.method, curve.metric): curve.points for curve in curves_of(found)}
    said, rho = curves["independent", "", "probability"], curves["independent", "gradient_l2", "spearman"]
    assert [point.n for point in said] == [point.n for point in rho] == [len(TEXTS), 0, len(TEXTS)]
    assert said[1].skipped == {NO_ANSWER: len(TEXTS)}
    [(why, count)] = rho[1].skipped.items()
    assert (why.startswith("model"), "scores by gradient_l2" in why, count) == (True, True, len(TEXTS)), why
    assert not found.complete
    [again] = randomize(*asked, seeds=1).models
    assert again.complete, "what failed was tried again"


def test_why_a_method_is_not_what_the_check_is_meant_for() -> None:
    assert not_applicable("kernel_shap").startswith("it uses only the model's predictions")
    assert not_applicable("ensemble_all")
    assert not_applicable("gradient") == ""


def test_a_data_set_of_the_other_kind_is_refused() -> None:
    with pytest.raises(ExegesisError, match="dataset: digits holds pictures"):
        randomize(["bert-marked"], "digits")
