"""`exegesis layers`: what its four commands print, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.inside.lens import LensQuery, lens_to_json, logit_lens
from engine.inside.patching import PatchQuery, patch_map
from engine.inside.routes import RoutesQuery, information_routes, routes_to_json
from engine.next_token import next_tokens
from engine.request import Example, Prompt
from tests.tiny import save_causal
from tests.unit.cli.conftest import Run

CLEAN, CORRUPTED = "The film was wonderful and I loved it.", "The film was terrible and I hated it."


def test_lens(run: Run) -> None:
    out = run("layers", "lens", "--text", CLEAN).out
    lines = out.splitlines()
    assert lines[0].split() == ["layer", "top", "value", "P(positive)"]
    assert [line.split()[0] for line in lines[2:9]] == ["embedding", "0", "1", "2", "3", "4", "5"]
    assert "good up to 0.0001" in out
    plain = json.loads(run("layers", "lens", "--text", CLEAN, "--json").out)
    assert plain == lens_to_json(logit_lens(LensQuery("reviews-minilm", Example(CLEAN))))


def test_patch(run: Run) -> None:
    arguments = ("layers", "patch", "--text", CLEAN, "--corrupted", CORRUPTED, "--site", "heads")
    out = run(*arguments, "--top", "3").out
    assert "metric: logit of “positive” minus logit of “negative”; clean 8.0790, corrupted -5.6753" in out
    assert "corruption: another text of equal length" in out
    assert "over 72 places (77 evaluations)" in out
    plain = json.loads(run(*arguments, "--json").out)
    result = patch_map(PatchQuery("reviews-minilm", Example(CLEAN), CORRUPTED, site="heads"))
    assert plain["restored_share"] == result.shares.tolist()
    assert plain["check"]["value"] <= plain["check"]["limit"]
    noisy = json.loads(
        run("layers", "patch", "--text", CLEAN, "--corruption", "noise", "--tokens", "4,7", "--preview", "--json").out
    )
    assert "restored_share" not in noisy
    assert noisy["corruption"].startswith("Gaussian noise (3 SD, one draw, seed 0) on “wonderful” (4), “loved” (7)")


def test_routes(run: Run) -> None:
    out = run("layers", "routes", "--text", CLEAN, "--threshold", "0.2", "--top", "4").out
    assert len([line for line in out.splitlines() if line.strip()[:1].isdigit()]) == 4
    assert "Importance of at least 0.2; the largest flow to positive first." in out
    plain = json.loads(run("layers", "routes", "--text", CLEAN, "--json").out)
    assert plain == routes_to_json(information_routes(RoutesQuery("reviews-minilm", Example(CLEAN))), 0.04)


def test_heads(run: Run) -> None:
    out = run("layers", "heads", "--examples", "2", "--top", "3").out
    assert "over 2 examples of reviews" in out
    plain = json.loads(run("layers", "heads", "--examples", "2", "--json").out)
    assert len(plain["mean"]) == 6
    assert plain["examples"] == 2


def test_a_prompt_is_read_in_its_chat_template(run: Run, tmp_path: Path) -> None:
    folder = str(save_causal("llama", tmp_path / "model"))
    given = ("--model", folder, "--prompt", "the film is good", "--json")
    plain, chat = (json.loads(run("layers", "lens", *given, *more).out) for more in ((), ("--chat",)))
    as_text = run("layers", "lens", "--model", folder, "--text", "the film is good", "--json")
    assert json.loads(as_text.out) == plain, "a prompt outside of a template is a text"
    predicted = next_tokens(folder, Prompt("the film is good", chat=True))
    assert chat["target"] == predicted.labels[0]
    assert chat["reading"][-1] == pytest.approx(predicted.probabilities[0], rel=1e-4)
    assert len(chat["tokens"]) > len(plain["tokens"])
    patched = json.loads(run("layers", "patch", *given, "--chat", "--corrupted", "the good is film", "--preview").out)
    assert patched["chat"] is True
    assert len(patched["corrupted_tokens"]) == len(chat["tokens"])
    assert run("layers", "routes", *given, "--chat").code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("lens",), "layers lens: needs a text"),
        (("patch", "--text", "a"), "corrupted: is missing"),
        (("patch", "--text", "a", "--corruption", "mean"), "tokens: is empty"),
        (("patch", "--text", "a", "--corrupted", "b", "--tokens", "x"), "--tokens: must be a whole number"),
        (("patch", "--text", "a", "--corrupted", "b", "--site", "x"), "site: unknown name 'x'"),
        (("routes", "--text", "a", "--threshold", "2"), "--threshold: must be a number from 0 to 1"),
        (("lens", "--model", "tiny-llama", "--text", "a", "--chat"), "--chat: requires --prompt, got --text"),
        (("lens", "--model", "tiny-llama", "--prompt", "a", "--chat"), "chat: tiny-llama has no chat template"),
        (("routes", "--prompt", "a"), "--prompt: reviews-minilm is a classifier"),
        (("heads", "--examples", "0"), "--examples: must be a whole number of at least 1"),
    ],
)
def test_what_is_refused(run: Run, arguments: tuple[str, ...], words: str) -> None:
    done = run("layers", *arguments)
    assert words in done.err
    assert done.code == 2
