"""`exegesis generate`: the JSON is the engine's result, sampling needs a seed, and what is missing is said."""

from __future__ import annotations

import json

from engine.generation import GenerationQuery, generate_text
from engine.next_token import next_tokens
from engine.request import Prompt
from tests.unit.cli.conftest import Run

PROMPT = "Mary lives in Paris. John owns a dog. Mary lives in"


def test_json_is_the_result_of_the_engine(run: Run) -> None:
    options = ("--model", "tiny-llama", "--prompt", PROMPT, "--tokens", "3", "--method", "random", "--json")
    greedy = json.loads(run("generate", *options).out)
    query = GenerationQuery("tiny-llama", PROMPT, 3, method="random")
    likely = next_tokens("tiny-llama", Prompt(PROMPT))
    own = {"next_entropy": likely.entropy, "next_tokens": [
        {"token": label, "probability": share} for label, share in zip(likely.labels, likely.probabilities, strict=True)
    ]}  # fmt: skip
    assert greedy == generate_text(query).as_json() | own
    assert [len(step["scores"]) for step in greedy["steps"]] == [len(greedy["tokens"]) - back for back in (2, 1, 0)]
    sampled = json.loads(run("generate", *options, "--seed", "5", "--temperature", "3").out)
    again = GenerationQuery("tiny-llama", PROMPT, 3, 5, 3.0, "random")
    assert sampled == generate_text(again).as_json() | own
    assert sampled["generated"] != greedy["generated"]


def test_the_text_is_labeled_and_one_sentence_is_said(run: Run) -> None:
    done = run("generate", "--prompt", "Mary lives in", "--tokens", "1", "--top", "1")
    assert "Generated (greedy): " in done.out
    likely = next_tokens("tiny-llama", Prompt("Mary lives in"))
    first, second = (
        f"{label!r} {share:.4f}" for label, share in list(zip(likely.labels, likely.probabilities, strict=True))[:2]
    )
    assert done.out.startswith(f"Next token: {first}, {second}, "), "the same distribution as on the page"
    assert f"Entropy: {likely.entropy:.2f} bits." in done.out.replace("\n", " ")
    assert "The prompt is one sentence" in done.out
    for options, message in (
        (("--temperature", "0.5"), "--temperature: has no effect without --seed"),
        (("--seed", "1", "--temperature", "0.5,2"), "--temperature: must be a number, got '0.5,2'"),
        (("--seed", "1", "--temperature", "hot"), "--temperature: must be a number, got 'hot'"),
    ):
        refused = run("generate", "--prompt", "Mary lives in", *options)
        assert refused.code == 2
        assert message in refused.err.replace("\n", " ")
    several = run("significance", "--text", "x", "--rate", "0.05,0.1")
    assert (several.code, "--rate: must be a number, got '0.05,0.1'" in several.err) == (2, True)
    missing = run("generate")
    assert missing.code == 2
    assert "--prompt: is missing. Example:" in missing.err


def test_a_continuation_is_explained_and_not_called_generated(run: Run) -> None:
    options = ("--prompt", PROMPT, "--continuation", " Rome and John", "--method", "random")
    done = run("generate", *options)
    assert "Continuation:  Rome and John" in done.out
    assert "enerated" not in done.out
    query = GenerationQuery("tiny-llama", PROMPT, method="random", continuation=" Rome and John")
    assert generate_text(query).as_json().items() <= json.loads(run("generate", *options, "--json").out).items()
    for more in (("--seed", "1"), ("--tokens", "3")):
        refused = run("generate", *options, *more)
        assert refused.code == 2
        assert "--continuation: is explained as it is. Leave out --tokens, --seed" in refused.err.replace("\n", " ")
