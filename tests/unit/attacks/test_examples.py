"""Attacks on many examples: rows, means and intervals, what fails, what is kept, and what a file holds."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine.attacks.attack as attack_module
from engine.attacks.attack import FLAT, NOTHING_MOVES, transfer_key
from engine.attacks.experiment import attack_examples
from engine.attacks.experiment_result import COLUMNS, METRICS, ZERO, AttackExperimentResult, summarize_notes
from engine.attacks.plan import AttackPlan
from engine.errors import UsageError
from engine.experiments.run import FORMATS, carry_out, check, finished, missing_tasks, sample_of
from engine.metrics.results import ONE, interval
from engine.progress import silent
from tests.tiny import save_checkpoint
from tests.unit.evaluation.making import REVIEWS, written

QUICK = {"steps": 3}
METHODS = ("gradient_x_input", "gradient_l2")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("bert")))


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> str:
    return written(tmp_path_factory.mktemp("data") / "reviews.jsonl", REVIEWS)


@pytest.fixture(scope="module")
def found(model: str, reviews: str) -> AttackExperimentResult:
    return attack_examples([model], reviews, METHODS, attack=QUICK, transfer=("occlusion",), examples=4)


def test_a_row_for_each_metric_of_each_attack_and_of_each_method_it_may_transfer_to(
    found: AttackExperimentResult,
) -> None:
    ofs = {row.key for row in found.rows}
    assert {of.objective for of in ofs} == {"unconstrained", "constrained"}
    assert {of.metric for of in ofs if of.method == of.attacked} == set(METRICS)
    assert {of.attacked for of in ofs if of.method == "occlusion"} == set(METHODS)
    assert len(found.rows) == 2 * len(METHODS) * 4 * (len(METRICS) + 3)
    assert not found.skips


def test_a_row_is_what_the_attack_itself_says(found: AttackExperimentResult, model: str) -> None:
    plan, row = found.plan, next(row for row in found.rows if row.key.metric == "top_k_sum_change")
    one = sample_of(plan).source.read(row.example)
    again = attack_module.attack(plan.request(model, row.key.objective, row.key.attacked, one))
    assert again.cached
    top = list(again.top)
    assert row.value == pytest.approx(again.before[top].sum() - again.after[top].sum())


def test_means_have_the_intervals_of_their_examples(found: AttackExperimentResult) -> None:
    score = next(score for score in found.scores if score.key.metric == "probability_distance")
    values = np.array([row.value for row in found.rows if row.key == score.key])
    assert score.value == pytest.approx(values.mean())
    assert (score.n, score.interval) == (4, interval(values, 0))
    single = found.subset(lambda fact: fact.example == found.facts[0].example)
    assert {score.doubt for score in single.scores if score.n} == {ONE}


def test_wrong_examples_are_attacked_and_counted(found: AttackExperimentResult) -> None:
    wrong = [fact for fact in found.facts if fact.right is False]
    assert len(found.facts) == 4
    assert wrong, "the random model is wrong somewhere"
    assert f"is wrong on {len(wrong)} of 4 examples before any attack" in found.notes[-1]
    assert {fact.example for fact in wrong} <= {row.example for row in found.rows}


def test_what_each_attack_must_tell_is_told_of_all_together(model: str, reviews: str) -> None:
    still = {"steps": 2, "epsilon": 0, "top_k": 99}
    found = attack_examples([model], reviews, ["gradient_l2"], attack=still, examples=4, objectives=("constrained",))
    [many, moves] = [line for line in found.notes if line.startswith("4 attacks, for example ")]
    which = rf"4 attacks, for example gradient_l2, constrained, {re.escape(model)}, example \d+: "
    assert re.fullmatch(which + re.escape(NOTHING_MOVES), moves)
    assert re.fullmatch(which + r"top_k is 99, but there are only \d+ tokens: all of them are attacked\.", many)
    assert list(summarize_notes([("one", "Stopped at step 3."), ("two", FLAT)])) == [
        "one: Stopped at step 3.",
        f"two: {FLAT}",
    ]


def test_the_whole_is_found_again_without_a_model(
    found: AttackExperimentResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attack_module, "load_classifier", lambda *given: pytest.fail("nothing is left to run"))
    again = finished(found.plan)
    assert again == found
    assert carry_out(found.plan) == found


def test_a_map_that_is_zero_by_construction_is_skipped_with_words(model: str, reviews: str) -> None:
    found = attack_examples([model], reviews, ["gradient"], attack=QUICK, examples=2, objectives=("constrained",))
    assert not found.rows
    assert all("gradient is zero by construction" in skip.reason for skip in found.skips)
    assert not found.complete
    assert {score.value for score in found.scores} == {None}
    assert ZERO not in {skip.reason for skip in found.skips}


@pytest.mark.parametrize(("change", "words"), [
    ({"objectives": ()}, "objectives: must be one or more of"),
    ({"objectives": ("free",)}, "unknown name 'free'"),
    ({"methods": ("occlusion",)}, "occlusion cannot be attacked"),
    ({"transfer": ("occlussion",)}, "unknown name 'occlussion'"),
    ({"attack": {"objective": "constrained"}}, "must not contain objective"),
    ({"attack": {"epsilom": 1}}, "unknown name 'epsilom'"),
    ({"examples": 0}, "examples: must be"),
])  # fmt: skip
def test_plans_that_cannot_be_are_refused(model: str, reviews: str, change: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"models": (model,), "dataset": reviews, "methods": METHODS, **change}
    with pytest.raises(UsageError, match=words):
        check(AttackPlan(**given))


def test_files_hold_the_rows(found: AttackExperimentResult) -> None:
    rows = json.loads(FORMATS["json"](found))
    assert rows == list(found.tidy_rows())
    assert [{name: row[name] for name in own.to_json()} for row, own in zip(rows, found.rows, strict=True)] == [
        row.to_json() for row in found.rows
    ]
    assert list(rows[0]) == list(COLUMNS)
    sheet = FORMATS["csv"](found).decode().splitlines()
    assert (len(sheet), sheet[0]) == (len(rows) + 1, ",".join(COLUMNS))
    assert FORMATS["parquet"](found)[:4] == b"PAR1"


def test_workers_hand_over_what_opens_here(
    model: str, reviews: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.attacks.experiment.EXAMPLES_AT_ONCE", 1)
    plan = AttackPlan((model,), reviews, ("gradient_l2",), ("constrained",), 2, attack=QUICK, transfer=("occlusion",))
    sample = sample_of(plan)
    tasks = missing_tasks(plan, sample)
    assert [task.size for task in tasks] == [1, 1]
    for task, index in zip(tasks, sample.indices, strict=True):
        request = plan.request(model, "constrained", "gradient_l2", sample.source.read(index))
        assert {attack_module.attack_key(request), transfer_key(request, "occlusion", {})} <= task.run().keys()
    with pytest.raises(UsageError, match="address: only applies to executor ray"):
        carry_out(plan, silent, address="host:1")
