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
from engine.comparison.agreement import AgreementOptions
from engine.comparison.experiment import SkippedMap, find_disagreements
from engine.comparison.plan import ComparisonPlan, ModelMethodPair, plan_of
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
def plan(models: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ComparisonPlan:
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "home"))
    pairs = (
        ModelMethodPair(models[0], "gradient_l2"), ModelMethodPair(models[1], "gradient_l2"),
        ModelMethodPair(models[1], "occlusion", (("window", "2"),)),
    )  # fmt: skip
    return ComparisonPlan(written(tmp_path / "reviews.jsonl", REVIEWS), pairs)


def by_hand(plan: ComparisonPlan, text: str) -> float:
    """Of words, which both tokenizers have alike in these texts."""
    requests = [Request(pair.model, pair.method, Example(text), dict(pair.params)) for pair in plan.pairs]
    maps = [np.abs(unit_scores(explain(request), Example(text), "word")) for request in requests]
    return float(1 - np.mean([stats.spearmanr(a, b).statistic for a, b in itertools.combinations(maps, 2)]))


def test_the_worst_come_first_and_are_those_of_scipy(plan: ComparisonPlan) -> None:
    found = find_disagreements(plan, AgreementOptions(order="size"))
    assert [one.index for one in found] != sorted(one.index for one in found)
    values = [one.value for one in found]
    assert len(values) == len(REVIEWS)
    assert values == sorted(values, key=lambda value: -(value or 0.0))
    for one in found:
        assert one.name == REVIEWS[one.index]["text"]
        assert one.value == pytest.approx(by_hand(plan, one.name), abs=1e-9)
        assert one.maps == 3


def test_a_reference_counts_its_own_pairs_alone(plan: ComparisonPlan) -> None:
    [first, *_] = find_disagreements(plan, AgreementOptions(order="size"), reference=1)
    maps = [
        np.abs(unit_scores(explain(request), Example(first.name), "word"))
        for request in plan.requests(Example(first.name))
    ]
    rhos = [stats.spearmanr(maps[1], maps[other]).statistic for other in (0, 2)]
    assert first.value == pytest.approx(1 - np.mean(rhos), abs=1e-9)


def test_the_job_makes_the_maps_and_the_search_reads_them(
    plan: ComparisonPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_disagreements(plan, AgreementOptions(), compute=False) == []
    job = jobs.run_now(jobs.create("compare", plan.as_plain()))
    assert (job.state, job.error, job.total) == ("done", "", 3 * len(REVIEWS))
    assert job.title.startswith("Compare gradient_l2@")
    monkeypatch.setattr(engine.explain, "load_classifier", lambda *given: pytest.fail("nothing is left to run"))
    assert len(find_disagreements(plan, AgreementOptions(), compute=False)) == len(REVIEWS)
    again = jobs.run_now(jobs.create("compare", plan.as_plain()))
    assert (again.computed, again.done) == (0, 3 * len(REVIEWS))


def test_a_model_without_the_class_is_left_out_and_the_others_compared(plan: ComparisonPlan, tmp_path: Path) -> None:
    three = str(save_checkpoint("bert", tmp_path / "three", labels=3))
    single = ComparisonPlan(plan.dataset, (*plan.pairs[:2], ModelMethodPair(three, "gradient_l2")), target="LABEL_2")
    assert find_disagreements(single, AgreementOptions()) == [], "one map is none to compare"
    both = ComparisonPlan(plan.dataset, (*single.pairs, ModelMethodPair(three, "occlusion")), target="LABEL_2")
    assert {one.predicted[:2] for one in find_disagreements(both, AgreementOptions())} == {(None, None)}


def test_rows_that_are_no_examples_are_told_and_the_others_compared(plan: ComparisonPlan, tmp_path: Path) -> None:
    long = {"text": "x" * (MAX_CHARACTERS + 1)}
    mixed = written(tmp_path / "mixed.jsonl", [REVIEWS[0], {"text": 3}, long, REVIEWS[1]])
    plan, skipped = replace(plan, dataset=mixed), list[SkippedMap]()
    found = find_disagreements(plan, AgreementOptions(), on_skip=skipped.append)
    assert sorted(one.index for one in found) == [0, 3]
    assert [(one.index, one.column) for one in skipped] == [(1, None), (2, None)]
    assert "text" in skipped[0].why
    assert "at most" in skipped[1].why
    job = jobs.run_now(jobs.create("compare", plan.as_plain()))
    assert (job.state, job.total, job.failed) == ("failed", 2 + 3 * 2, 2)


def test_the_maps_that_fail_are_told_with_the_reason(plan: ComparisonPlan, tmp_path: Path) -> None:
    three = str(save_checkpoint("bert", tmp_path / "three", labels=3))
    other = replace(plan, pairs=(*plan.pairs, ModelMethodPair(three, "gradient_l2")), examples=1, target="LABEL_2")
    skipped: list[SkippedMap] = []
    assert find_disagreements(other, AgreementOptions(), on_skip=skipped.append) == []
    assert [one.column for one in skipped] == [pair.code for pair in plan.pairs]
    assert all("LABEL_2" in one.why for one in skipped)


def test_pictures_of_models_with_other_patches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "home"))
    fine = str(save_vit(tmp_path / "fine"))
    coarse = str(save_vit(tmp_path / "coarse", patch=12))
    pairs = ModelMethodPair(fine, "gradient_l2"), ModelMethodPair(coarse, "gradient_l2")
    plan = ComparisonPlan("scenes:count=3", pairs, "image")
    job = jobs.run_now(jobs.create("compare", plan.as_plain()))
    assert (job.state, job.total) == ("done", 6)
    found = find_disagreements(plan, AgreementOptions(), compute=False)
    assert sorted(one.index for one in found) == [0, 1, 2]
    assert all(one.value is not None for one in found)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"color": "red"}, "spec of a compare job: must have dataset and pairs"),
        ({"pairs": "gradient@m"}, "pairs of a compare job: must be a list"),
        ({"pairs": ["gradient@m"]}, "columns: must be 2 to 8 pairs"),
        ({"pairs": ["gradiant@m", "random@m"]}, "Did you mean 'gradient'"),
        ({"examples": 0}, "examples: must be a whole number of at least 1"),
        ({"seed": -1}, "seed of a compare job: must be a whole number"),
        ({"kind": "sound"}, "kind: unknown name 'sound'"),
        ({"dataset": 3}, "dataset of a compare job: must be a text"),
    ],
)
def test_a_wrong_spec_is_refused(plan: ComparisonPlan, change: dict[str, Any], error: str) -> None:
    with pytest.raises(UsageError) as refused:
        jobs.create("compare", plan.as_plain() | change)
    assert error in str(refused.value)


def test_a_search_comes_back_from_its_plain_values(plan: ComparisonPlan) -> None:
    assert plan_of(plan.as_plain()) == plan
