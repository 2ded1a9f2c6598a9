"""The examples with most disagreement: the job makes the maps, the search reads them, scipy knows the order."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import engine.explain
from engine import jobs
from engine.comparison.agreeing import How
from engine.comparison.pairs import Pair
from engine.comparison.search import Left, Search, disputed, read_search
from engine.errors import UsageError
from engine.explain import explain
from engine.request import MAX_CHARACTERS, Example, Request
from engine.word_units import unit_scores
from tests.tiny import save_checkpoint
from tests.unit.evaluation.making import REVIEWS, written
from tests.unit.vision.tiny_vit import save_vit


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("models")
    return str(save_checkpoint("bert", folder / "bert")), str(save_checkpoint("gpt2", folder / "gpt2"))


@pytest.fixture
def search(models: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Search:
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "home"))
    pairs = (
        Pair(models[0], "gradient_l2"), Pair(models[1], "gradient_l2"),
        Pair(models[1], "occlusion", (("window", "2"),)),
    )  # fmt: skip
    return Search(written(tmp_path / "reviews.jsonl", REVIEWS), pairs)


def by_hand(search: Search, text: str) -> float:
    """Of words, which both tokenizers have alike in these texts."""
    asked = [Request(pair.model, pair.method, Example(text), dict(pair.params)) for pair in search.pairs]
    maps = [np.abs(unit_scores(explain(request), Example(text), "word")) for request in asked]
    return float(1 - np.mean([stats.spearmanr(a, b).statistic for a, b in itertools.combinations(maps, 2)]))


def test_the_worst_come_first_and_are_those_of_scipy(search: Search) -> None:
    found = disputed(search, How(order="size"))
    assert [one.index for one in found] != sorted(one.index for one in found)
    values = [one.value for one in found]
    assert len(values) == len(REVIEWS)
    assert values == sorted(values, key=lambda value: -(value or 0.0))
    for one in found:
        assert one.name == REVIEWS[one.index]["text"]
        assert one.value == pytest.approx(by_hand(search, one.name), abs=1e-9)
        assert one.maps == 3


def test_a_reference_counts_its_own_pairs_alone(search: Search) -> None:
    [first, *_] = disputed(search, How(order="size"), reference=1)
    maps = [
        np.abs(unit_scores(explain(request), Example(first.name), "word"))
        for request in search.requests(Example(first.name))
    ]
    rhos = [stats.spearmanr(maps[1], maps[other]).statistic for other in (0, 2)]
    assert first.value == pytest.approx(1 - np.mean(rhos), abs=1e-9)


def test_the_job_makes_the_maps_and_the_search_reads_them(search: Search, monkeypatch: pytest.MonkeyPatch) -> None:
    assert disputed(search, How(), made=False) == []
    job = jobs.run_now(jobs.create("compare", search.as_plain()))
    assert (job.state, job.error, job.total) == ("done", "", 3 * len(REVIEWS))
    assert job.title.startswith("Compare gradient_l2@")
    monkeypatch.setattr(engine.explain, "load_classifier", lambda *given: pytest.fail("nothing is left to run"))
    assert len(disputed(search, How(), made=False)) == len(REVIEWS)
    again = jobs.run_now(jobs.create("compare", search.as_plain()))
    assert (again.computed, again.done) == (0, 3 * len(REVIEWS))


def test_a_model_without_the_class_is_left_out_and_the_others_compared(search: Search, tmp_path: Path) -> None:
    three = str(save_checkpoint("bert", tmp_path / "three", labels=3))
    asked = Search(search.dataset, (*search.pairs[:2], Pair(three, "gradient_l2")), target="LABEL_2")
    assert disputed(asked, How()) == [], "one map is none to compare"
    both = Search(search.dataset, (*asked.pairs, Pair(three, "occlusion")), target="LABEL_2")
    assert {one.predicted[:2] for one in disputed(both, How())} == {(None, None)}


def test_rows_that_are_no_examples_are_told_and_the_others_compared(search: Search, tmp_path: Path) -> None:
    long = {"text": "x" * (MAX_CHARACTERS + 1)}
    mixed = written(tmp_path / "mixed.jsonl", [REVIEWS[0], {"text": 3}, long, REVIEWS[1]])
    asked, left = replace(search, dataset=mixed), list[Left]()
    found = disputed(asked, How(), tell=left.append)
    assert sorted(one.index for one in found) == [0, 3]
    assert [(one.index, one.column) for one in left] == [(1, None), (2, None)]
    assert "text" in left[0].why
    assert "at most" in left[1].why
    job = jobs.run_now(jobs.create("compare", asked.as_plain()))
    assert (job.state, job.total, job.failed) == ("failed", 2 + 3 * 2, 2)


def test_the_maps_that_fail_are_told_with_the_reason(search: Search, tmp_path: Path) -> None:
    three = str(save_checkpoint("bert", tmp_path / "three", labels=3))
    asked = replace(search, pairs=(*search.pairs, Pair(three, "gradient_l2")), examples=1)
    left: list[Left] = []
    assert disputed(replace(asked, target="LABEL_2"), How(), tell=left.append) == []
    assert [one.column for one in left] == [pair.code for pair in search.pairs]
    assert all("LABEL_2" in one.why for one in left)


def test_pictures_of_models_with_other_patches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "home"))
    fine = str(save_vit(tmp_path / "fine"))
    coarse = str(save_vit(tmp_path / "coarse", patch=12))
    pairs = Pair(fine, "gradient_l2"), Pair(coarse, "gradient_l2")
    asked = Search("scenes:count=3", pairs, "image")
    job = jobs.run_now(jobs.create("compare", asked.as_plain()))
    assert (job.state, job.total) == ("done", 6)
    found = disputed(asked, How(), made=False)
    assert sorted(one.index for one in found) == [0, 1, 2]
    assert all(one.value is not None for one in found)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"colour": "red"}, "spec of a compare job: must have dataset and pairs"),
        ({"pairs": "gradient@m"}, "pairs of a compare job: must be a list"),
        ({"pairs": ["gradient@m"]}, "columns: must be 2 to 8 pairs"),
        ({"pairs": ["gradiant@m", "random@m"]}, "Did you mean 'gradient'"),
        ({"examples": 0}, "examples: must be a whole number of at least 1"),
        ({"seed": -1}, "seed of a compare job: must be a whole number"),
        ({"kind": "sound"}, "kind: unknown name 'sound'"),
        ({"dataset": 3}, "dataset of a compare job: must be a text"),
    ],
)
def test_a_wrong_spec_is_refused(search: Search, change: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as refused:
        jobs.create("compare", search.as_plain() | change)
    assert told in str(refused.value)


def test_a_search_comes_back_from_its_plain_values(search: Search) -> None:
    assert read_search(search.as_plain()) == search
