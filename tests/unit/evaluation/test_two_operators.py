"""The same maps judged by two removal operators: whose numbers they are, their cost, when the best method depends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import engine.metrics.faithfulness as faithfulness
from engine.errors import UsageError
from engine.evaluation.experiment import evaluate, rows
from engine.evaluation.operator_comparison import DEPENDS, SAME, comparison_texts
from engine.evaluation.plan import EvaluationPlan
from engine.evaluation.result import Evaluation, pack, unpack
from engine.evaluation.scores import to_json
from engine.experiments.base import experiment
from engine.experiments.run import FORMATS, finished
from engine.reproduction.experiments import ExperimentRequest, plan_evaluation
from tests.explaining import checkpoint
from tests.unit.evaluation.by_hand import Found, by_two_operators
from tests.unit.evaluation.making import REVIEWS, written
from tests.unit.vision.tiny_vit import vit_folder

pytestmark = pytest.mark.usefixtures("home")

METHODS = ("gradient_l2", "occlusion")
METRICS = ("comprehensiveness", "sufficiency", "with_top", "plausibility_auc")
REMOVAL = METRICS[:3]
MODEL = "reviews-minilm"
SHAKE = (0.01, -0.01) * 5
SWING = (0.4, -0.4) * 5


@pytest.fixture
def reviews(tmp_path: Path) -> str:
    return written(tmp_path / "reviews.jsonl", REVIEWS)


def texts(reviews: str, metrics: Sequence[str] = METRICS, **more: object) -> Evaluation:
    return evaluate([str(checkpoint("bert"))], reviews, METHODS, metrics, **more)


def pictures(metrics: Sequence[str] = REMOVAL, **more: object) -> Evaluation:
    return evaluate([str(vit_folder())], "scenes:count=3", METHODS, metrics, dtype="float64", **more)


def test_the_second_numbers_of_texts_are_those_of_an_evaluation_by_that_operator(
    reviews: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = texts(reviews)
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "another"))
    first = texts(reviews, second_removal="none")
    second = texts(reviews, REMOVAL, removal="delete", second_removal="none")
    assert first.requested_rows == second.requested_rows > 0, "nothing was found in a cache"
    assert both.second is not None
    assert (first.second, first.operator_comparisons) == (None, [])
    assert (both.rows, both.skips) == (first.rows, first.skips)
    assert (both.second.rows, both.second.skips, both.second.scores) == (second.rows, second.skips, second.scores)
    assert both.second.plan == second.plan
    assert {row.value for row in both.second.rows} != {row.value for row in both.rows if row.of.metric in REMOVAL}


def test_the_second_numbers_of_pictures_are_those_of_an_evaluation_by_that_operator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = pictures()
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "another"))
    assert both.second is not None
    assert both.second.plan.removal == "drop"
    assert both.second.rows == pictures(removal="drop", second_removal="none").rows


@pytest.mark.parametrize(
    ("options", "operators"),
    [
        ({}, ("mask", "delete")),
        ({"removal": "delete"}, ("delete", "mask")),
        ({"removal": "zero"}, ("zero", "delete")),
        ({"second_removal": "hide"}, ("mask", "hide")),
        ({"second_removal": "none"}, ("mask", None)),
        ({"metrics": ("complexity", "plausibility_auc")}, ("mask", None)),
        ({"metrics": ("with_top",)}, ("mask", "delete")),
    ],
)
def test_the_second_operator_is_another_one_or_none(options: dict[str, str], operators: tuple[str, str | None]) -> None:
    plan = EvaluationPlan((MODEL,), "reviews", METHODS, **options)  # type: ignore[arg-type]
    assert (plan.operator, plan.second_operator) == operators


def test_nothing_is_computed_for_it_where_no_metric_removes_units(
    reviews: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faithfulness.SharedRows, "values", lambda *given: pytest.fail("nothing is to be removed"))
    assert texts(reviews, ["complexity"]).second is None


def test_a_result_without_it_is_found_whatever_it_was_switched_off_by(reviews: str) -> None:
    texts(reviews, ["complexity"])
    model = str(checkpoint("bert"))
    assert finished(EvaluationPlan((model,), reviews, METHODS, ("complexity",), second_removal="none")) is not None
    texts(reviews, REMOVAL)
    assert finished(EvaluationPlan((model,), reviews, METHODS, REMOVAL, second_removal="delete")) is not None
    assert finished(EvaluationPlan((model,), reviews, METHODS, REMOVAL, second_removal="none")) is None


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"second_removal": "blur"}, "second_removal: unknown name 'blur'"),
        ({"second_removal": "mask"}, "must be another operator than the first, or none, got 'mask'"),
        ({"removal": "delete", "second_removal": "delete"}, "must be another operator than the first"),
    ],
)
def test_the_same_operator_twice_and_unknown_ones_are_refused(
    reviews: str, options: dict[str, str], error: str
) -> None:
    with pytest.raises(UsageError, match=error):
        texts(reviews, **options)


def test_a_reproduction_has_one_operator() -> None:
    request = ExperimentRequest((MODEL,), "reviews", ("comprehensiveness",), 3, 0, {})
    assert plan_evaluation(request).second_operator is None


def test_files_name_the_operator_of_each_row_and_the_cache_keeps_both(reviews: str) -> None:
    found = texts(reviews)
    [one] = found.models
    assert one.second is not None
    assert unpack(found.plan, *pack(one)).second is not None
    again = unpack(found.plan, *pack(one))
    assert list(rows(again)) == list(rows(one))
    written_rows = json.loads(FORMATS["json"](found))
    operators = {(row["metric"], row["removal"]) for row in written_rows}
    assert operators == {("plausibility_auc", "")} | {(id, one) for id in REMOVAL for one in ("mask", "delete")}
    of = [row["value"] for row in written_rows if (row["metric"], row["removal"]) == ("sufficiency", "delete")]
    assert of == [row.value for row in one.second.rows if row.of.metric == "sufficiency"]
    assert FORMATS["csv"](found).decode().splitlines()[0].endswith(",percent,removal")
    told = to_json(found)
    assert {(score["metric"], score["removal"]) for score in told["scores"]} == {
        ("plausibility_auc", None), *((id, "mask") for id in REMOVAL)
    }  # fmt: skip
    assert {(score["metric"], score["removal"]) for score in told["second_scores"]} == {
        (id, "delete") for id in REMOVAL
    }
    assert {(one["metric"], tuple(one["operators"])) for one in told["operators"]} == {
        (id, ("mask", "delete")) for id in REMOVAL[:2]
    }


def test_a_slice_has_the_second_scores_of_its_examples(reviews: str) -> None:
    found = texts(reviews).slice(lambda fact: fact.example < 2)
    assert found.second is not None
    assert {row.example for row in found.second.rows} == {0, 1}


def means(**values: Found) -> dict[tuple[str, str, str], Found]:
    return {(MODEL, method, "comprehensiveness"): own for method, own in values.items()}


def around(mean: float, swing: Sequence[float] = SHAKE) -> list[float]:
    return [mean + one for one in swing]


def test_leaders_that_each_win_by_their_own_operator_depend_on_it() -> None:
    """LIME leads by 0.2 with mask on every example, Gradient L2 by 0.1 with delete: both intervals are those points.

    The three means are in reverse order, so that rho is -1, in each resample too.
    """
    found = by_two_operators(
        means(lime=around(0.5), gradient_l2=around(0.3), occlusion=around(0.4), random=around(0.1)),
        means(lime=around(0.2), gradient_l2=around(0.3), occlusion=around(0.25), random=around(0.1)),
    )
    [one] = found.operator_comparisons
    assert one.leaders == (("lime",), ("gradient_l2",))
    assert one.gaps is not None
    assert [gap.value for gap in one.gaps] == pytest.approx([0.2, -0.1])
    assert [gap.interval for gap in one.gaps] == [pytest.approx((0.2, 0.2)), pytest.approx((-0.1, -0.1))]
    assert one.agreement is not None
    assert (one.agreement.rho, one.agreement.methods, one.agreement.examples) == (pytest.approx(-1), 3, 10)
    assert one.depends
    assert one.behind == ("lime",), "occlusion is not level by mask"
    assert comparison_texts([one], {"lime": "LIME"}) == [
        DEPENDS,
        "Comprehensiveness: LIME is significantly better with mask, gradient_l2 with delete "
        "(Spearman's ρ −1.00, 95% interval −1.00 to −1.00). "
        "LIME, which uses mask itself, falls significantly behind the best with delete.",
    ]


def test_where_less_is_better_the_gaps_are_turned() -> None:
    first, second = means(lime=around(0.1), gradient_l2=around(0.3)), means(lime=around(0.3), gradient_l2=around(0.1))
    flipped = ({(*key[:2], "sufficiency"): own for key, own in one.items()} for one in (first, second))
    [one] = by_two_operators(*flipped).operator_comparisons
    assert one.leaders == (("lime",), ("gradient_l2",))
    assert one.gaps is not None
    assert [gap.value for gap in one.gaps] == pytest.approx([0.2, -0.2])
    assert one.depends
    assert one.agreement is None, "two methods have no rank correlation"


@pytest.mark.parametrize("flip", [False, True])
def test_a_swap_that_one_of_the_operators_does_not_show_is_not_significant(flip: bool) -> None:
    """By one operator the leader is ahead by 0.05 on average, by 0.4 more or less from one example to the next."""
    clear = means(lime=around(0.5), gradient_l2=around(0.3), random=around(0.1))
    unclear = means(lime=around(0.3), gradient_l2=around(0.35, SWING), random=around(0.1))
    [one] = by_two_operators(*((unclear, clear) if flip else (clear, unclear))).operator_comparisons
    assert one.leaders == ((("gradient_l2",), ("lime",)) if flip else (("lime",), ("gradient_l2",)))
    assert not one.depends
    assert one.behind == ()
    verdict, text = comparison_texts([one], {})
    assert verdict == SAME
    assert "but the swap is not significant" in text


def test_a_method_that_leads_by_both_and_others_that_fall_behind() -> None:
    """Occlusion and LIME tie with IG with mask; with delete both lie 0.1 below it."""
    values = {"integrated_gradients": around(0.5), "random": around(0.1)}
    found = by_two_operators(
        means(**values, lime=around(0.5, SWING), occlusion=around(0.5, SWING)),
        means(**values, lime=around(0.4), occlusion=around(0.4)),
    )
    [one] = found.operator_comparisons
    assert one.gaps is None
    assert not one.depends
    assert set(one.behind) == {"lime", "occlusion"}
    verdict, text = comparison_texts([one], {"integrated_gradients": "IG"})
    assert verdict == SAME
    assert text.startswith("Comprehensiveness: IG leads with both")
    assert text.endswith(
        "lime and occlusion, which use mask themselves, fall significantly behind the best with delete."
    )


def test_a_method_that_uses_another_operator_itself_does_not_fall_behind_for_it() -> None:
    found = by_two_operators(
        means(lime=around(0.5), gradient_l2=around(0.4)),
        means(lime=around(0.2), gradient_l2=around(0.4)),
        ("pad", "mask"),
    )
    assert found.operator_comparisons[0].behind == ()


def test_one_example_or_no_values_compare_nothing() -> None:
    assert by_two_operators(means(lime=[0.5]), means(lime=[0.4])).operator_comparisons == []
    none: Found = ["no order"] * 3
    found = by_two_operators(means(lime=[0.5, 0.4, 0.3]), means(lime=none))
    assert found.operator_comparisons == []


def test_the_page_opens_with_two_operators() -> None:
    opening = experiment("evaluate").opens_with
    assert {kind: plan.second_operator for kind, plan in opening.items()} == {"text": "delete", "image": "drop"}
