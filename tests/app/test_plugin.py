"""The example plugin, installed by pip into a folder: each of its four parts on commands, pages, jobs and studies."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from tests.project import ROOT
from tests.tiny import save_checkpoint

EXAMPLE = ROOT / "examples" / "exegesis-example"
NOTE = "From the package exegesis-example 0.1, which is not part of Exegesis."


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which pip installed a copy of the example: building writes beside the source."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(EXAMPLE, folder / "source")
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    subprocess.run([*pip, "--target", str(folder / "installed"), str(folder / "source")], check=True)
    return folder / "installed"


@pytest.fixture(scope="module")
def data2vec(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A checkpoint of a family that only the plugin adds: RoBERTa's parts under other names."""
    folder = save_checkpoint("roberta", tmp_path_factory.mktemp("family") / "tiny")
    stated = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    stated = {name: value for name, value in stated.items() if name not in ("model_type", "architectures")}
    torch.manual_seed(0)
    module = transformers.Data2VecTextForSequenceClassification(transformers.Data2VecTextConfig(**stated))
    module.save_pretrained(str(folder))
    return str(folder)


@pytest.fixture(scope="module")
def tour(package: Path, data2vec: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `tests.plugin_tour` saw, with the package on the path."""
    home = tmp_path_factory.mktemp("home")
    path = os.pathsep.join([str(ROOT), str(package)])
    done = subprocess.run(
        [sys.executable, "-m", "tests.plugin_tour", data2vec], cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": path, "EXEGESIS_HOME": str(home)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_the_example_is_as_small_as_the_guide_says() -> None:
    assert len((EXAMPLE / "exegesis_example.py").read_text(encoding="utf-8").splitlines()) <= 70


def test_a_command_explains_by_its_method_on_its_family_and_data_and_names_the_package(tour: dict[str, Any]) -> None:
    explained = tour["explained"]
    scored = {one["text"].strip(): one["score"] for one in explained["features"] if not one["special"]}
    assert scored
    assert scored == {text: float(len(text)) for text in scored}
    assert NOTE in explained["notes"]
    assert explained["params"] == {"power": 1.0}
    assert "moods" in tour["datasets"]


def test_its_metric_is_measured_and_a_job_in_another_process_measures_the_same(tour: dict[str, Any]) -> None:
    def gini(result: dict[str, Any]) -> list[Any]:
        return [(one["method"], one["value"], one["n"]) for one in result["scores"] if one["metric"] == "gini"]

    ranks = {method: (value, n) for method, value, n in gini(tour["evaluated"])}
    assert set(ranks) == {"word_length", "random"}
    assert ranks["word_length"][1] == 4
    assert 0 < ranks["word_length"][0] < 1
    job = {method: value for method, value, _ in gini(tour["job"])}
    assert job["word_length"] == pytest.approx(ranks["word_length"][0])


def test_pages_offer_all_four_and_show_where_they_are_from(tour: dict[str, Any]) -> None:
    assert "Word length" in tour["text"]
    assert "exegesis-example 0.1" in tour["text"]
    *choices, leaderboard = tour["evaluate"]
    assert "Word length" in choices
    assert "Gini" in leaderboard
    assert "Word length" in tour["study"]
    added = "explainers: word_length; metrics: gini; models: data2vec-text; datasets: moods"
    assert added in tour["library"]
    [finding] = tour["findings"]
    assert (finding["name"], finding["status"]) == ("plugins", "ok")
    assert finding["detail"].startswith(f"exegesis-example 0.1: {added}")


def test_its_method_has_a_color_and_dash_of_its_own(tour: dict[str, Any]) -> None:
    assert tour["same style"] == ["word_length"]
