"""What is said of an evaluation before its work is what is said after it, and no model is loaded for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.data.labels import match_classes
from engine.data.sources import load_source
from engine.evaluation.experiment import class_notes
from engine.evaluation.plan import EvaluationPlan
from engine.experiments.run import carry_out
from engine.models import loading
from engine.models.catalog import config_labels, model_labels
from tests.explaining import checkpoint
from tests.unit.evaluation.making import REVIEWS, written

pytestmark = pytest.mark.usefixtures("home")


def test_classes_that_are_not_the_models_are_told_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, model = written(tmp_path / "reviews.jsonl", REVIEWS), str(checkpoint("bert", 3))
    plan = EvaluationPlan((model, "reviews-minilm"), data, ("random",), ("evaluations",), examples=1)
    with monkeypatch.context() as patched:
        patched.setattr(loading, "load_model", None)
        told = class_notes(plan, load_source("text", data))
    assert list(told.values()) == [[model], ["reviews-minilm"]]
    assert carry_out(plan).class_notes == tuple(told)
    assert class_notes(plan, load_source("text", "reviews")).keys() == {told_of(model)}, "its own model knows them"


def told_of(model: str) -> str:
    source = load_source("text", "reviews")
    return match_classes(source.labels, loading.load_model(model).labels, source.unnamed).note


@pytest.mark.parametrize("model", ["reviews-minilm", "nli-minilm"])
def test_labels_are_those_of_the_loaded_model(model: str) -> None:
    assert model_labels(model) == loading.load_model(model).labels


def test_labels_that_nobody_named_are_numbered() -> None:
    assert config_labels({"num_labels": 3}) == ("LABEL_0", "LABEL_1", "LABEL_2")
    assert config_labels({"id2label": {"1": "b", "0": "a"}}) == ("a", "b")
    assert len(config_labels({})) == 2
