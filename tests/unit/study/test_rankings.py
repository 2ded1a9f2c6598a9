"""Votes, orders and ratings as CSV and JSON; rankings from CSV."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from engine.errors import ExegesisError, UsageError
from engine.study.counted_votes import Ranking, ranked_methods, read_rankings
from engine.study.ratings import Rating
from engine.study.results import rankings_to_json, rating_rows, vote_rows
from engine.study.simulation import RankingSimulation, simulate_rankings
from engine.study.summary import summarize_rankings
from engine.table_io import escape_cell, to_csv, to_json, unescape_cell


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "votes.csv"


def test_votes_come_back_as_they_were(file: Path) -> None:
    votes = simulate_rankings(RankingSimulation({"a": 1.0, "=b": 0.0, "c": 0.0}, annotators=3, items=2))
    votes += [Ranking("-al", "@x", {"a": 1, "=b": 1, "c": 3}, repeat=1, seconds=2.5, at=1e9 + 0.125)]
    file.write_text(to_csv(vote_rows(votes, ranked_methods(votes))))
    assert read_rankings(file) == votes


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r"])
def test_cells_that_a_spreadsheet_would_run_are_defused(first: str) -> None:
    name = f"{first}cmd"
    votes = [Ranking(name, name, {name: 1, "b": 2})]
    for row in csv.reader(io.StringIO(to_csv(vote_rows(votes, (name, "b"))), newline="")):
        assert not any(cell.startswith(first) for cell in row)
    assert unescape_cell(escape_cell(name)) == name


def test_ratings() -> None:
    rows = rating_rows([Rating("a", -0.5, (-1.0, 0.25), 1, 2, 0.125)])
    assert to_csv(rows) == "method,skill,low,high,rank,last,spread\na,-0.5,-1.0,0.25,1,2,0.125\n"
    assert json.loads(to_json(rows)) == rows
    assert to_csv([]) == ""


def test_rank_strings(file: Path) -> None:
    file.write_text('annotator,item,ranks\nal,x,"1,1,3,4"\nal,x,"2,1,9,9"\nbo,x,"4,3,2,1"\n')
    first, again, other = read_rankings(file, "abcd")
    assert first.ranks == {"a": 1, "b": 1, "c": 3, "d": 4}
    assert again.ranks == {"a": 2, "b": 1, "c": 3, "d": 3}
    assert [first.repeat, again.repeat, other.repeat] == [0, 1, 0]
    assert [first.at, again.at, other.at] == [0, 1, 2]


def test_ranks_alone_are_votes_of_different_people(file: Path) -> None:
    file.write_text("a,b\n1,2\n2,1\n")
    assert [vote.annotator for vote in read_rankings(file)] == ["annotator 1", "annotator 2"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('ranks\n"1,2,3"\n', "votes.csv, line 2: ranks: must be 2 comma-separated whole numbers from 1"),
        ('ranks\n"1,2"\n"1,x"\n', "votes.csv, line 3: ranks: must be 2 comma-separated whole numbers"),
        ('ranks,seconds\n"1,2",-3\n', "votes.csv, line 2: seconds: must be a number of at least 0, got '-3'"),
        ('ranks,at\n"1,2",nan\n', "votes.csv, line 2: at: must be a number of at least 0"),
        ("a,c\n1,2\n", "methods: unknown name 'b'. Did you mean"),
        ("a,b\n1,\n", "votes.csv, line 2: ranks: must be 2 comma-separated whole numbers"),
        ("item,a,b,item\n1,1,2,1\n", "names the column 'item' twice"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(file: Path, content: str, said: str) -> None:
    file.write_text(content)
    with pytest.raises(ExegesisError) as error:
        read_rankings(file, ["a", "b"])
    assert said.removesuffix(" Did you mean") in str(error.value)


def test_methods_must_be_known(file: Path) -> None:
    file.write_text('ranks\n"1,2"\n')
    with pytest.raises(UsageError, match="--methods: is missing"):
        read_rankings(file)
    file.write_text("item,a\nx,1\n")
    with pytest.raises(UsageError, match="or a column for each of at least two methods"):
        read_rankings(file)
    with pytest.raises(UsageError, match=r"FILE: must be a CSV file of rankings, got .*absent.csv"):
        read_rankings(Path("absent.csv"))
    with pytest.raises(UsageError, match="'seconds' is the name of another column"):
        vote_rows([Ranking("al", "x", {"seconds": 1, "b": 2})], ("seconds", "b"))


def test_results_are_plain() -> None:
    votes = simulate_rankings(RankingSimulation({"a": 1.0, "b": 0.0}, annotators=4, items=2))
    plain = json.loads(
        json.dumps(rankings_to_json(summarize_rankings(votes, "b", orders=5, resamples=20)), allow_nan=False)
    )
    assert plain["votes"] == 8
    assert plain["wins"]["a"]["b"] == 1 - plain["wins"]["b"]["a"]
    assert [rating["method"] for rating in plain["ratings"]] == ["a", "b"]
    assert len(plain["course"]) == 9
    assert set(plain["meanings"]) >= {"ratings", "alpha", "placebo"}
