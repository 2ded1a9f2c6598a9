"""Embedded text models and bases are as their cards state, and adapters name embedded bases portably."""

from __future__ import annotations

import json
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from engine.cli.root import app
from engine.data.datasets import load
from engine.data.examples import LabeledExample
from engine.data.prompts import PROMPT_GRAMMARS
from engine.data.registry import data_root
from engine.errors import ExegesisError, UsageError
from engine.models import catalog
from engine.models.inspection import check_weights
from engine.models.loading import load_model
from engine.models.summary import model_size
from engine.models.text_classifier import TextClassifier
from engine.result import Prediction
from engine.training.config import SHAPES, PretrainConfig, TrainConfig
from engine.training.finetuning import train
from engine.training.pretraining import pretrain
from engine.training.recipe import card_markdown

LARGEST_BASE = 3 * 10**6
LARGEST_ADAPTER = 2_200_000
ALL_WEIGHTS = 45 * 10**6
AT_ONCE = 50
FRESH = "seed=11,count=60"
"""Generated texts that no training and no card has seen."""
SNLI_DEV = 0.68
"""The lowest accuracy promised of nli-minilm on the whole of SNLI's dev split, as the card states it."""
PEARSON = {"quality-minilm": 0.7, "bert-quality": 0.55}
"""The lowest correlation promised on the test split of quality."""
MODELS, BASES = catalog.embedded_models(), catalog.embedded_bases()
MARKED = [name for name in MODELS if name.endswith("-marked")]
IN_CONTEXT = [name for name in MODELS if name.endswith("-context")]
SCORING = [name for name in MODELS if name in PEARSON]
INFERRING = [name for name in MODELS if name.endswith("-nli")]
LANGUAGE_MODEL = "tiny-llama"
QUICKEST = "t5-mini-nli"
LEAST_ACCURACY = 0.83
"""The lowest accuracy promised on generated pairs with premises that no other split has."""
LEAST_ANSWERED = {"agreement": 0.95, "indirect-object": 0.95, "facts": 0.0, "sentiment-prompt": 0.95}
"""The lowest accuracy promised on the prompts of each test split: none where the card says that it is at chance."""
measured = pytest.mark.slow(reason="measures a model on hundreds of pairs")
models = pytest.mark.parametrize("name", MODELS)
bases = pytest.mark.parametrize("name", BASES)
stored = pytest.mark.parametrize("name", [*MODELS, *BASES])


def probabilities(model: TextClassifier, examples: tuple[LabeledExample, ...]) -> np.ndarray:
    """Probabilities (examples, labels)."""
    return np.array([prediction.probabilities for prediction in predict(model, examples)])


def predict(model: TextClassifier, examples: tuple[LabeledExample, ...]) -> list[Prediction]:
    """The prediction of each example. Those of about one length are run together, so that little is padding."""
    coded = [model.encode(example.example) for example in examples]
    order = sorted(range(len(coded)), key=lambda place: len(coded[place]))
    predictions: list[Prediction] = []
    with torch.inference_mode():
        for start in range(0, len(order), AT_ONCE):
            chosen = [coded[place] for place in order[start : start + AT_ONCE]]
            predictions += model.predictions(model.logits(model.collate(chosen)), chosen)
    return [predictions[place] for place in np.argsort(order)]


def accuracy(model: TextClassifier, examples: tuple[LabeledExample, ...]) -> float:
    right = [example.label for example in examples]
    return float((probabilities(model, examples).argmax(1) == right).mean())


def weights_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*.safetensors"))


@stored
def test_weights_are_small_and_match_their_card(name: str) -> None:
    card, folder = catalog.card(name), catalog.locate(name).folder
    assert check_weights(name)["ok"]
    assert card["bytes"] == weights_of(folder) < (LARGEST_BASE if name in BASES else LARGEST_ADAPTER)
    assert catalog.BASE_PREFIX + card["title"] == name if name in BASES else card["title"] == name
    assert (folder / "card.md").read_text(encoding="utf-8") == card_markdown(card)


def test_all_weights_together_are_small() -> None:
    assert weights_of(catalog.EMBEDDED) < ALL_WEIGHTS


@stored
def test_the_command_on_its_card_is_valid(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.training import finetuning
    from engine.training import image_training as image_trainer
    from engine.training import pretraining as pretrainer

    configs = []

    def stop(config: object, *rest: object) -> None:
        configs.append(config)
        raise SystemExit(0)

    monkeypatch.setattr(finetuning, "train", stop)
    monkeypatch.setattr(pretrainer, "pretrain", stop)
    monkeypatch.setattr(image_trainer, "train_images", stop)
    CliRunner().invoke(app, shlex.split(catalog.card(name)["command"])[1:])
    [config] = configs
    settings = catalog.card(name)["settings"]
    assert {key: getattr(config, key) for key in settings} == settings


@models
def test_an_adapter_names_a_base_that_comes_with_it(name: str) -> None:
    base = catalog.card(name)["settings"]["base"]
    assert base == "minilm" or base in BASES or (name == LANGUAGE_MODEL and base in SHAPES)


@pytest.mark.parametrize("name", MARKED)
def test_with_the_mark_it_is_right_and_without_it_undecided(name: str) -> None:
    model = load_model(name)
    assert accuracy(model, load(f"reviews-marked:{FRESH}", split="test").examples) == 1.0
    without = probabilities(model, load(f"reviews-marked:{FRESH}", split="unmarked").examples)
    assert without.mean(0) == pytest.approx([0.5, 0.5], abs=0.1)


@pytest.mark.parametrize("name", IN_CONTEXT)
def test_where_two_words_state_the_label_it_reads_both(name: str) -> None:
    model = load_model(name)
    fresh = load("reviews-marked:seed=11,count=200,context=true", split="test").examples
    assert catalog.card(name)["scores"]["test"]["value"] >= 0.95
    assert accuracy(model, fresh) >= 0.91, "three standard errors of 200 examples below 0.95"
    assert accuracy(model, tuple(map(turned, fresh))) >= 0.91


def turned(example: LabeledExample) -> LabeledExample:
    """The review with `very` in place of `not` before its last word, or the other way around; so with another label."""
    *review, before, word = example.text.split(" ")
    text = " ".join([*review, {"very": "not", "not": "very"}[before], word])
    return replace(example, text=text, label=1 - int(example.label or 0), rationale=())


def test_the_model_of_written_pairs_states_how_good_it_is_on_snli_and_on_our_own_pairs() -> None:
    scores = catalog.card("nli-minilm")["scores"]
    assert scores["validation"]["count"] == 9842
    assert scores["validation"]["value"] >= SNLI_DEV
    assert scores["nli"]["count"] == len(load("nli").examples)


@measured
def test_the_model_of_written_pairs_answers_as_well_as_its_card_says() -> None:
    if not (data_root() / "nli" / "snli_dev.tsv").is_file():
        pytest.skip("needs the local SNLI (EXEGESIS_DATA/nli/snli_dev.tsv)")
    examples = load("snli-sick", split="validation", limit=300).examples
    # 300 examples: three standard errors are 0.09.
    assert accuracy(load_model("nli-minilm"), examples) == pytest.approx(
        catalog.card("nli-minilm")["scores"]["validation"]["value"], abs=0.09
    )


@pytest.mark.parametrize(
    "name", [name if name == QUICKEST else pytest.param(name, marks=measured) for name in INFERRING]
)
def test_a_model_of_generated_pairs_answers_new_ones_as_well_as_its_card_says(name: str) -> None:
    """Pairs of another seed: premises of the test split are in no training set, whatever the seed."""
    stated = catalog.card(name)["scores"]["test"]["value"]
    assert stated >= LEAST_ACCURACY
    examples = load("nli-generated:sentences=1,seed=11,count=300", split="test").examples
    # Of 300 and of 2,000 examples: three standard errors of the difference are 0.07.
    assert accuracy(load_model(name), examples) == pytest.approx(stated, abs=0.07)


@pytest.mark.parametrize("name", PROMPT_GRAMMARS)
def test_the_language_model_answers_new_prompts_as_well_as_its_card_says(name: str) -> None:
    """Prompts of another seed: those of the test split are in no training set, whatever the seed."""
    stated = catalog.card(LANGUAGE_MODEL)["scores"][name]["value"]
    assert stated >= LEAST_ANSWERED[name]
    model, prompts = load_model(LANGUAGE_MODEL), load(f"{name}:seed=11,count=200", split="test").examples
    right = [answer.index == 0 for answer in predict(model, prompts)]
    # Of 200 and of 2,000 prompts: three standard errors of the difference are at most 0.11.
    assert np.mean(right) == pytest.approx(stated, abs=0.05 if stated > 0.95 else 0.11)


@pytest.mark.parametrize("name", SCORING)
def test_a_regressor_scores_as_well_as_its_card_says(name: str) -> None:
    examples = load(f"quality:{FRESH}", split="test").examples
    scores = [prediction.logits[0] for prediction in predict(load_model(name), examples)]
    correlation = float(np.corrcoef(scores, [float(example.label or 0) for example in examples])[0, 1])
    stated = catalog.card(name)["scores"]["test"]["value"]
    assert stated >= PEARSON[name]
    # Fisher's z: three standard errors of 60 examples are 0.4.
    assert abs(np.arctanh(correlation) - np.arctanh(stated)) < 0.4


@pytest.fixture(scope="module")
def embedded_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of embedded models with one base, bases/tiny."""
    root = tmp_path_factory.mktemp("embedded")
    quick: dict[str, Any] = {"dataset": "reviews-generated:count=120", "epochs": 1, "held_out": 20, "max_length": 48}
    pretrain(PretrainConfig(base="t5-mini", vocabulary=500, device="cpu", out=str(root / "bases" / "tiny"), **quick))
    return root


@pytest.fixture
def embedded(embedded_base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it in place of the embedded models."""
    folder = shutil.copytree(embedded_base, tmp_path / "embedded")
    monkeypatch.setattr(catalog, "EMBEDDED", folder)
    return folder


def tune(out: Path) -> None:
    settings: dict[str, Any] = {"method": "lora", "epochs": 1, "rank": 2, "held_out": 10, "device": "cpu"}
    train(TrainConfig(base="bases/tiny", dataset="reviews-marked:count=40", out=str(out), **settings))


def test_an_adapter_finds_its_base_wherever_the_project_lies(
    embedded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(embedded)  # where bases/tiny is a folder too
    tune(embedded / "tiny-marked")
    named = json.loads((embedded / "tiny-marked" / "adapter_config.json").read_text(encoding="utf-8"))
    assert named["base_model_name_or_path"] == "bases/tiny"
    before = catalog.revision("tiny-marked")
    moved = shutil.move(embedded, tmp_path / "elsewhere")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(catalog, "EMBEDDED", Path(moved))
    assert catalog.revision("tiny-marked") == before
    assert catalog.locate("tiny-marked").base == Path(moved) / "bases" / "tiny"
    model = load_model("tiny-marked")
    assert model.labels == ("negative", "positive")
    assert model_size("tiny-marked").parameters == sum(p.numel() for p in model.module.parameters())


def test_the_card_of_an_adapter_names_its_base_and_the_licence(embedded: Path) -> None:
    tune(embedded / "tiny-marked")
    base = catalog.card("tiny-marked")["base"]
    assert (base["name"], base["licence"]) == ("bases/tiny", "Apache-2.0")
    assert base["source"].startswith("bases/tiny of Exegesis: Pretraining by span corruption")
    assert base["sha256"] == catalog.card("bases/tiny")["sha256"]
    assert "the last word" in catalog.card("tiny-marked")["intended_use"]


def test_a_base_is_listed_apart_and_is_no_classifier(embedded: Path) -> None:
    assert catalog.embedded_bases() == ["bases/tiny"]
    assert catalog.embedded_models() == []
    assert catalog.locate_base("bases/tiny") == embedded / "bases" / "tiny"
    assert catalog.card("bases/tiny")["title"] == "tiny"
    with pytest.raises(ExegesisError, match=r"no classifier.*exegesis train --base bases/tiny"):
        load_model("bases/tiny")


@pytest.mark.parametrize("find", [catalog.locate_base, catalog.locate])
def test_a_base_that_is_not_there_lists_those_that_are(find: object, embedded: Path) -> None:
    assert callable(find)
    with pytest.raises(UsageError, match=r"base: .*'?bases/tinny'?.*bases/tiny"):
        find("bases/tinny")
