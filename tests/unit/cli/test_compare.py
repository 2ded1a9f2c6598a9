"""`exegesis compare`: two models on one text, the examples of disagreement, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from engine.explain import explain
from engine.request import Example, Request
from engine.word_units import unit_scores
from tests.unit.cli.conftest import Run
from tests.unit.evaluation.making import REVIEWS, written

TEXT = "good food, bad service"


@pytest.fixture
def columns(checkpoint: Callable[[str], Path]) -> list[str]:
    return ["--column", f"gradient_l2@{checkpoint('bert')}", "--column", f"gradient_l2@{checkpoint('gpt2')}"]


def words(model: Path, text: str) -> np.ndarray:
    return unit_scores(explain(Request(str(model), "gradient_l2", Example(text))), Example(text), "word")


def test_the_json_holds_the_scores_of_common_words_and_the_rho_of_scipy(
    run: Run, columns: list[str], checkpoint: Callable[[str], Path]
) -> None:
    done = run("compare", *columns, "--text", TEXT, "--json")
    assert (done.code, done.err) == (0, "")
    found = done.json
    maps = [words(checkpoint(family), TEXT) for family in ("bert", "gpt2")]
    assert [part["text"] for part in found["parts"]] == ["good", "food,", "bad", "service"]
    for place, own in enumerate(maps):
        assert [part["scores"][place] for part in found["parts"]] == pytest.approx(own)
    assert found["agreement"]["spearman"][0][1] == pytest.approx(stats.spearmanr(*maps).statistic)
    assert found["disagreement"]["spearman"] == pytest.approx(1 - stats.spearmanr(*maps).statistic)
    assert [one["column"] for one in found["columns"]] == columns[1::2]


def test_people_see_letters_a_matrix_and_what_is_left_out(run: Run, columns: list[str]) -> None:
    done = run("compare", *columns, "--column", "gradient@no-such-model", "--text", TEXT)
    assert done.code == 0
    for line in ("A  gradient_l2@", "service", "spearman", "gradient@no-such-model is left out: model: unknown name"):
        assert line in done.out


def test_the_examples_of_a_data_set_come_with_most_disagreement_first(
    run: Run, columns: list[str], checkpoint: Callable[[str], Path], tmp_path: Path
) -> None:
    data = written(tmp_path / "reviews.jsonl", REVIEWS)
    done = run("compare", *columns, "--dataset", data, "--examples", "6", "--json")
    assert done.code == 0, done.err
    found = done.json["found"]
    values = [one["disagreement"] for one in found]
    assert values == sorted(values, reverse=True)
    for one in found:
        maps = [words(checkpoint(family), one["example"]) for family in ("bert", "gpt2")]
        assert one["disagreement"] == pytest.approx(1 - stats.spearmanr(*maps).statistic, abs=1e-9)
    assert "disagreement" in run("compare", *columns, "--dataset", data, "--examples", "2").out


def test_rows_that_are_no_examples_are_noted_and_the_others_compared(
    run: Run, columns: list[str], tmp_path: Path
) -> None:
    outside = REVIEWS[1] | {"rationale": [[0, 9999]]}
    mixed = written(tmp_path / "mixed.jsonl", [REVIEWS[0], outside, {"text": 3}, REVIEWS[2]])
    done = run("compare", *columns, "--dataset", mixed, "--examples", "4")
    assert done.code == 0, done.err
    assert "note: example 1 is left out" in done.out
    assert "note: example 2 is left out" in done.out
    found = run("compare", *columns, "--dataset", mixed, "--examples", "4", "--json").json
    assert sorted(one["index"] for one in found["found"]) == [0, 3]
    assert [(one["index"], one["column"]) for one in found["left_out"]] == [(1, None), (2, None)]


def test_where_no_example_can_be_compared_the_command_says_why(run: Run, columns: list[str], tmp_path: Path) -> None:
    data = written(tmp_path / "reviews.jsonl", REVIEWS[:2])
    refused = run("compare", *columns, "--dataset", data, "--examples", "2", "--target", "LABEL_9").complaint(1)
    assert "compare: no example has two maps. Example 0: target: unknown name 'LABEL_9'" in refused


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--unit", "letter", "--text", TEXT], "--unit: unknown name 'letter'"),
        (["--measure", "pearson", "--text", TEXT], "measure: unknown name 'pearson'"),
        (["--percent", "0", "--text", TEXT], "--percent: must be a whole number of at least 1"),
        (["--percent", "101", "--text", TEXT], "percent: must be a whole number from 1 to 100"),
        (["--column", "gradient@", "--text", TEXT], "column: must be method@model"),
        ([], "compare: needs one of --text, --image, or --dataset"),
        (["--examples", "3"], "--examples: requires --dataset"),
    ],
)
def test_what_is_refused(run: Run, columns: list[str], more: list[str], told: str) -> None:
    assert told in run("compare", *columns, *more).complaint(2)


def test_one_column_is_none_to_compare(run: Run, columns: list[str]) -> None:
    assert "columns: must be 2 to 8 pairs" in run("compare", *columns[:2], "--text", TEXT).complaint(2)
    assert "--column: is missing" in run("compare", "--text", TEXT).complaint(2)
    refused = run("compare", *columns[:2], "--column", "gradient@nope", "--text", TEXT).complaint(1)
    assert "fewer than two columns could be explained" in refused


def test_one_column_compares_two_texts_for_one_class(
    run: Run, columns: list[str], checkpoint: Callable[[str], Path]
) -> None:
    other = "good food, lovely service"
    done = run("compare", *columns[:2], "--text", TEXT, "--other", other, "--json")
    assert (done.code, done.err) == (0, "")
    [found] = done.json["other"]
    assert found["target"] == done.json["columns"][0]["target"]
    assert [unit["texts"] for unit in found["units"]] == [
        ["good", "good"], ["food,", "food,"], ["bad", "lovely"], ["service", "service"],
    ]  # fmt: skip
    assert [unit["scores"][0] for unit in found["units"]] == pytest.approx(words(checkpoint("bert"), TEXT))
    assert found["shared"] == 3
    drawn = run("compare", *columns[:2], "--text", TEXT, "--other", other)
    assert "in the other text: predicts" in drawn.out
    assert "3 shared units, spearman" in drawn.out


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--text", TEXT, "--other", TEXT], "--other: must differ from the first text"),
        (["--text", TEXT, "--other", " "], "--other: must be a text, got an empty one"),
        (["--dataset", "reviews", "--examples", "2", "--other", "x"], "--other: compares two texts. Remove it, or"),
    ],
)
def test_another_text_that_is_none_is_refused(run: Run, columns: list[str], more: list[str], told: str) -> None:
    assert told in run("compare", *columns[:2], *more).complaint(2)


def test_a_column_that_fails_on_the_other_text_is_noted(run: Run, columns: list[str]) -> None:
    refused = run("compare", *columns[:2], "--text", TEXT, "--other", "\u200b").complaint(1)
    assert "compare: no column could be explained in both texts. the other text: text: nothing to explain" in refused
