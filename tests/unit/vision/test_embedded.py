"""The image models that come with the project are what their cards say."""

from __future__ import annotations

import shlex

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from engine.cli.root import app
from engine.data.examples import ImageDataset
from engine.data.image_datasets import load_images
from engine.data.registry import data_root
from engine.models import catalog
from engine.models.inspection import check_weights
from engine.models.loading import load_image_model
from engine.request import Picture
from engine.vision.classifier import ImageClassifier

LARGEST = 6 * 10**6
FRESH = "seed=11,count=200"
"""Scenes that no training and no card has seen."""
MEASURED: dict[str, list[tuple[str, str, float, float]]] = {
    "digits-vit": [("digits", "test", 0.95, 1.0)],
    "photos-vit": [("cifar10", "test", 0.6, 1.0)],
    "scenes-marked-vit": [
        (f"scenes-marked:{FRESH}", "test", 0.99, 1.0),
        (f"scenes-marked:{FRESH}", "unmarked", 0.03, 0.19),
    ],
    "scenes-vit": [(f"scenes:{FRESH}", "test", 0.95, 1.0)],
}
"""Data, split, and the bounds between which the accuracy lies; photos-vit is measured on the first 500 pictures."""
PROMISED = {"digits-vit": 0.95, "photos-vit": 0.65, "scenes-marked-vit": 0.99, "scenes-vit": 0.95}
"""Accuracy on the whole test split, as the card states it."""

QUICKEST = "digits-vit"
measured = pytest.mark.slow(reason="measures a model on hundreds of pictures")

names = pytest.mark.parametrize("name", catalog.embedded_image_models())


def accuracy(model: ImageClassifier, data: ImageDataset) -> float:
    """Share of right answers, each picture through the model's own preprocessing."""
    examples = list(data)
    with torch.inference_mode():
        encoded = [model.encode(Picture(example.pixels)) for example in examples]
        predictions = model.predictions(model.logits(model.collate(encoded)), encoded)
    return float(np.mean([p.index == e.label for p, e in zip(predictions, examples, strict=True)]))


def test_each_of_them_has_its_measures_here() -> None:
    assert set(catalog.embedded_image_models()) <= set(MEASURED) == set(PROMISED)


@names
def test_weights_are_small_and_match_their_card(name: str) -> None:
    card, source = catalog.card(name), catalog.locate(name)
    assert check_weights(name)["ok"]
    assert card["bytes"] == sum(file.stat().st_size for file in source.folder.glob("*.safetensors")) < LARGEST
    assert card["title"] == name
    assert card["command"] in (source.folder / "card.md").read_text()
    assert card["scores"]["test"]["value"] >= PROMISED[name]


@names
def test_the_command_on_its_card_is_one_that_is_understood(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from engine.training import image_training

    configs = []

    def stop(config: object, *rest: object) -> None:
        configs.append(config)
        raise SystemExit(0)

    monkeypatch.setattr(image_training, "train_images", stop)
    CliRunner().invoke(app, shlex.split(catalog.card(name)["command"])[1:])
    [config] = configs
    settings = catalog.card(name)["settings"]
    assert {key: getattr(config, key) for key in settings if key != "checkpoint_steps"} == {
        key: value for key, value in settings.items() if key != "checkpoint_steps"
    }


@pytest.mark.parametrize(
    "name",
    [name if name == QUICKEST else pytest.param(name, marks=measured) for name in catalog.embedded_image_models()],
)
def test_it_answers_as_well_as_its_card_says(name: str) -> None:
    model = load_image_model(name)
    for data, split, low, high in MEASURED[name]:
        if data == "cifar10" and not (data_root() / "cifar10.zip").is_file():
            pytest.skip("needs the local CIFAR-10 (EXEGESIS_DATA/cifar10.zip)")
        assert low <= accuracy(model, load_images(data, split=split, limit=500)) <= high


def test_a_patch_of_digits_vit_is_one_gray_value() -> None:
    model = load_image_model("digits-vit")
    encoded = model.encode(Picture(load_images("digits")[0].pixels))
    blocks = encoded.pixels.reshape(8, 4, 8, 4, 3)
    assert encoded.grid == (8, 8)
    assert np.array_equal(blocks.min((1, 3)), blocks.max((1, 3)))
