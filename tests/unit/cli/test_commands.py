"""models, datasets, app and train: what they print and how they end."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest
import typer

from engine.cli.root import app
from engine.models import catalog
from engine.request import Example, Request
from tests.unit.cli.conftest import Run

COMMANDS = (
    "app", "ask", "attack", "behavior", "compare", "concepts", "corpus", "counterfactuals", "empirical", "evaluate",
    "explain", "generate", "heads", "layers", "pretrain", "randomize", "reproduce", "rules", "scaffold", "significance",
    "similarity", "slide",
    "suppressor", "train", "maps", "models", "datasets", "jobs", "cache", "study", "doctor",
)  # fmt: skip


def test_help_lists_the_commands_and_no_others(run: Run) -> None:
    listed = run("--help").out.partition("Commands:")[2].split("\n")
    assert sorted(line.split()[0] for line in listed if line.strip()) == sorted(COMMANDS)
    assert run().out == run("--help").out


@pytest.mark.parametrize("command", COMMANDS)
def test_the_list_has_the_summary_of_the_command_itself(command: str) -> None:
    listed = typer.main.get_command(app).commands[command]
    assert listed.get_short_help_str(200) == listed.command.get_short_help_str(200)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(run: Run, command: str) -> None:
    done = run(command, "--help")
    assert done.code == 0
    assert done.out.startswith(f"Usage: exegesis {command}")


def test_the_version_is_the_packages(run: Run) -> None:
    import tomllib

    from engine.home import project_root

    project = tomllib.loads((project_root() / "pyproject.toml").read_text())["project"]
    assert run("--version").out.strip() == project["version"]


def test_models_lists_the_embedded_ones_from_their_cards(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    card = {
        "title": "One", "kind": "LoRA adapter", "labels": ["no", "yes"], "metric": "accuracy", "licence": "Apache-2.0",
        "bytes": 1_234_567,
        "scores": {"held-out": {"value": 0.5}, "dev": {"metric": "accuracy", "value": 0.8765, "count": 9}},
    }  # fmt: skip
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "card.json").write_text(json.dumps(card))
    (tmp_path / "one" / "adapter_config.json").write_text('{"base_model_name_or_path": "minilm"}')
    (tmp_path / "one" / "adapter_model.safetensors").write_bytes(b"")
    monkeypatch.setattr(catalog, "EMBEDDED", tmp_path)
    people = run("models").out
    for part in ("one", "LoRA adapter", "no, yes", "accuracy: dev 0.876", "1.2 MB", "Apache-2.0"):
        assert part in people
    [listed] = run("models", "--json").json
    assert listed["name"] == "one"
    assert listed["scores"]["dev"]["value"] == 0.8765


def test_a_model_is_loaded_and_checked(run: Run, bert: str) -> None:
    found = run("models", bert, "--json").json
    assert (found["family"], found["labels"], found["kind"]) == ("BERT", ["LABEL_0", "LABEL_1"], "folder")
    assert found["revision"] == catalog.revision(bert)
    assert found["parameters"] > 1000
    assert found["blocks"] == 3
    assert all(check["ok"] for check in found["checks"])
    people = run("models", bert)
    assert people.code == 0
    assert "ok  a sentence runs: LABEL_" in people.out


def test_a_model_that_differs_from_its_card_is_broken(run: Run, bert: str, tmp_path: Path) -> None:
    import shutil

    folder = shutil.copytree(bert, tmp_path / "model")
    (folder / "card.json").write_text(json.dumps({"sha256": "0" * 64}))
    done = run("models", str(folder))
    assert done.code == 1
    assert "broken  weights match the card: SHA-256 " in done.out
    assert "the card says 000000000000…: damaged or changed" in done.out


def test_datasets_lists_and_describes(run: Run) -> None:
    assert {"reviews", "sst2"} <= {one["name"] for one in run("datasets", "--json").json}
    assert "reviews" in run("datasets").out
    found = run("datasets", "reviews", "--json").json
    assert found["examples"] == sum(found["labels"].values()) + found["unlabelled"]
    assert found["task"] == "classification"
    assert found["card"]["licence"].startswith("CC0")
    assert "with rationale" in run("datasets", "reviews").out


def test_a_file_is_described_by_its_mapping(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "own.csv"
    file.write_text("review,stars\na warm film,good\nbad service,bad\ndull,bad\n")
    found = run("datasets", str(file), "--column", "text=review", "--column", "label=stars", "--json").json
    assert (found["examples"], found["labels"]) == (3, {"bad": 2, "good": 1})


def test_app_starts_the_server(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    started: dict[str, Any] = {}

    def execve(path: str, arguments: list[str], environment: dict[str, str]) -> NoReturn:
        started["arguments"] = arguments
        raise SystemExit(0)

    monkeypatch.setattr(os, "execve", execve)
    assert run("app", "--port", "18765", "--headless").code == 0
    assert started["arguments"][-5:] == ["--port", "18765", "--host", "localhost", "--headless"]


@pytest.mark.parametrize("port", ["abc", "0", "-1", "99999"])
def test_app_with_a_port_that_is_none(run: Run, port: str) -> None:
    assert "port: must be " in run("app", "--port", port).complaint(2)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--epochs", "0"), "--epochs: must be a whole number of at least 1, got 0."),
        (("--method", "half"), "--method: must be one of full, lora, extracted, got 'half'."),
        (("--learning-rate", "fast"), "--learning-rate: must be a number of at least 0, got 'fast'."),
        (("--drop-contained", "true", "--no-drop-contained"), "--no-drop-contained: got --drop-contained too."),
    ],
)
def test_train_with_bad_values(run: Run, args: tuple[str, ...], said: str) -> None:
    assert run("train", *args).complaint(2).startswith(said)


def test_train_offers_every_field_of_its_config(run: Run) -> None:
    import dataclasses

    from engine.training.config import TrainConfig

    helped = run("train", "--help").out
    assert all(f"--{field.name.replace('_', '-')} " in helped for field in dataclasses.fields(TrainConfig))


def test_the_command_on_a_card_can_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    import shlex

    from typer.testing import CliRunner

    from engine.training import finetuning
    from engine.training.config import TrainConfig

    asked: list[TrainConfig] = []

    def stop(config: TrainConfig, *rest: object) -> NoReturn:
        asked.append(config)
        raise SystemExit(0)

    monkeypatch.setattr(finetuning, "train", stop)
    config = TrainConfig(base="a base", epochs=3, drop_contained=False, learning_rate=1e-4, method="lora")
    CliRunner().invoke(app, shlex.split(config.command())[1:])
    CliRunner().invoke(app, ["train", "--no-drop-contained"])
    assert asked == [config, TrainConfig(drop_contained=False)]


def test_a_request_of_the_command_line_is_a_request_of_the_pages(
    run: Run, checkpoint: Callable[[str], Path], own_home: Path
) -> None:
    from engine.explain import explain

    model = str(checkpoint("t5"))
    run("explain", "--model", model, "--method", "occlusion", "--text", "a warm film", "--param", "window=2")
    answer = explain(Request(model, "occlusion", Example("a warm film"), {"window": 2}))
    assert answer.cached
