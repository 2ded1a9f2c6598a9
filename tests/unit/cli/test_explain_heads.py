"""`exegesis explain --head`: explanations of a model whose heads are scaled."""

from __future__ import annotations

import numpy as np
import pytest

from engine.explain import explain
from engine.heads.scales import HeadScales
from engine.request import Example, Request
from tests.unit.cli.conftest import Run

TEXT = "the film is a quiet triumph"


def test_scaled_heads_are_those_of_the_engine_and_are_told(run: Run, bert: str) -> None:
    args = ("--model", bert, "--method", "occlusion", "--text", TEXT)
    done = run("explain", *args, "--head", "0.1=0", "--head", "1.0=1.5", "--json")
    assert (done.code, done.err) == (0, "")
    [one] = done.json
    scales = HeadScales(((0, 1, 0.0), (1, 0, 1.5)))
    answer = explain(Request(bert, "occlusion", Example(TEXT), heads=scales))
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
    done = run("explain", "--model", bert, "--method", "random", "--text", TEXT, "--head", head)
    assert done.code == 2
    assert said in done.err
    assert len(done.err.strip().splitlines()) == 1
