"""`exegesis empirical` on pictures: one command trains and prints the table of errors; its maps are served."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from engine.cli.empirical import usage
from engine.empirical import explainer as trained_explainers
from tests.unit.cli.conftest import Run
from tests.unit.vision.tiny_vit import blobs, save_vit

SMALL = ("--dataset", "scenes:count=20", "--train-size", "10", "--held-out", "5")
FEW = ("--param", "n_samples=12")


@pytest.fixture
def vit(own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(trained_explainers, "SHIPPED", tmp_path / "shipped")
    return str(save_vit(tmp_path / "tiny"))


def test_one_command_trains_and_another_explains_a_picture(run: Run, vit: str, tmp_path: Path) -> None:
    trained = run("empirical", "train", "--model", vit, "--out", "fast", *SMALL, *FEW)
    assert trained.code == 0, trained.err
    table = trained.out
    for name in ("predicted class", "other classes", "mean score everywhere", "mean map", "gradient x input"):
        assert any(line.startswith(name) for line in table.splitlines()), name
    assert f"exegesis explain --model {vit} --method empirical --param of=fast --image F" in " ".join(table.split())
    [listed] = json.loads(run("empirical", "list", "--json").out)
    assert (listed["name"], listed["kind"], listed["usable"]) == ("fast", "image", True)
    assert listed["params"]["n_samples"] == 12
    assert listed["training_passes"] == pytest.approx(15 * listed["passes"])
    own = trained_explainers.load(trained_explainers.explainers_folder() / "fast")
    nothing = replace(own.card.errors[own.card.OWN], relative=1.0)
    assert usage(replace(own, card=replace(own.card, errors={own.card.OWN: nothing})), pairs=False).startswith(
        "It predicts nothing: a map of zeros has an error of 1."
    )
    nearly = replace(own.card, kind="text", errors={own.card.OWN: replace(nothing, relative=0.99)})
    assert usage(replace(own, card=nearly), pairs=True).endswith("--text '...' --text-pair '...'")
    Image.fromarray(blobs(1).pixels).save(tmp_path / "mine.png")
    done = run("explain", "--model", vit, "--method", "empirical", "--image", str(tmp_path / "mine.png"), "--json")
    assert done.code == 0, done.err
    [explained] = done.json
    assert (explained["method"], explained["grid"], len(explained["scores"])) == ("empirical", [3, 3], 9)
    assert explained["params"]["of"].startswith("fast@")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("--method", "least_sensitive"), "method for images: unknown name 'least_sensitive'"),
        (("--method", "grad_cam"), "method: must be a costly method"),
        (("--param", "removal=mask"), "kernel_shap.removal: must be one of mean, zero, blur, drop"),
        (("--dataset", "reviews"), "dataset: reviews holds texts, but the models read pictures"),
    ],
)
def test_what_does_not_fit_pictures_is_refused(run: Run, vit: str, given: tuple[str, ...], words: str) -> None:
    options = SMALL if "--dataset" not in given else SMALL[2:]
    assert words in " ".join(run("empirical", "train", "--model", vit, *options, *given).complaint(2).split())
