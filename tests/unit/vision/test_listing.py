"""What `exegesis models` and `exegesis datasets` say of image models and picture sets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from engine.cli.root import app
from engine.models import catalog
from engine.models.inspection import inspect_model
from engine.models.summary import stored_parameters
from tests.unit.data.conftest import class_files, zipped
from tests.unit.vision.tiny_vit import save_vit


def printed(*args: str) -> str:
    done = CliRunner().invoke(app, list(args))
    assert done.exit_code == 0, done.output
    return done.stdout


def test_an_image_model_is_loaded_and_checked(tmp_path: Path) -> None:
    folder = str(save_vit(tmp_path / "vit", image=(24, 40)))
    facts = json.loads(printed("models", folder, "--json"))
    assert (facts["family"], facts["labels"]) == ("ViT", ["cat", "dog", "eel"])
    assert (facts["picture"], facts["patches"]) == ("40 x 24 pixels", "3 rows x 5 columns of 8 x 8 pixels")
    assert [(check["name"], check["ok"]) for check in facts["checks"]] == [("a picture runs", True)]
    assert facts["parameters"] == stored_parameters(folder)
    assert "ok  a picture runs: gray is " in printed("models", folder)


def test_an_embedded_image_model_is_listed_apart_from_text_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save_vit(tmp_path / "tiny-vit")
    (folder / "card.json").write_text(json.dumps({"labels": ["cat"], "sha256": "0" * 64, "licence": "CC0"}))
    monkeypatch.setattr(catalog, "EMBEDDED", tmp_path)
    assert (catalog.embedded_models(), catalog.embedded_image_models()) == ([], ["tiny-vit"])
    assert catalog.locate("tiny-vit").kind == "embedded"
    assert [row["name"] for row in json.loads(printed("models", "--json"))] == ["tiny-vit"]
    checks = {check["name"]: check["ok"] for check in inspect_model("tiny-vit")["checks"]}
    assert checks == {"a picture runs": True, "weights match the card": False}


def test_picture_sets_are_listed_and_described(tmp_path: Path) -> None:
    named = {row["name"] for row in json.loads(printed("datasets", "--json"))}
    assert {"scenes", "scenes-marked", "digits", "photos", "cifar10", "reviews"} <= named
    facts = json.loads(printed("datasets", "scenes:count=30", "--json"))
    assert (facts["examples"], facts["labels"]["fish"], facts["first_picture"]) == (30, 3, "64 x 64 pixels")
    line = printed("datasets", str(zipped(tmp_path / "set.zip", class_files())), "--split", "train")
    assert "blue: 3, red: 3" in line.replace("\n", " ")


def test_columns_are_for_parquet_files() -> None:
    done = CliRunner().invoke(app, ["datasets", "scenes", "--column", "text=a"])
    assert done.exit_code == 2
