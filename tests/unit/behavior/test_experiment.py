"""Whole experiments on a small random model: each task, accuracies by hand, what resumes, what is left out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

import engine.behavior.experiment as steps
from engine import jobs
from engine.behavior.experiment import behavior
from engine.behavior.plan import (
    BEHAVIOR,
    DELETE,
    FEATURE,
    INCLUDED,
    LOCAL,
    RECOURSE,
    REPLACE,
    TASKS,
    BehaviorPlan,
)
from engine.behavior.result import (
    COLUMNS,
    FLIP,
    ORDER,
    SIGN,
    USE,
    ModelBehavior,
    accuracy_interval,
    answers_of,
    order_cases,
    rows,
)
from engine.errors import ExegesisError, UsageError
from engine.experiments.run import carry_out, check, finished, key_of, missing_tasks, rows_of, sample_of
from engine.experiments.sample import training_half
from engine.metrics.results import share_interval
from engine.progress import silent
from engine.request import Request
from tests.explaining import checkpoint
from tests.unit.randomization.making import TEXTS, reviews

pytestmark = pytest.mark.usefixtures("home")

METHODS = ("gradient_x_input", "attention_mean", "random")


@pytest.fixture
def plan(tmp_path: Path) -> BehaviorPlan:
    return BehaviorPlan((str(checkpoint("bert")),), reviews(tmp_path), METHODS, examples=6, edit=DELETE, margin=0)


def small(**changed: object) -> ModelBehavior:
    """Two examples of two and one words, a method and a direct query."""
    fields: dict[str, object] = {
        "model": "m", "dataset": "d", "task": LOCAL, "ways": ("lime", "query-1"), "examples": (4, 9),
        "targets": ("a", "b"), "probabilities": np.array([0.9, 0.8]), "evaluations": np.array([[10, 3], [20, 2]]),
        "owner": np.array([0, 0, 1]), "words": ("x", "y", "z"), "truth": np.array([0.3, -0.1, 0.05]),
        "truth_error": np.zeros(3), "falls": np.array([1, 0, 1]), "counted": np.array([True, True, True]),
        "chance": np.full(3, 0.5), "values": np.array([[1.0, 0.3], [2.0, -0.1], [-1.0, 0.05]]),
        "errors": np.full((3, 2), np.nan), "yes": np.array([[True, True], [True, False], [False, True]]),
        "edits": (("", ""),) * 3, "failed": {}, "complete": True,
    }  # fmt: skip
    return ModelBehavior(**{**fields, **changed})  # type: ignore[arg-type]


def test_accuracies_of_a_small_result_are_those_by_hand() -> None:
    sign, order = answers_of(small(), BehaviorPlan(("reviews-minilm",), "d", margin=0))
    assert (sign.question, sign.cases, sign.all_cases) == (SIGN, 3, 3)
    assert [one.accuracy for one in sign.ways] == [1 / 3, 1.0]
    assert [one.evaluations for one in sign.ways] == [15, 2.5]
    assert (sign.yes_share, sign.majority, sign.chance) == (2 / 3, 2 / 3, 0.5)
    assert sign.ways[1].interval == (pytest.approx(0.025 ** (1 / 2)), 1.0), "all are right, on two examples"
    deleted = answers_of(small(), BehaviorPlan(("reviews-minilm",), "d", margin=0, edit=DELETE))[0]
    assert (deleted.ways[1].accuracy, deleted.ways[1].interval) == (1.0, None), "by definition"
    assert (order.question, order.cases, order.all_cases) == (ORDER, 1, 1)
    assert [one.accuracy for one in order.ways] == [0.0, 1.0]
    assert order.majority is None
    few = small(counted=np.array([True, False, False]))
    [rare, _] = answers_of(few, BehaviorPlan(("reviews-minilm",), "d"))
    assert (rare.ways[0].accuracy, rare.ways[0].evaluations) == (1.0, 10), "of the example that counts"
    none = answers_of(small(counted=np.zeros(3, dtype=bool)), BehaviorPlan(("reviews-minilm",), "d"))[0]
    assert (none.cases, none.ways[0].accuracy, none.majority, none.chance) == (0, None, None, None)


def test_pairs_count_beyond_the_margin_and_the_uncertainty_and_ties_answer_nothing() -> None:
    found = small(values=np.array([[1.0, 0.3], [1.0, -0.1], [0.0, 0.0]]))
    assert order_cases(found, 0, 0.0).tolist() == [[False, True]]
    assert order_cases(found, 0, 0.41).tolist() == []
    assert order_cases(replace(found, truth_error=np.array([0.3, 0.3, 0])), 0, 0.0).tolist() == []
    assert order_cases(found, 1, 0.0).shape == (0, 2)


def test_the_interval_covers_the_accuracy_of_dependent_answers() -> None:
    """Each example has an accuracy of its own: an interval that ignored this would be too narrow."""
    generator, covered, narrow = np.random.default_rng(0), 0, 0
    for _ in range(300):
        counts = generator.integers(3, 12, 20)
        right = generator.binomial(counts, generator.beta(2.8, 1.2, 20))
        share, interval = accuracy_interval(right, counts)
        assert share is not None
        assert interval is not None
        covered += interval[0] <= 0.7 <= interval[1]
        low, high = share_interval(int(right.sum()), int(counts.sum()))
        narrow += low <= 0.7 <= high
    assert covered / 300 > 0.93 > narrow / 300


def test_an_interval_of_one_answer_an_example_is_exact_and_of_one_example_there_is_none() -> None:
    assert accuracy_interval(np.array([1, 0, 1, 1]), np.ones(4, dtype=int)) == (0.75, share_interval(3, 4))
    assert accuracy_interval(np.array([2]), np.array([4])) == (0.5, None)
    assert accuracy_interval(np.array([4, 3, 5]), np.array([4, 3, 5])) == (1.0, share_interval(3, 3))
    assert accuracy_interval(np.array([0, 0]), np.array([4, 2])) == (0.0, share_interval(0, 2))
    assert accuracy_interval(np.array([2, 0]), np.array([4, 0])) == (0.5, None)
    share, interval = accuracy_interval(np.array([2, 2, 2]), np.array([4, 4, 4]))
    effective = 12 * (scipy.stats.t.ppf(0.975, 11) / scipy.stats.t.ppf(0.975, 2)) ** 2
    low = scipy.stats.beta.ppf(0.025, effective / 2, effective / 2 + 1)
    assert (share, interval) == (0.5, pytest.approx((low, 1 - low))), "examples that agree are no better than answers"


@pytest.mark.parametrize("task", TASKS)
def test_each_task_has_the_same_result_at_once_piecewise_and_as_a_job(task: str, plan: BehaviorPlan) -> None:
    plan = replace(plan, task=task, feature="the,and,good,lovely")
    job = jobs.run_now(jobs.create("behavior", json.loads(json.dumps(plan.as_plain()))))
    assert job.state == "done"
    by_job = finished(plan)
    assert by_job is not None
    [found] = by_job.models
    again = steps.assemble(plan, sample_of(plan), silent)
    for name, value in vars(found).items():
        np.testing.assert_equal(getattr(again, name), value)
    assert found.ways == plan.ways
    assert set(found.examples) | set(found.failed) == set(range(6))
    assert found.complete
    direct = np.array([way == plan.ways[-1] for way in found.ways])
    if task != RECOURSE:
        assert found.right[found.counted][:, direct].all(), "the largest budget asks all that is true"
    listed = list(rows(found))
    assert {frozenset(row) for row in listed} == {frozenset(COLUMNS)}
    assert sum(row["metric"] == "truth" for row in listed) == len(found.truth)
    assert {row["method"] for row in listed} == {"", *plan.ways}
    questions = [answer.question for answer in answers_of(found, plan)]
    assert questions == {LOCAL: [SIGN, ORDER], FEATURE: [USE], RECOURSE: [FLIP]}[task]


def test_replacements_are_asked_with_growing_budgets(plan: BehaviorPlan) -> None:
    plan = replace(plan, edit=REPLACE, draws=5, examples=2, methods=("random",))
    assert plan.ways == ("random", "query-1", "query-2", "query-4", "query-5")
    [found] = carry_out(plan).models
    assert (found.truth_error > 0).any()
    assert np.isnan(found.errors[:, 1]).all()
    assert not (found.counted & (np.abs(found.truth) <= found.truth_error)).any()
    budgets = np.diff(found.evaluations[:, 1:], axis=1)
    assert (budgets[:, 0] == np.bincount(found.owner)).all()


def test_nothing_is_computed_twice_and_a_failure_is_tried_again(
    plan: BehaviorPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = replace(plan, examples=3)
    right = steps.measure

    def fails(*given: object) -> object:
        raise ExegesisError("model: its numbers are not finite.")

    monkeypatch.setattr(steps, "measure", fails)
    [broken] = carry_out(plan).models
    assert (broken.examples, broken.complete) == ((), False)
    assert set(broken.failed.values()) == {"model: its numbers are not finite."}
    assert answers_of(broken, plan)[0].ways[0].accuracy is None
    monkeypatch.setattr(steps, "measure", right)
    [whole] = carry_out(plan).models
    assert whole.complete
    assert len(whole.examples) == 3
    monkeypatch.setattr(steps, "measure", fails)
    [more] = carry_out(replace(plan, dtype="float32", examples=3)).models
    np.testing.assert_array_equal(more.truth, whole.truth)
    assert missing_tasks(plan, sample_of(plan)) == []


def test_texts_without_a_question_are_left_out_with_the_reason(plan: BehaviorPlan) -> None:
    [found] = carry_out(replace(plan, task=FEATURE, feature="battery")).models
    assert found.complete, "to try again would not help"
    assert len(found.examples) == 1
    assert set(found.failed.values()) == {"feature: the text has none of battery."}
    assert "battery" in TEXTS[found.examples[0]]
    assert found.words[0] == "battery"


def test_a_text_that_cannot_be_changed_is_left_out_and_not_tried_again(plan: BehaviorPlan, tmp_path: Path) -> None:
    texts = tmp_path / "few.csv"
    texts.write_text("text,label\ngood,1\na good [MASK] film,1\nlovely film,0\n", encoding="utf-8")
    plan = replace(plan, dataset=str(texts), methods=("random",), draws=2)
    [found] = carry_out(plan).models
    assert found.complete
    assert found.failed == {0: "text: has a single word, so that nothing would be left of it."}
    [found] = carry_out(replace(plan, edit=REPLACE)).models
    assert found.complete
    assert len(found.examples) == 2
    assert "text: must not hold the mask token of bases/bert-generated, [MASK]" in found.failed[1]
    [found] = carry_out(replace(plan, task=FEATURE, feature="good")).models
    assert found.complete, "nothing is left of a text that is all feature"
    assert 0 in found.failed


def test_the_key_knows_each_field(plan: BehaviorPlan) -> None:
    other: dict[str, object] = {
        "task": RECOURSE, "edit": REPLACE, "draws": 3, "margin": 7, "feature": "a", "size": 1, "seed": 3,
        "methods": ("random",),
    }  # fmt: skip
    sample = sample_of(plan)
    keys = {key_of(replace(plan, **{name: value}), sample) for name, value in other.items()}  # type: ignore[arg-type]
    assert len({key_of(plan, sample), *keys}) == 1 + len(other)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"task": FEATURE, "feature": " , "}, "feature: must be words between commas, got ' , '"),
        ({"task": "other"}, "task: unknown name 'other'"),
        ({"size": 4}, "size: must be a whole number from 1 to 3, got 4"),
        ({"draws": 0}, "draws: must be a whole number from 1 to 64, got 0"),
        ({"margin": 51}, "margin: must be a whole number from 0 to 50, got 51"),
        ({"methods": ("no_such",)}, "method: unknown name 'no_such'"),
    ],
)
def test_a_wrong_plan_is_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as error:
        check(replace(BehaviorPlan(("reviews-minilm",), "reviews", METHODS[:1]), **fields))  # type: ignore[arg-type]
    assert message in str(error.value)


def test_the_python_call_the_numbers_and_the_title(plan: BehaviorPlan) -> None:
    result = behavior(plan.models, plan.dataset, ("random",), examples=2, edit=DELETE, margin=0)
    printed = json.loads(json.dumps(steps.to_json(result)))
    assert [one["question"] for one in printed["answers"]] == [SIGN, ORDER]
    assert printed["answers"][0]["ways"][1]["accuracy"] == 1.0
    assert printed["constructed"]["methods"][0]["accuracy"] == 0.5
    assert len(list(rows_of(result))) > 10
    assert BEHAVIOR.title_of(INCLUDED[1].as_plain()) == "Ask reviews-minilm on reviews: recourse"


@pytest.mark.parametrize("permanent", [True, False])
def test_a_method_that_fails_on_one_text_is_left_out_there_alone(
    permanent: bool, plan: BehaviorPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = replace(plan, examples=4, methods=METHODS[:2])
    [whole] = carry_out(plan).models
    right = steps.explain_many
    broken = whole.examples[1]
    text = sample_of(plan).source.read(broken).input

    def fails(requests: Sequence[Request]) -> object:
        if any(one.method == METHODS[0] and one.example == text for one in requests):
            raise (UsageError if permanent else ExegesisError)("text: has too many tokens.")
        return right(requests)

    monkeypatch.setattr(steps, "explain_many", fails)
    monkeypatch.setattr(steps, "VERSIONS", [-1 - permanent])  # nothing is cached yet
    [found] = [steps.assemble(plan, sample_of(plan), silent)]
    assert found.failures == {METHODS[0]: {broken: "text: has too many tokens."}}
    assert found.complete is permanent, "what can succeed later is tried again"
    assert found.examples == whole.examples
    np.testing.assert_array_equal(found.truth, whole.truth)
    own = found.cases_of(1)
    assert np.isnan(found.values[own, 0]).all()
    assert not found.right[own, 0].any()
    rest = np.delete(np.arange(len(found.truth)), own)
    np.testing.assert_array_equal(found.values[rest], whole.values[rest])
    np.testing.assert_array_equal(found.values[own][:, 1:], whole.values[own][:, 1:])
    before, after = answers_of(whole, plan)[0], answers_of(found, plan)[0]
    assert before.ways[1:] == after.ways[1:], "the other ways are as without the failure"
    counted = rest[found.counted[rest]]
    assert after.ways[0].accuracy == pytest.approx(whole.right[counted, 0].mean())
    failed = [row for row in rows(found) if row["example"] == broken and row["method"] == METHODS[0]]
    assert failed == []
    task = steps._ModelQuestions(plan, sample_of(plan))
    if permanent:
        task.require([broken])
    else:
        with pytest.raises(ExegesisError, match="too many tokens"):
            task.require([broken])


def test_the_best_attribution_is_chosen_on_one_half_and_measured_on_the_other() -> None:
    examples = tuple(range(8))
    half = training_half(examples, 0)
    lucky = np.array([index in half for index in examples])
    found = small(
        ways=("lime", "occlusion", "query-1"), examples=examples, targets=("a",) * 8, probabilities=np.full(8, 0.9),
        evaluations=np.tile([10, 5, 2], (8, 1)), owner=np.arange(8), words=("x",) * 8, truth=np.full(8, 0.5),
        truth_error=np.zeros(8), falls=np.ones(8, dtype=int), counted=np.ones(8, dtype=bool), chance=np.full(8, 0.5),
        values=np.zeros((8, 3)), errors=np.zeros((8, 3)), edits=(("",) * 3,) * 8,
        yes=np.stack([lucky, np.arange(8) < 4, np.ones(8, dtype=bool)], axis=1),
    )  # fmt: skip
    plan = BehaviorPlan(("reviews-minilm",), "d", ("lime", "occlusion"), edit=DELETE, margin=0)
    answer = answers_of(found, plan)[0]
    assert answer.best is not None
    assert (answer.best.way, answer.best.accuracy) == ("lime", 0.0), "all of its right answers are in the first half"
    assert answer.methods[0].accuracy == 0.5
    assert answers_of(found, replace(plan, methods=("lime",)))[0].best is None
