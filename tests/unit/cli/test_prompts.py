"""`exegesis explain --prompt` and `exegesis models get`: a next token, and a language model that is fetched."""

from __future__ import annotations

from pathlib import Path

import huggingface_hub
import pytest

from engine.models import catalog, fetched
from engine.models.loading import load_model
from engine.request import Prompt
from tests.tiny import save_causal
from tests.unit.cli.conftest import Run

TEXT = "the ending is warm and funny"


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_causal("llama", tmp_path_factory.mktemp("llama")))


def test_a_prompt_is_explained(run: Run, llama: str) -> None:
    labels = load_model(llama).encode(Prompt(TEXT)).labels  # type: ignore[attr-defined]
    own = ("explain", "--model", llama, "--method", "random", "--prompt", TEXT)
    done = run(*own, "--target", labels[2], "--contrast", labels[0])
    assert done.code == 0, done.err
    assert f"explained: the next token, compared with {labels[0]!r}" in done.out
    [one] = run(*own, "--target", labels[2], "--contrast", labels[0], "--json").json
    assert (one["target"], one["contrast"]) == (labels[2], labels[0])
    done = run(*own, "--chat", "--json")
    assert done.code == 0, done.err
    [one] = done.json
    assert one["target"] == one["prediction"]["label"]
    assert "contrast" not in one
    assert sum(one["prediction"]["probabilities"].values()) == pytest.approx(1)
    assert len(one["prediction"]["probabilities"]) == 21
    assert {feature["text"] for feature in one["features"] if feature["special"]} >= {"<|im_start|>"}


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (("--text", TEXT, "--contrast", " a"), "--contrast: requires --prompt, got --text"),
        (("--text", TEXT, "--chat"), "--chat: requires --prompt, got --text"),
        (("--text", TEXT, "--prompt", TEXT), "got --text and --prompt"),
        (("--prompt", TEXT), "--prompt: reviews-minilm is a classifier, which continues no text. Use --text."),
    ],
)
def test_options_of_a_prompt(run: Run, words: tuple[str, ...], wrong: str) -> None:
    done = run("explain", "--method", "random", *words)
    assert done.code == 2
    assert wrong in done.err


def test_models_lists_a_language_model_and_how_to_fetch_one(run: Run, llama: str) -> None:
    done = run("models", llama)
    assert done.code == 0, done.err
    assert "language model: the next token" in done.out
    assert (
        "Not fetched yet: smollm2-135m, a language model. Fetch it: exegesis models get smollm2-135m"
        in run("models").out
    )


def test_models_get(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("engine.cli.library.fetch_model", lambda name, report: tmp_path / name)
    done = run("models", "get", "smollm2-135m")
    assert (done.code, done.out.split(" in ")[0]) == (0, "smollm2-135m is stored")
    assert done.out.splitlines()[-1].startswith("exegesis explain --model smollm2-135m --method ")
    assert "--prompt" in done.out


def test_a_hub_id_is_downloaded_and_then_read_from_the_hubs_cache(
    run: Run, llama: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "_snapshots", {})
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda name, revision, allow_patterns: llama)
    done = run("models", "get", "owner/name")
    assert (done.code, done.out) == (0, f"owner/name is stored in {llama}. Check it: exegesis models owner/name\n")

    def fail(name: str, revision: str | None, allow_patterns: list[str]) -> str:
        raise ConnectionError

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    missing = run("models", "get", "owner/other").complaint(1)
    assert "'owner/other' is neither embedded nor a folder, and it cannot be fetched from the hub" in missing


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (("get",), "models get: needs the name of a model. Known: smollm2-135m."),
        (("get", "gpt5"), "model: unknown name 'gpt5'. Known: smollm2-135m."),
        (("smollm2-135m",), "model: smollm2-135m is not stored here yet. Fetch it: exegesis models get smollm2-135m."),
        (("reviews-minilm", "more"), "models: takes one model, got reviews-minilm and more."),
    ],
)
def test_bad_names(run: Run, words: tuple[str, ...], wrong: str) -> None:
    assert not fetched.is_fetched("smollm2-135m")
    done = run("models", *words)
    assert done.code == 2
    assert wrong in done.err


def test_a_prompt_of_a_set_that_the_model_has_not_learned_says_so(run: Run) -> None:
    own = ("explain", "--model", "tiny-llama", "--method", "random", "--index", "2", "--dataset")
    done = run(*own, "facts", "--json")
    assert done.code == 0, done.err
    assert "tiny-llama is right on 1,102 of 2,000 examples of facts (55.1%; guessing: 50.0%), by its card." in done.err
    assert "guessing" not in run(*own, "agreement").err
