"""`exegesis suppressor`: what it prints for each problem, and what it refuses."""

from __future__ import annotations

import json

import pytest

from engine.suppressor.gaussian import GaussianProblem
from engine.suppressor.measurement import measure_gaussian
from engine.suppressor.text import cached_text_result
from tests.unit.cli.conftest import Run


def test_the_table_has_every_method_with_its_verdict(run: Run) -> None:
    out = run("suppressor", "--correlation", "-0.5").out
    assert "Weights of the best classifier: 2.6667 informative, 1.3333 suppressor." in out
    rows = {line.split("  ")[0].strip(): line for line in out.splitlines()}
    assert rows["LIME"].rstrip().endswith("credits the suppressor")
    assert rows["PATTERN"].rstrip().endswith("passes")
    assert "NOT good" not in out


def test_json_is_the_result(run: Run) -> None:
    out = run("suppressor", "--correlation", "0.3", "--scale", "2", "--seed", "4", "--json").out
    assert json.loads(out) == measure_gaussian(GaussianProblem(0.3, 2.0), 4).as_json()


def test_texts_come_with_the_project(run: Run) -> None:
    expected = cached_text_result()
    assert expected is not None
    assert json.loads(run("suppressor", "--problem", "text", "--json").out) == expected.as_json()
    printed = run("suppressor", "--problem", "text")
    assert "Accuracy 100.0%" in printed.out
    assert "FIRM" in printed.out
    assert "note: Gradient: Every score is zero on this model." in printed.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--correlation", "1"), "--correlation: must be a number from -0.95 to 0.95, got 1.0."),
        (("--suppressor-scale", "x"), "--suppressor-scale: must be a number from 0.5 to 2, got 'x'."),
        (("--problem", "video"), "--problem: unknown name 'video'. Known: gaussian, scene, text."),
    ],
)
def test_what_it_refuses(run: Run, arguments: tuple[str, ...], said: str) -> None:
    result = run("suppressor", *arguments)
    assert result.code == 2
    assert said in result.err
