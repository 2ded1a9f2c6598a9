"""Adapters on bases that come with the project name them by name, and so work wherever the project lies."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from engine.errors import ExegesisError, UsageError
from engine.models import catalog
from engine.models.loading import load_model
from engine.models.sizes import model_size
from engine.training.config import PretrainConfig, TrainConfig
from engine.training.finetuning import train
from engine.training.pretraining import pretrain


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of embedded models with one base, bases/tiny."""
    root = tmp_path_factory.mktemp("embedded")
    quick: dict[str, Any] = {"dataset": "reviews-generated:count=120", "epochs": 1, "held_out": 20, "max_length": 48}
    pretrain(PretrainConfig(base="t5-mini", vocabulary=500, device="cpu", out=str(root / "bases" / "tiny"), **quick))
    return root


@pytest.fixture
def embedded(shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it where the project looks for embedded models."""
    folder = shutil.copytree(shipped, tmp_path / "embedded")
    monkeypatch.setattr(catalog, "EMBEDDED", folder)
    return folder


def tuned(out: Path) -> None:
    settings: dict[str, Any] = {"method": "lora", "epochs": 1, "rank": 2, "held_out": 10, "device": "cpu"}
    train(TrainConfig(base="bases/tiny", dataset="reviews-marked:count=40", out=str(out), **settings))


def test_an_adapter_finds_its_base_wherever_the_project_lies(
    embedded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(embedded)  # where bases/tiny is a folder too
    tuned(embedded / "tiny-marked")
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
    tuned(embedded / "tiny-marked")
    base = catalog.card("tiny-marked")["base"]
    assert (base["name"], base["licence"]) == ("bases/tiny", "Apache-2.0")
    assert base["source"].startswith("bases/tiny of Exegesis: Pre-training by hidden spans")
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
