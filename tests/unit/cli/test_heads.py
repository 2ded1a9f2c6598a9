"""`exegesis heads`: the JSON contract, the table for people, and what is refused in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from engine.heads.readings import CAUTION, DEFAULT_SCORES, HeadTableQuery, head_table
from engine.heads.scores import SCORES
from engine.request import Example, HeadScales, Request
from tests.unit.cli.conftest import Run
from tests.unit.vision.tiny_vit import save_vit

TEXT = "the film is a quiet triumph"
KEYS = {
    "model": str, "revision": str, "prediction": dict, "target": str, "scores": dict, "rows": list, "cached": bool,
    "dtype": str, "device": str, "truncated": int, "notes": list,
}  # fmt: skip


def heads(run: Run, *args: str) -> dict[str, Any]:
    done = run("heads", *args, "--json")
    assert (done.code, done.err) == (0, ""), done.err
    return done.json


def test_the_json_is_one_object_with_a_row_a_head(run: Run, bert: str) -> None:
    found = heads(run, "--model", bert, "--text", TEXT)
    assert {key: type(found[key]) for key in KEYS} == KEYS
    assert set(found) == {*KEYS, "against"}
    assert found["against"] is None
    assert list(found["scores"]) == list(DEFAULT_SCORES)
    assert found["scores"]["off"] == {
        "title": "Fall when switched off", "unit": "probability", "signed": True, "citation": SCORES["off"].citation,
    }  # fmt: skip
    assert [(row["layer"], row["head"]) for row in found["rows"]] == [(i, j) for i in range(3) for j in range(4)]
    answer = head_table(Request(bert, "random", Example(TEXT)))
    for row in found["rows"]:
        at = row["layer"], row["head"]
        assert {name: row[name] for name in DEFAULT_SCORES} == {
            name: answer.columns[name][at] for name in DEFAULT_SCORES
        }
        assert answer.flipped is not None
        assert row["flipped"] is bool(answer.flipped[at])


def test_maps_are_compared_with_an_attribution_under_scaled_heads(run: Run, bert: str) -> None:
    args = ("--model", bert, "--text", TEXT, "--head", "0.1=0", "--target", "LABEL_0", "--seed", "3")
    found = heads(run, *args, "--score", "entropy", "--against", "gradient_x_input", "--query", "1", "--top", "2")
    scales = HeadScales(((0, 1, 0.0),))
    asked = Request(bert, "random", Example(TEXT), {}, "LABEL_0", 3, heads=scales)
    answer = head_table(asked, HeadTableQuery(("entropy", "agreement"), "gradient_x_input", 1))
    assert [(row["layer"], row["head"]) for row in found["rows"]] == answer.ranked[:2]
    assert set(found["rows"][0]) == {"layer", "head", "entropy", "agreement"}
    assert found["rows"][0]["agreement"] == answer.columns["agreement"][answer.ranked[0]]
    assert {name: found["against"][name] for name in ("method", "query", "seed")} == {
        "method": "gradient_x_input", "query": 1, "seed": 3,
    }  # fmt: skip
    assert (found["heads"], found["target"]) == ([[0, 1, 0.0]], "LABEL_0")


def test_the_table_has_a_row_a_head_and_says_what_scores_mean(run: Run, bert: str) -> None:
    args = ("--model", bert, "--text", TEXT, "--text-pair", "a second", "--score", "special,off")
    lines = run("heads", *args).out.splitlines()
    assert lines[1:3] == [TEXT, "a second"]
    head = next(at for at, line in enumerate(lines) if line.split() == ["head", "special", "off", "flips"])
    names = [line.split()[0] for line in lines[head + 2 : head + 14]]
    assert names == [f"{layer}.{one}" for layer in range(3) for one in range(4)]
    assert f"off: {SCORES['off'].title}, probability. {SCORES['off'].about}" in lines
    assert lines[-1] == f"note: {CAUTION}"


def test_a_picture_and_a_head_without_a_value(run: Run, tmp_path: Path) -> None:
    vit = str(save_vit(tmp_path / "vit", image=(24, 32)))
    noise = np.random.default_rng(3).integers(0, 256, (30, 40, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "mine.png")
    found = heads(run, "--model", vit, "--image", str(tmp_path / "mine.png"), "--score", "distance,importance")
    assert all(row["distance"] > 0 for row in found["rows"])
    one = heads(run, "--text", "a", "--score", "agreement", "--against", "random", "--top", "1")
    assert one["rows"][0]["agreement"] is None
    told = run("heads", "--text", "a", "--score", "agreement", "--against", "random", "--top", "1").out
    assert ["0.0", "-"] in [line.split() for line in told.splitlines()]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "heads: needs one of --text, --image, or --dataset with --index, got none."),
        (("--text", "a", "--score", "entropi"), "score: unknown name 'entropi'. Did you mean 'entropy'?"),
        (
            ("--text", "a", "--score", "agreement"),
            "--against: is missing; the score 'agreement' requires it. Example: ",
        ),
        (("--text", "a", "--query", "0"), "--query: requires --against."),
        (("--text", "a", "--against", "limee"), "method: unknown name 'limee'. Did you mean 'lime'?"),
        (("--text", "a", "--against", "random", "--query", "9"), "query: must be a position from 0 to 2 of this input"),
        (("--text", "a", "--against", "random", "--query", "x"), "--query: must be a whole number of at least 0"),
        (("--text", "a", "--top", "0"), "--top: must be a whole number of at least 1, got '0'."),
        (("--text", "a", "--head", "3=0"), "--head: must be a layer and a head from 0"),
        (("--text", "a", "--head", "99.0=0"), "heads: must be layers from 0 to 5 for this model"),
        (("--text", "a", "--dtype", "int8"), "--dtype: unknown name 'int8'"),
        (("--text", ""), "text: nothing to explain"),
        (("--text", "a", "--target", "sideways"), "target: unknown name 'sideways'"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(run: Run, args: tuple[str, ...], said: str) -> None:
    assert run("heads", *args).complaint(2).startswith(said)
