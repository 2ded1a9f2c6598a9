"""study simulate and study rate: rankings by people whose strengths are known, and guesses of people whose skill is."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.study.results import vote_rows
from engine.study.simulation import RankingSimulation, simulate_rankings
from engine.table_io import to_csv
from tests.unit.cli.conftest import Run

KNOWN = ("--methods", "A,B,C", "--strength", "2,1,0", "--annotators", "20", "--items", "6", "--seed", "1")
PREDICT = ("study", "simulate", "--mode", "predict", "--methods", "A,B")
KNOWN_SKILL = (*PREDICT, "--strength", "0.9,0.5", "--alone", "0.5", "--annotators", "40", "--items", "30")


def test_known_strengths_are_found(run: Run) -> None:
    found = run("study", "simulate", *KNOWN, "--json").json
    assert [rating["method"] for rating in found["ratings"]] == ["A", "B", "C"]
    assert [rating["rank"] for rating in found["ratings"]] == [1, 2, 3]
    for rating in found["ratings"]:
        low, high = rating["interval"]
        assert low < rating["skill"] < high
    assert found["plackett_luce"]["order"] == ["A", "B", "C"]
    assert found["votes"] == 120


def test_a_seed_gives_the_same_study_again(run: Run) -> None:
    one, again, other = (run("study", "simulate", *KNOWN[:-1], seed, "--json").out for seed in ("1", "1", "2"))
    assert one == again != other


def test_people_read_a_table_and_sentences(run: Run) -> None:
    said = run("study", "simulate", *KNOWN, "--placebo", "C").out
    assert "120 votes by 20 annotators on 6 items." in said
    assert "Every method is rated above the placebo, C." in said
    assert [line.split()[0] for line in said.splitlines()[2:5]] == ["A", "B", "C"]


def test_of_one_annotator_nothing_is_forecast(run: Run) -> None:
    args = ("study", "simulate", "--methods", "A,B,C", "--annotators", "1", "--items", "4")
    found = run(*args, "--json").json
    assert found["power"] == []
    assert [pair["votes"] for pair in found["needed"]] == [None] * 3
    assert "A forecast needs at least two annotators." in run(*args).out


def test_the_share_of_false_differences(run: Run) -> None:
    args = ("study", "simulate", "--methods", "A,B", "--annotators", "6", "--items", "2", "--studies", "4")
    found = run(*args, "--json").json
    assert found["studies"] == 4
    assert found["share_with_any_difference"] in (0, 0.25)
    assert found["strength"] == {"A": 0, "B": 0}
    shares, expected = run(*args).out.splitlines()
    assert shares.endswith("% of 4 simulated studies find a difference between methods.")
    assert expected == "All methods are equally strong, so at most 5% should."
    assert len(run(*args, "--strength", "0,1").out.splitlines()) == 1


def test_a_file_is_rated_as_its_votes_are(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "votes.csv"
    votes = simulate_rankings(RankingSimulation({"A": 2.0, "B": 1.0, "C": 0.0}, 20, 6, seed=1))
    file.write_text(to_csv(vote_rows(votes, "ABC")))
    assert (
        run("study", "rate", str(file), "--seed", "1", "--json").json == run("study", "simulate", *KNOWN, "--json").json
    )


def test_rank_strings_need_names(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "ranks.csv"
    file.write_text('ranks\n"1,1,3,4"\n"1,2,3,4"\n')
    found = run("study", "rate", str(file), "--methods", "A,B,C,D", "--json").json
    assert found["wins"]["A"]["B"] == 0.75
    assert run("study", "rate", str(file)).complaint(2).startswith("--methods: is missing.")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("simulate",), "--methods: must be one or more comma-separated names"),
        (("simulate", "--methods", "A"), "--methods: must be 2 to 50 comma-separated names, got 'A'."),
        (("simulate", "--methods", "A,B", "--strength", "1"), "--strength: must be one number for each of A, B, got 1"),
        (("simulate", "--methods", "A,B", "--strength", "1,x"), "--strength: must be comma-separated numbers"),
        (("simulate", "--methods", "A,B", "--annotators", "0"), "--annotators: must be a whole number of at least 1"),
        (("simulate", "--methods", "A,B", "--items", "9999"), "--annotators times --items: must be at most 5,000"),
        (("simulate", "--methods", "A,B", "--taste", "-1"), "--taste: must be a number of at least 0, got '-1'."),
        (("rate", "absent.csv"), "FILE: must be a CSV file of rankings, got 'absent.csv'. Check the path."),
    ],
)
def test_wrong_use(run: Run, args: tuple[str, ...], said: str) -> None:
    assert run("study", *args).complaint(2).startswith(said)


def test_a_known_skill_is_found(run: Run) -> None:
    found = run(*KNOWN_SKILL, "--placebo", "B", "--json").json
    none, better, same = found["conditions"]
    assert (none["name"], none["gain"], found["guesses"]) == ("no explanation", None, 1200)
    assert better["share"]["accuracy"] == better["share"]["right"] / better["share"]["guesses"]
    assert abs(better["share"]["accuracy"] - 0.9) < 0.06
    assert better["gain"]["interval"][0] > 0.2
    assert same["gain"]["interval"][0] < 0 < same["gain"]["interval"][1]
    assert found["meanings"]["helpful"].startswith("People guess the prediction correctly more often with A")


def test_people_read_a_table_and_sentences_about_guesses(run: Run) -> None:
    said = run(*KNOWN_SKILL, "--placebo", "B").out
    assert [line.split()[0] for line in said.splitlines()[2:5]] == ["no", "A", "B"]
    assert "The placebo, B, has no significant positive effect" in said


def test_how_often_intervals_hold(run: Run) -> None:
    few = (*PREDICT, "--annotators", "5", "--items", "9", "--studies", "6")
    found = run(*few, "--json").json
    assert found["studies"] == 6
    assert 0.5 < found["alone"] <= 1
    assert found["accuracy"] == {"no explanation": 0.5, "A": 0.5, "B": 0.5}
    assert "of 6 simulated studies, all 95% intervals of differences contain" in run(*few).out


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--mode", "guess"), "--mode"),
        (("--mode", "predict", "--alone", "0.5,0.6"), "--alone: must be one number between 0 and 1, got '0.5,0.6'"),
        (("--mode", "predict", "--strength", "2,0.5"), "--strength: must be numbers between 0 and 1"),
    ],
)
def test_wrong_use_of_guesses(run: Run, args: tuple[str, ...], said: str) -> None:
    assert run("study", "simulate", "--methods", "A,B", *args).complaint(2).startswith(said)
