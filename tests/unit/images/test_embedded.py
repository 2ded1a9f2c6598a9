"""The image models that come with the project are what their cards say."""

from __future__ import annotations

import shlex

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from engine.cli.root import app
from engine.data.images.datasets import ImageDataset, load_images
from engine.models import catalog
from engine.models.inspection import stored_weights
from engine.vision.classifier import ImageClassifier
from engine.vision.load import load_image_model

LARGEST = 6 * 10**6
AT_LEAST = {"digits-vit": 0.95}
"""Accuracy on the test split, and what is read of it here."""

names = pytest.mark.parametrize("name", catalog.embedded_image_models())


def accuracy(model: ImageClassifier, data: ImageDataset) -> float:
    """Share of right answers, each picture through the model's own preprocessing."""
    examples = list(data)
    with torch.inference_mode():
        logits = model.logits(model.collate([model.encode(example.pixels) for example in examples]))
    return float(np.mean([p.index == e.label for p, e in zip(model.predictions(logits), examples, strict=True)]))


def test_each_of_them_has_a_measure_here() -> None:
    assert set(catalog.embedded_image_models()) == set(AT_LEAST)


@names
def test_weights_are_small_and_match_their_card(name: str) -> None:
    card, source = catalog.card(name), catalog.locate(name)
    assert stored_weights(name)["ok"]
    assert card["bytes"] == sum(file.stat().st_size for file in source.folder.glob("*.safetensors")) < LARGEST
    assert card["title"] == name
    assert card["command"] in (source.folder / "card.md").read_text()
    assert card["scores"]["test"]["value"] >= AT_LEAST[name]


@names
def test_the_command_on_its_card_is_one_that_is_understood(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.training.images import trainer

    asked = []

    def stop(config: object, *rest: object) -> None:
        asked.append(config)
        raise SystemExit(0)

    monkeypatch.setattr(trainer, "train_images", stop)
    CliRunner().invoke(app, shlex.split(catalog.card(name)["command"])[1:])
    [config] = asked
    settings = catalog.card(name)["settings"]
    assert {key: getattr(config, key) for key in settings if key != "checkpoint_steps"} == {
        key: value for key, value in settings.items() if key != "checkpoint_steps"
    }


def test_digits_are_read_as_the_card_says() -> None:
    model, card = load_image_model("digits-vit"), catalog.card("digits-vit")
    measured = accuracy(model, load_images("digits", split="test"))
    assert measured == pytest.approx(card["scores"]["test"]["value"], abs=0.003)
    assert model.grid == (8, 8)
