"""models, datasets, cache, jobs, doctor, app and train: what they print and how they end."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from engine import health
from engine.cli.root import app
from engine.models import catalog
from engine.request import Example, Request
from engine.store import result_store
from tests.unit.cli.conftest import Run

COMMANDS = (
    "app", "compare", "evaluate", "explain", "heads", "pretrain", "reproduce", "train", "models", "datasets", "jobs",
    "cache", "study", "doctor",
)  # fmt: skip


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home that holds nothing yet."""
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_help_lists_the_commands_and_no_others(run: Run) -> None:
    listed = run("--help").out.partition("Commands:")[2].split("\n")
    assert sorted(line.split()[0] for line in listed if line.strip()) == sorted(COMMANDS)
    assert run().out == run("--help").out


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


def test_cache_stats_check_prune_and_clear(run: Run, bert: str, own_home: Path) -> None:
    for text in ("one", "two", "three"):
        assert run("explain", "--model", bert, "--method", "random", "--text", text).code == 0
    stats = run("cache", "stats", "--json").json
    count = stats["entries"]
    assert count >= 3
    assert (stats["status"], stats["folder"]) == ("", str(own_home / "cache"))
    assert f"entries  {count}" in run("cache", "stats").out
    assert run("cache", "check", "--json").json == {"checked": count, "dropped": 0, "replaced": False, "trouble": ""}
    assert run("cache", "check").out == f"{count} entries read, 0 damaged ones dropped.\n"
    assert run("cache", "prune", "--max-bytes", f"{stats['bytes'] - 1}", "--json").json["dropped"] == 1
    said = run("cache", "clear").complaint(2)
    assert said == f"cache clear: would drop {count - 1} results and cannot ask here. Give --yes to do it."
    assert run("cache", "clear", "--yes").out == f"{count - 1} results dropped.\n"
    assert run("cache", "stats", "--json").json["entries"] == 0


@pytest.mark.parametrize(("answer", "cleared"), [("n\n", False), ("", False), ("y\n", True)])
def test_clear_asks(run: Run, own_home: Path, monkeypatch: Any, answer: str, cleared: bool) -> None:
    from typer.testing import CliRunner

    result_store().put("key", {"a": 1}, {})
    monkeypatch.setattr("engine.cli.storage.can_ask", lambda: True)
    done = CliRunner().invoke(app, ["cache", "clear"], input=answer)
    assert done.exit_code == (0 if cleared else 130)
    assert result_store().stats().entries == (0 if cleared else 1)
    assert "Drop 1 results in" in done.stderr


@pytest.mark.parametrize("size", ["lots", "-1", "1.5GB", "MB"])
def test_a_size_that_is_none(run: Run, size: str) -> None:
    said = run("cache", "prune", "--max-bytes", size).complaint(2)
    assert said == f"--max-bytes: must be a number of bytes such as 500MB, got {size!r}."


def test_a_cache_that_cannot_be_kept_is_said(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "file"))
    done = run("cache", "check")
    assert done.code == 1
    assert "cannot be used" in done.out


def test_an_explanation_that_is_not_kept_is_said(
    run: Run, bert: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "file"))
    done = run("explain", "--model", bert, "--method", "random", "--text", "a film", "--json")
    assert (done.code, len(done.json)) == (0, 1)
    assert done.err.startswith("note: The cache ")
    assert "results are computed each time" in done.err


def test_a_job_runs_is_listed_and_shown(run: Run, bert: str, own_home: Path) -> None:
    assert run("jobs").out == run("jobs", "list").out == "There are no jobs.\n"
    spec = {"model": bert, "methods": ["random", "gradient_l2"], "examples": [{"text": "a warm film"}]}
    ended = run("jobs", "run", "-", "--json", stdin=json.dumps(spec)).json
    assert (ended["state"], ended["total"], ended["computed"]) == ("done", 2, 2)
    again = run("jobs", "run", "-", "--json", stdin=json.dumps(spec)).json
    assert (again["state"], again["computed"]) == ("done", 0)
    assert [job["id"] for job in run("jobs", "list", "--json").json] == [again["id"], ended["id"]]
    assert "Explain 1 examples" in run("jobs").out
    shown = run("jobs", "show", str(ended["id"]), "--json").json
    assert (shown["state"], shown["failures"]) == ("done", [])
    assert "done" in run("jobs", "show", str(ended["id"])).out
    assert "nothing to cancel" in run("jobs", "cancel", str(ended["id"])).out


def test_a_job_that_waits_is_cancelled_and_resumed(run: Run, bert: str, own_home: Path) -> None:
    from engine.jobs import create

    spec = {"model": bert, "methods": ["random"], "examples": [{"text": "a warm film"}]}
    job = create("explain", spec)
    assert "is queued in process" in run("jobs", "resume", str(job.id)).complaint(1)
    assert run("jobs", "cancel", str(job.id)).out == f"Job {job.id} is cancelled. Finished parts are kept.\n"
    assert (
        run("jobs", "resume", str(job.id)).out == f"Job {job.id} is done: 1 parts, 1 computed now, the others found.\n"
    )


def test_a_job_that_fails_is_one_line_and_shows_why(run: Run, bert: str, own_home: Path) -> None:
    spec = {"model": bert, "methods": ["random"], "examples": [{"text": ""}]}
    said = run("jobs", "run", "-", stdin=json.dumps(spec)).complaint(1)
    assert said.startswith("job 1: failed. All 1 units failed. The first: random, example 1: ")
    assert said.endswith("See: exegesis jobs show 1")
    assert "random, example 1: " in run("jobs", "show", "1").out


def test_a_job_of_no_model_is_refused(run: Run, own_home: Path) -> None:
    spec = {"model": "./nowhere", "methods": ["random"], "examples": [{"text": "a"}]}
    said = run("jobs", "run", "-", stdin=json.dumps(spec)).complaint(2)
    assert said.startswith("model: no folder './nowhere'.")
    assert run("jobs").out == "There are no jobs.\n"


@pytest.mark.parametrize(
    ("args", "stdin", "code", "said"),
    [
        (("show", "7"), "", 1, "job: there is no job 7."),
        (("show", "seven"), "", 2, "ID: must be a whole number of at least 1, got 'seven'."),
        (("show",), "", 2, "exegesis jobs show: ID is missing."),
        (("run", "no.json"), "", 2, "FILE: must be a file with JSON, got 'no.json' (No such file or directory)."),
        (("run", "-"), "{", 2, "FILE: - is not valid JSON"),
        (("run", "-"), "[]", 2, "FILE: must hold a JSON object, got list."),
        (("run", "-", "--kind", "dance"), "{}", 2, "job kind: unknown name 'dance'."),
        (("start",), "", 2, "exegesis jobs: command: unknown name 'start'."),
    ],
)
def test_jobs_with_bad_input(run: Run, own_home: Path, args: tuple[str, ...], stdin: str, code: int, said: str) -> None:
    assert run("jobs", *args, stdin=stdin).complaint(code).startswith(said)


def test_doctor_says_what_is_broken_and_what_to_do(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(catalog, "EMBEDDED", tmp_path / "none")
    done = run("doctor")
    assert (done.code, done.err) == (1, "")
    lines = {line.split()[1]: line for line in done.out.splitlines()}
    assert lines["python"].startswith("ok ")
    assert lines["models"].startswith("broken")
    assert lines["home"].startswith("broken")
    assert "set EXEGESIS_HOME" in lines["home"]
    assert lines["hub"].startswith("note   hub        not asked")
    assert run("doctor", "--json").json["usable"] is False


def test_doctor_ends_well_when_nothing_is_broken(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    findings = [health.Finding("python", "ok", "3.11"), health.Finding("hub", "note", "not reachable")]
    monkeypatch.setattr(health, "examine", lambda: iter(findings))
    found = run("doctor", "--json")
    assert found.code == 0
    assert found.json == {"usable": True, "checks": [finding.as_plain() for finding in findings]}


def test_doctor_names_versions_other_than_the_tested(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"torch": "1.0"}
    monkeypatch.setattr(
        health, "_installed", lambda name: versions.get(name, health._tested().get(health._normal(name)))
    )
    found = health._libraries()
    assert (found.status, found.detail) == (
        "note",
        f"other than tested: torch 1.0 (tested: {health._tested()['torch']})",
    )
    monkeypatch.setattr(health, "_installed", lambda name: None if name == "torch" else "1")
    assert health._libraries().detail == "missing: torch"


def test_a_look_that_fails_is_a_finding() -> None:
    def _odd() -> health.Finding:
        raise RuntimeError("why")

    assert health._safely(_odd).as_plain() == {
        "name": "odd", "status": "broken", "detail": "RuntimeError: why",
        "advice": "Report this with your Python version.",
    }  # fmt: skip


def test_an_unreachable_hub_is_information(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    found = health._hub()
    assert found.status == "note"
    assert "http://127.0.0.1:9 is not reachable" in found.detail


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
        (("--epochs", "0"), "train.epochs: must be a whole number of at least 1, got 0."),
        (("--method", "half"), "train.method: must be one of full, lora, got 'half'."),
        (("--learning-rate", "fast"), "train.learning_rate: must be a number of at least 0, got 'fast'."),
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

    from engine.training import trainer
    from engine.training.config import TrainConfig

    asked: list[TrainConfig] = []

    def stop(config: TrainConfig, *rest: object) -> NoReturn:
        asked.append(config)
        raise SystemExit(0)

    monkeypatch.setattr(trainer, "train", stop)
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
