"""study simulate --mode predict: guesses of people whose skill is known."""

from __future__ import annotations

import pytest

from tests.unit.cli.conftest import Run

ASKED = ("study", "simulate", "--mode", "predict", "--methods", "A,B")
KNOWN = (*ASKED, "--strength", "0.9,0.5", "--alone", "0.5", "--annotators", "40", "--items", "30")


def test_a_known_skill_is_found(run: Run) -> None:
    found = run(*KNOWN, "--placebo", "B", "--json").json
    none, better, same = found["conditions"]
    assert (none["name"], none["gain"], found["guesses"]) == ("no explanation", None, 1200)
    assert better["share"]["accuracy"] == better["share"]["right"] / better["share"]["guesses"]
    assert abs(better["share"]["accuracy"] - 0.9) < 0.06
    assert better["gain"]["interval"][0] > 0.2
    assert same["gain"]["interval"][0] < 0 < same["gain"]["interval"][1]
    assert found["meanings"]["helpful"].startswith("People guess the model's answer more often with A than without")


def test_people_read_a_table_and_sentences(run: Run) -> None:
    said = run(*KNOWN, "--placebo", "B").out
    assert [line.split()[0] for line in said.splitlines()[2:5]] == ["no", "A", "B"]
    assert "The placebo, B, is not shown to help" in said


def test_how_often_intervals_hold(run: Run) -> None:
    few = (*ASKED, "--annotators", "5", "--items", "9", "--studies", "6")
    found = run(*few, "--json").json
    assert found["studies"] == 6
    assert 0.5 < found["alone"] <= 1
    assert found["accuracy"] == {"no explanation": 0.5, "A": 0.5, "B": 0.5}
    assert "of 6 studies all intervals of differences hold" in run(*few).out


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--mode", "guess"), "--mode"),
        (("--mode", "predict", "--alone", "0.5,0.6"), "--alone: must be a number between 0 and 1, got '0.5,0.6'"),
        (("--mode", "predict", "--strength", "2,0.5"), "accuracy: must be a number between 0 and 1"),
    ],
)
def test_wrong_use(run: Run, args: tuple[str, ...], said: str) -> None:
    assert run("study", "simulate", "--methods", "A,B", *args).complaint(2).startswith(said)
