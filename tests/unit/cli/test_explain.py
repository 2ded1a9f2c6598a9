"""`exegesis explain` on texts: the JSON contract, character offsets of every tokenizer, the table, scaled heads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.explain import explain
from engine.registry import all_explainers
from engine.request import Example, HeadScales, Request
from tests.tiny import FAMILIES, save_causal
from tests.unit.cli.conftest import Run

KEYS = {
    "model": str, "revision": str, "method": str, "version": int, "params": dict, "prediction": dict, "target": str,
    "features": list, "evaluations": int, "seconds": float, "cached": bool, "seed": int, "dtype": str, "device": str,
    "truncated": int, "notes": list,
}  # fmt: skip
TEXTS = {
    "plain": "Although the plot drags, the ending is warm.",
    "right to left": "הסרט היה נהדר, والنهاية دافئة جدا",
    "chinese": "这部电影非常好看,结局很温暖。",
    "japanese and korean": "映画は最高でした。 영화가 정말 좋았어요",
    "emoji with joiners": "good 👩‍👩‍👧‍👦 film 👍🏽 ❤️‍🔥 ok 🇵🇹",
    "combining marks": "cafe\u0301 nai\u0308ve e\u0323\u0302",
    "mathematical letters": "𝒶 𝔟 𝕔 plain",
    "tabs and lines": "the film\tis\r\n\na quiet   triumph ",
    "thai and hindi": "หนังเรื่องนี้ดีมาก यह फिल्म अच्छी है",
}


HEADS_TEXT = "the film is a quiet triumph"


def explained(run: Run, *args: str) -> list[dict[str, Any]]:
    done = run("explain", *args, "--json")
    assert (done.code, done.err) == (0, ""), done.err
    found = done.json
    assert isinstance(found, list)
    return found


def test_the_json_has_one_object_a_method(run: Run, bert: str) -> None:
    found = explained(run, "--model", bert, "--method", "gradient_x_input,random", "--text", "a warm film")
    assert [one["method"] for one in found] == ["gradient_x_input", "random"]
    for one in found:
        assert {key: type(one[key]) for key in KEYS} == KEYS
        assert set(one) == {*KEYS, "check"}


def test_the_json_says_where_the_logit_went(run: Run, bert: str) -> None:
    [one] = explained(run, "--model", bert, "--method", "attn_lrp", "--text", "a warm film")
    parts = one["extras"]["relevance"]
    assert sum(f["score"] for f in one["features"]) == pytest.approx(parts["tokens"])
    assert parts.pop("logit") == pytest.approx(sum(parts.values()), abs=1e-4)


def test_the_json_holds_the_engines_numbers(run: Run, bert: str) -> None:
    text = "the film is a quiet triumph"
    [one] = explained(
        run, "--model", bert, "--method", "integrated_gradients", "--text", text, "--target", "LABEL_0", "--seed", "3"
    )
    answer = explain(Request(bert, "integrated_gradients", Example(text), {}, "LABEL_0", 3))
    assert np.array_equal([f["score"] for f in one["features"]], answer.scores)
    assert one["prediction"]["probabilities"] == dict(
        zip(answer.prediction.labels, answer.prediction.probabilities, strict=True)
    )
    assert one["prediction"]["label"] == answer.prediction.label
    assert (one["target"], one["seed"]) == ("LABEL_0", 3)
    assert answer.check is not None
    for told, part in zip((one["check"], one["check"]["also"]), answer.check.parts, strict=True):
        assert (told["name"], told["value"], told["limit"]) == (part.name, part.value, part.limit)
    assert one["check"]["ok"] == answer.check.ok
    assert one["revision"] == answer.provenance.revision


def test_a_regression_head_has_a_score_and_no_class(run: Run, tmp_path: Path) -> None:
    from tests.tiny import save_checkpoint

    folder = str(save_checkpoint("bert", tmp_path / "score", labels=1))
    [one] = explained(run, "--model", folder, "--method", "occlusion", "--text", "a warm film")
    assert one["prediction"]["label"] is None
    assert one["prediction"]["probabilities"] is None
    assert isinstance(one["prediction"]["score"], float)
    assert "score " in run("explain", "--model", folder, "--method", "occlusion", "--text", "a warm film").out


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("family", ["bert", "roberta", "gpt2", "xlm-roberta", "t5"])
def test_offsets_name_the_characters_of_a_token(
    run: Run, checkpoint: Callable[[str], Path], family: str, text: str
) -> None:
    [one] = explained(run, "--model", str(checkpoint(family)), "--method", "random", "--text", text)
    features = [f for f in one["features"] if not f["special"]]
    assert features
    for f in features:
        assert 0 <= f["start"] <= f["end"] <= len(text)
        # A token without characters of its own, such as a lone space, keeps the tokenizer's name.
        assert f["start"] == f["end"] or text[f["start"] : f["end"]] == f["text"]
    starts = [f["start"] for f in features if f["end"] > f["start"]]
    assert starts == sorted(starts)
    covered = {i for f in features for i in range(f["start"], f["end"])}
    letters = {i for i, c in enumerate(text) if c.isalnum()}
    assert covered >= letters or one["truncated"]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_pair_counts_characters_of_its_own_text(run: Run, checkpoint: Callable[[str], Path], family: str) -> None:
    texts = ("a warm film 👍🏽", "good food, 不错")
    [one] = explained(
        run, "--model", str(checkpoint(family)), "--method", "random", "--text", texts[0], "--text-pair", texts[1]
    )
    segments = {f["segment"] for f in one["features"] if not f["special"]}
    assert segments == {0, 1}
    for f in one["features"]:
        if not f["special"] and f["end"] > f["start"]:
            assert texts[f["segment"]][f["start"] : f["end"]] == f["text"]


@pytest.mark.parametrize("family", FAMILIES)
def test_truncation_is_said(run: Run, checkpoint: Callable[[str], Path], family: str) -> None:
    text = "the film is good, " * 160
    [one] = explained(run, "--model", str(checkpoint(family)), "--method", "random", "--text", text)
    assert len(one["features"]) <= 64
    assert one["truncated"] >= 512
    assert f"{one['truncated']} of its" in one["notes"][0]
    assert all(text[f["start"] : f["end"]] == f["text"] for f in one["features"] if f["end"] > f["start"])
    people = run("explain", "--model", str(checkpoint(family)), "--method", "random", "--text", text).out
    assert "note: The text is longer than the model reads" in people


def test_a_second_time_comes_from_the_cache(run: Run, bert: str) -> None:
    args = ("--model", bert, "--method", "occlusion", "--text", "seen twice, said once")
    [first], [second] = explained(run, *args), explained(run, *args)
    assert (first["cached"], second["cached"]) == (False, True)
    assert first["features"] == second["features"]
    assert "(cached)" in run("explain", *args).out


def test_text_from_stdin(run: Run, bert: str) -> None:
    done = run("explain", "--model", bert, "--method", "random", "--text", "-", "--json", stdin="\ufeffa wärm film\r\n")
    [given] = explained(run, "--model", bert, "--method", "random", "--text", "a wärm film")
    assert done.json[0]["features"] == given["features"]


def test_text_from_a_data_set(run: Run, bert: str, tmp_path: Path) -> None:
    file = tmp_path / "own.csv"
    file.write_text("review,stars\na warm film,1\nbad service,0\n")
    args = ("--model", bert, "--method", "random", "--dataset", str(file), "--column", "text=review", "--index", "1")
    [one] = explained(run, *args)
    assert next(f["text"] for f in one["features"] if not f["special"]).startswith("b")
    [embedded] = explained(run, "--model", bert, "--method", "random", "--dataset", "reviews", "--index", "0")
    assert len(embedded["features"]) > 4


def test_a_parameter_goes_to_every_method_that_has_it(run: Run, bert: str) -> None:
    args = ("--model", bert, "--method", "occlusion,random,lime", "--text", "a warm film", "--param", "window=2")
    occlusion, random, _ = explained(run, *args)
    assert occlusion["params"]["window"] == 2
    assert random["params"] == {}


def test_an_addressed_parameter_goes_to_one_method_and_wins(run: Run, bert: str) -> None:
    pair = ("--param", "lime.removal=pad", "--param", "removal=zero")
    found = explained(run, "--model", bert, "--method", "occlusion,lime", "--text", "a warm film", *pair)
    assert [one["params"]["removal"] for one in found] == ["zero", "pad"]


def test_all_methods_run_and_those_that_cannot_are_named(run: Run, bert: str) -> None:
    text = "the film is a quiet triumph and the acting never falters, although the plot drags"
    done = run("explain", "--model", bert, "--method", "all", "--text", text, "--json")
    assert done.code == 0
    ran = [one["method"] for one in done.json]
    left = [line.split()[1] for line in done.err.splitlines()]
    assert sorted(ran + left) == sorted(all_explainers())
    assert all(" is left out: " in line for line in done.err.splitlines())


def test_all_methods_with_a_wrong_target_is_one_error(run: Run, bert: str) -> None:
    done = run("explain", "--model", bert, "--method", "all", "--text", "a film", "--target", "no")
    assert done.complaint(2).startswith("target: unknown name 'no'.")


def test_the_table_for_people(run: Run, bert: str) -> None:
    args = ("--model", bert, "--method", "integrated_gradients,random", "--text", "a warm film", "--param", "n_steps=5")
    lines = run("explain", *args).out.splitlines()
    assert lines[1] == "a warm film"
    assert lines[2].startswith("predicted LABEL_")
    assert "explained: LABEL_" in lines[2]
    head = next(line for line in lines if line.startswith("token"))
    assert head.split() == ["token", "integrated_gradients", "random"]
    assert any(line.startswith("[CLS]") for line in lines)
    for name in ("check", "second check", "evaluations", "seconds"):
        assert any(line.startswith(name) for line in lines)
    (settled,) = (line for line in lines if line.startswith("second check"))
    assert settled.split()[-1] == "ok", "random has no check"


def test_the_table_holds_no_color_codes_and_nothing_acts_on_the_terminal(run: Run, checkpoint: Any) -> None:
    text = "a \x1b[31mred\x1b[0m \u202etrick\u202c [bold]film[/bold]"
    done = run("explain", "--model", str(checkpoint("roberta")), "--method", "random", "--text", text)
    assert "\x1b" not in done.out
    assert "\u202e" not in done.out
    assert "\\x1b[31mred" in done.out
    assert "[bold]film[/bold]" in done.out


def test_json_with_hostile_text_is_still_json(run: Run, checkpoint: Any) -> None:
    text = 'quote " back\\slash \x1b \u2028 </script>'
    [one] = explained(run, "--model", str(checkpoint("gpt2")), "--method", "random", "--text", text)
    assert json.loads(json.dumps(one)) == one


def test_scaled_heads_are_those_of_the_engine_and_are_told(run: Run, bert: str) -> None:
    args = ("--model", bert, "--method", "occlusion", "--text", HEADS_TEXT)
    done = run("explain", *args, "--head", "0.1=0", "--head", "1.0=1.5", "--json")
    assert (done.code, done.err) == (0, "")
    [one] = done.json
    scales = HeadScales(((0, 1, 0.0), (1, 0, 1.5)))
    answer = explain(Request(bert, "occlusion", Example(HEADS_TEXT), heads=scales))
    assert np.array_equal([f["score"] for f in one["features"]], answer.scores)
    assert one["heads"] == [[0, 1, 0.0], [1, 0, 1.5]]
    assert (
        one["notes"][0] == "The model ran with heads scaled (counted from 0): layer 0 head 1 x 0, layer 1 head 0 x 1.5."
    )


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("3=0", "--head: must be a layer and a head from 0 and a scale from 0 (off) to 2, got '3=0'. Example: --head"),
        ("0.1=off", "got '0.1=off'"),
        ("0.1=3", "heads: scale: must be a number from 0 (off) to 2, got 3.0"),
        ("0.99=0", "heads: must be heads from 0 to"),
        ("99.0=0", "heads: must be layers from 0 to"),
    ],
)
def test_a_head_that_is_none_is_told_in_one_line(run: Run, bert: str, head: str, said: str) -> None:
    done = run("explain", "--model", bert, "--method", "random", "--text", HEADS_TEXT, "--head", head)
    assert done.code == 2
    assert said in done.err
    assert len(done.err.strip().splitlines()) == 1


def test_similarity_prints_the_largest_pairs_and_what_the_rest_holds(run: Run) -> None:
    texts = ("similarity", "--text", "A man plays a guitar.", "--text-pair", "He makes music.")
    lines = run(*texts, "--top", "2").out.splitlines()
    assert lines[0].startswith("Similarity 0.56")
    assert [line.split()[:2] for line in lines[3:5]] == [["guitar", "music"], ["man", "He"]]
    assert lines[5].startswith("Pairs of tokens: 0.3")
    assert "good up to 0.001" in lines[6]
    found = json.loads(run(*texts, "--json").out)
    assert sum(map(sum, found["relevance"])) + found["rest"] == pytest.approx(found["value"], abs=1e-5)
    assert run(*texts[:3]).err.startswith("error: similarity: needs two texts.")


def test_a_prompt_is_explained_by_its_tokens_and_a_classifier_refuses_it(run: Run, bert: str, tmp_path: Path) -> None:
    model = str(save_causal("llama", tmp_path / "model"))
    prompt = ("--model", model, "--prompt", "The film was good. It was", "--contrast", "N", "--target", " film")
    [one] = explained(run, *prompt, "--method", "occlusion")
    assert (one["target"], list(one["prediction"]["probabilities"])) == (" film", [" film", "N"])
    done = run("compare", "--column", f"occlusion@{model}", "--column", f"random@{model}", *prompt[2:], "--json")
    assert done.code == 0, done.err
    assert len(json.loads(done.out)["columns"]) == 2
    done = run("significance", *prompt, "--draws", "20", "--rate", "0.5", "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)["target"] == " film"
    done = run("explain", "--model", bert, "--method", "random", "--prompt", "good")
    assert (done.code, "which continues no text" in done.err) == (2, True)
