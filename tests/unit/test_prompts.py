"""Prompts through attacks, randomization, and changed texts: their classes stay those of the prompt."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from engine.attacks.attack import attack_many
from engine.attacks.plan import AttackRequest
from engine.behavior.subjects import text_subject
from engine.counterfactuals.search import SearchOptions
from engine.counterfactuals.texts import counterfactuals
from engine.errors import UsageError
from engine.models.causal import CausalModel
from engine.models.loading import load_model
from engine.predictions import predictions
from engine.randomization.experiment import randomize
from engine.request import Example, Prompt
from engine.result import OTHERS
from engine.rules.experiment import class_labels
from engine.scaffold.plan import ScaffoldPlan, check
from engine.substitution import Edit
from tests.tiny import save_causal
from tests.unit.randomization.making import reviews

pytestmark = pytest.mark.usefixtures("home")
TEXT = "the ending is warm and funny"


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_causal("llama", tmp_path_factory.mktemp("llama")))


def labels_of(llama: str, text: str = TEXT) -> tuple[str, ...]:
    model = load_model(llama)
    assert isinstance(model, CausalModel)
    return model.encode(Prompt(text)).labels


def test_an_attack_keeps_the_classes_and_the_target(llama: str) -> None:
    labels = labels_of(llama)
    prompts = [Prompt(TEXT), Prompt(TEXT, target=labels[2], contrast=labels[0]), Prompt(TEXT, target=labels[5])]
    own = {"steps": 20, "starts": 1, "epsilon": 0.2}
    found = attack_many([AttackRequest(llama, "gradient_x_input", prompt, own, dtype="float64") for prompt in prompts])
    moved = list[float]()
    for prompt, result in zip(prompts, found, strict=True):
        assert result.prediction.labels == result.prediction_after.labels
        assert result.provenance.target_label == (prompt.target or labels[0])
        assert sum(result.prediction_after.probabilities) == pytest.approx(1)
        moved.append(np.abs(result.after - result.before).max())
    assert max(moved) > 0


def test_a_randomized_model_is_asked_about_the_classes_of_the_original(llama: str, tmp_path: Path) -> None:
    [found] = randomize([llama], reviews(tmp_path), ["gradient_x_input"], examples=3, seeds=1).models
    assert found.targets == tuple(labels_of(llama, one)[0] for one in found_texts(tmp_path, found.examples))
    assert OTHERS not in found.targets
    assert (found.after[-1] != found.before).all()
    assert not found.failed


def found_texts(folder: Path, places: tuple[int, ...]) -> list[str]:
    rows = [json.loads(line) for line in (folder / "reviews.jsonl").read_text().splitlines()]
    return [rows[place]["text"] for place in places]


def test_a_counterfactual_flips_the_next_token(llama: str) -> None:
    labels = labels_of(llama)
    options = SearchOptions(sources=("delete", "nearest"), candidates=4)
    for example in (Example(TEXT), Prompt(TEXT, target=labels[0], contrast=labels[1])):
        found = counterfactuals(llama, example, options=options)
        assert found.original.label == labels[0]
        assert found.results
        for one in found.results:
            assert one.prediction.labels == found.original.labels
            assert one.prediction.label != OTHERS
            assert one.prediction.index != found.original.index
            assert predictions(llama, [one.example]) == [one.prediction]
        assert counterfactuals(llama, example, options=options) == found, "as it was stored"


def test_questions_about_a_prompt_are_about_its_target(llama: str) -> None:
    labels = labels_of(llama)
    model = load_model(llama)
    subject = text_subject(model, Prompt(TEXT, target=labels[3]))
    assert (subject.label, subject.target) == (labels[3], 3)
    [whole, shorter] = subject.probabilities([[], [Edit(subject.words[1])]])
    [expected] = predictions(llama, [Prompt(TEXT)])
    assert whole.tolist() == pytest.approx(expected.probabilities)
    [named] = predictions(llama, [Prompt("the is warm and funny", target=labels[3])])
    assert shorter[3] == pytest.approx(named.probabilities[named.labels.index(labels[3])])


def test_what_needs_the_same_classes_for_all_inputs_refuses_a_language_model(llama: str) -> None:
    with pytest.raises(UsageError, match=r"models: .* is a language model, .* Rules need a classifier"):
        class_labels(llama)
    with pytest.raises(UsageError, match=r"teacher: .* is a language model, .* Choose a classifier"):
        check(ScaffoldPlan(teacher=llama, dataset="reviews"))
