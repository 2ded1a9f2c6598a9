"""What the Evaluate page says: what numbers are against, what was left out, what it costs, and the command."""

from __future__ import annotations

import dataclasses
import shlex
from functools import partial
from unittest.mock import Mock

import pytest
from streamlit.testing.v1 import AppTest

from components.evaluate.charts import clicked_point
from components.evaluate.examples import cut_to, example_html, example_link, examples_of, title_html
from components.evaluate.page import (
    MODEL,
    NEITHER,
    PEOPLE,
    SECOND,
    TRUTH,
    added_methods,
    left_out,
    left_out_title,
    metrics_html,
    reference_texts,
)
from components.evaluate.view import EvaluationView, ScorePoint, cost_text, model_evaluations, plan_text
from components.experiment import runs
from components.experiment.page import command_line
from components.experiment.runs import job_state, plan_summary, plan_title, skip_reasons_html
from components.experiment.state import state_of
from engine.data.sources import load_source
from engine.evaluation.plan import EVALUATE, EvaluationPlan
from engine.evaluation.result import ExampleFacts
from engine.jobs import Job
from engine.metrics.results import MetricKey, MetricRow, MetricSkip
from engine.registry import all_explainers
from engine.shipped.make import EVALUATION_PLANS
from tests.unit.components.test_library import JOB
from tests.unit.evaluation.by_hand import by_two_operators, evaluation

EVIL = "<img src=x onerror=alert(1)>"
TEXT = all_explainers("text")
PLAN = EvaluationPlan(
    ("m",),
    "d",
    ("lime",),
    ("comprehensiveness", "gt_overlap"),
    examples=3,
    unit="token",
    removal="mask",
    second_removal="none",
)
OF = MetricKey("m", "d", "lime", "comprehensiveness")
ROWS = tuple(MetricRow(OF, example, value) for example, value in ((4, 0.2), (1, 0.9), (2, -0.5)))
FACTS = tuple(
    ExampleFacts("m", example, "good", "bad", 0.75, right, length)
    for example, right, length in ((1, True, 3), (2, False, 3), (4, True, 9))
)
FOUND = evaluation(PLAN, ROWS, (), FACTS)
AT = ScorePoint("m", "lime", "comprehensiveness")
STATE = state_of(EVALUATE.opens_with["text"], EvaluationView)


@pytest.mark.parametrize(
    ("metrics", "exact", "expected"),
    [
        (("gt_overlap",), True, [TRUTH]),
        (("plausibility_auc",), False, [PEOPLE]),
        (("token_f1_first", "sufficiency"), False, [PEOPLE, MODEL]),
        (("complexity",), True, [NEITHER]),
    ],
)
def test_what_is_measured_against_what_is_said(metrics: tuple[str, ...], exact: bool, expected: list[str]) -> None:
    found = dataclasses.replace(FOUND, plan=dataclasses.replace(PLAN, metrics=metrics))
    assert reference_texts(found, exact) == expected
    one = {("reviews-minilm", "lime", "sufficiency"): [0.5, 0.4]}
    assert reference_texts(by_two_operators(one, one), False)[-1] == SECOND.format("delete")


def test_how_it_was_done_names_units_and_removal() -> None:
    assert plan_text(PLAN, 3) == "3 examples, seed 0; tokens removed by mask; means over 5, 10, 20, 50% removed."
    plan = dataclasses.replace(PLAN, unit="patch", removal="blur", shares=(10,))
    assert "patches removed by blur; means over 10% removed" in plan_text(plan, 3)


def test_reasons_are_counted_once_an_example_the_commonest_first() -> None:
    other = dataclasses.replace(OF, metric="sufficiency")
    skips = [MetricSkip(OF, 1, "rare"), MetricSkip(OF, 2, EVIL), MetricSkip(other, 2, EVIL), MetricSkip(OF, 3, EVIL)]
    lines = left_out(skips, {"lime": "LIME"})
    assert lines == [
        (EVIL, "2 examples on m", "LIME: comprehensiveness; sufficiency"),
        ("rare", "1 example on m", "LIME: comprehensiveness"),
    ]
    assert "<img" not in skip_reasons_html(lines)
    assert left_out_title(skips, {"lime": "LIME"}, ["lime"]) == "Missing values: LIME (by 2 metrics)"
    many = [MetricSkip(dataclasses.replace(OF, method=method), 1, "rare") for method in "abc"]
    assert left_out_title(many, {}, "abcd") == "Missing values: 3 methods"
    assert left_out_title(many, {}, "bcd") == "Missing values: b (by 1 metric), c (by 1 metric)"
    assert left_out_title(many, {}, "d") == "Missing values: 3 methods"


def test_missing_agreement_names_the_method_that_all_pairs_share() -> None:
    """A method of equal scores that came along is no reason to say that all others lack values."""
    titles = {"lime": "LIME", "gradient": "Gradient", "random": "Random"}
    marked = titles | {"gradient": "Gradient (not in the table)"}
    pairs = [ScorePoint("m", "lime", "rank_spearman", "gradient"), ScorePoint("m", "gradient", "rank_top_k", "random")]
    skips = [MetricSkip(MetricKey("m", "d", one.method, one.metric, one.against), 1, "equal") for one in pairs]
    own = MetricSkip(MetricKey("m", "d", "gradient", "gt_overlap"), 1, "equal")
    assert left_out_title([own, *skips], titles, ["lime", "random"]) == "Missing values: agreement with Gradient"
    assert left_out(skips, marked) == [
        ("equal", "1 example on m", "agreement with Gradient (not in the table): rank agreement; top-15% agreement")
    ]
    one = left_out_title(skips[:1], titles, ["lime", "random"])
    assert one == "Missing values: agreement of LIME with Gradient"
    apart = MetricSkip(MetricKey("m", "d", "occlusion", "rank_spearman", "random"), 1, "equal")
    unrelated = left_out_title([skips[0], apart], titles, ["lime", "random"])
    assert unrelated == "Missing values: agreement of 2 pairs of methods"
    lime = MetricSkip(MetricKey("m", "d", "lime", "gt_overlap"), 1, "long")
    assert left_out_title([lime, *skips], titles, ["lime", "random"]) == "Missing values: LIME (by 1 metric)"


def test_metrics_are_explained_with_their_source() -> None:
    told = metrics_html(["mean_rank", "seconds"])
    assert "Rank; lower is better. <cite>The thesis" in told
    assert told.count("<cite>") == 1


def test_the_cost_counts_maps_and_removal() -> None:
    plan = EvaluationPlan(("m", "n"), "d", ("lime", "random"), ("comprehensiveness",))
    maps = 512 + 2
    alone = dataclasses.replace(plan, second_removal="none")
    assert model_evaluations(plan, TEXT, 10) == 2 * 10 * (maps + 2 * 2 * len(plan.percents) * 2), "by two operators"
    assert model_evaluations(alone, TEXT, 10) == 2 * 10 * (maps + 2 * len(plan.percents) * 2)
    assert cost_text(alone, TEXT, 10).startswith("10 examples, 2 methods, 2 models: about 11,000 model evaluations.")
    assert model_evaluations(dataclasses.replace(plan, metrics=("complexity",)), TEXT, 10) == 2 * 10 * maps
    assert added_methods(EvaluationPlan(("m",), "d", ("ensemble_top3",))) == [
        "lime",
        "kernel_shap",
        "integrated_gradients",
        "random",
    ]


def test_the_command_says_what_differs_from_its_own() -> None:
    plan = EvaluationPlan(("a b", "n"), "d", ("lime",), seed=2, unit="word", params={"lime": {"n_samples": 64}})
    assert shlex.split(command_line(plan)) == [
        "exegesis", "evaluate", "--models", "a b,n", "--dataset", "d", "--methods", "lime", "--seed", "2",
        "--unit", "word", "--param", "lime.n_samples=64", "--out", "rows.csv",
    ]  # fmt: skip
    named = command_line(dataclasses.replace(plan, shares=(10, 30), examples=7, metrics=("gt_overlap",)))
    assert "--metrics gt_overlap" in named
    assert "--shares 10,30" in named
    assert "--examples 7" in named


@pytest.mark.parametrize(("order", "expected"), [("high", [1, 4, 2]), ("low", [2, 4, 1]), ("index", [1, 2, 4])])
def test_examples_behind_a_mean_come_in_order_with_their_facts(order: str, expected: list[int]) -> None:
    listed = examples_of(FOUND, AT, order)
    assert [one.row.example for one in listed] == expected
    assert [one.facts.example for one in listed if one.facts] == expected
    assert examples_of(FOUND, dataclasses.replace(AT, percent="50"), order) == []


def test_an_example_that_cannot_be_read_says_so_and_is_not_html() -> None:
    drawn = example_html(examples_of(FOUND, AT, "low")[0], EVIL, 0.9)
    assert "<img" not in drawn
    assert ">−0.500<" in drawn, "with the decimals of the largest"
    assert "label good · predicted bad (75.0%, wrong)" in drawn
    assert "<img" not in title_html(dataclasses.replace(AT, model=EVIL, slice=EVIL), {"lime": EVIL}, 2)


def test_an_example_opens_with_the_units_and_the_removal_that_were_measured() -> None:
    candidate = load_source("text", "reviews").read(3)
    assert example_link(STATE, AT, candidate) == {
        "model": ["m"], "method": ["lime", "random"], "data": ["reviews"], "index": ["3"]
    }  # fmt: skip
    plan = dataclasses.replace(STATE.plan, seed=2, unit="word", removal="pad")
    state = dataclasses.replace(STATE, plan=plan)
    given = example_link(state, AT, candidate)
    assert {name: given[name] for name in ("seed", "unit", "removal")} == {
        "seed": ["2"], "unit": ["word"], "removal": ["pad"]
    }  # fmt: skip


def test_a_slice_is_cut_by_its_name() -> None:
    assert cut_to(FOUND, "", "label", "m") is FOUND
    assert {row.example for row in cut_to(FOUND, "right", "correctness", "m").rows} == {1, 4}
    assert {row.example for row in cut_to(FOUND, "wrong", "label", "m").rows} == {2}
    assert cut_to(FOUND, "nonsense", "label", "m").rows == ()


def test_a_slice_counts_each_example_once_and_has_the_lengths_of_its_model_alone() -> None:
    """The other model has four times as many tokens: its lengths make no bounds here."""
    other = tuple(dataclasses.replace(fact, model="n", length=4 * fact.length) for fact in FACTS)
    rows = tuple(dataclasses.replace(row, of=dataclasses.replace(OF, model="n")) for row in ROWS)
    both = evaluation(dataclasses.replace(PLAN, models=("m", "n")), (*ROWS, *rows), (), (*FACTS, *other))
    assert cut_to(both, "right", "correctness", "n").facts == (other[0], other[2])
    assert cut_to(both, "3 tokens", "length", "m").facts == FACTS[:2]
    assert cut_to(both, "13 to 36 tokens", "length", "n").facts == (other[2],)
    assert cut_to(both, "13 to 36 tokens", "length", "m").rows == ()


def test_what_the_browser_says_of_a_point_is_checked() -> None:
    good = {"model": "m", "method": "lime", "metric": "with_top", "percent": 50, "slice": "right"}
    assert clicked_point(good) == ScorePoint("m", "lime", "with_top", percent="50", slice="right")
    assert clicked_point({**good, "percent": None, "slice": None}) == ScorePoint("m", "lime", "with_top")
    refused: list[object] = [{}, None, [], {**good, "metric": EVIL}, {**good, "model": 3}]
    for bad in refused:
        assert clicked_point(bad) is None


def test_many_names_are_counted() -> None:
    plan = EvaluationPlan(("a", "b", "c", "d"), "reviews", ("lime", "random"), examples=1)
    assert plan_title(plan) == "a, b, c and 1 more on reviews"
    assert plan_summary(plan, {"lime": "LIME"}) == "1 example, LIME, random"
    assert job_state(JOB).endswith(", running")


@pytest.mark.parametrize(
    ("known", "listed"),
    [([], ["text", "image"]), (["text"], ["1", "image"]), (["text", "image"], ["1", "2"])],
)
def test_an_evaluation_is_listed_once_whether_it_is_shipped_or_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, known: list[str], listed: list[str]
) -> None:
    shipped = EVALUATION_PLANS
    job = partial(Mock, spec=Job, state="done", created=0.0)
    there = [(job(id=number), shipped[kind]) for number, kind in enumerate(known, start=1)]
    monkeypatch.setattr(runs, "runs_of", lambda own: there)
    page = AppTest.from_function(listed_page, default_timeout=60).run()
    assert not page.exception
    assert [button.key for button in page.button] == [f"evaluate.recent.{name}" for name in listed]


def listed_page() -> None:
    from components.evaluate.view import SESSION
    from components.experiment.runs import recent_area

    recent_area(SESSION, "Recent evaluations", "")
