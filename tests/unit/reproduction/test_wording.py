"""What claims and numbers are called, what was seen of many numbers, and how long a run takes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.models import catalog
from engine.reproduction.claims import declaration
from engine.reproduction.papers import EMBEDDED, FULL
from engine.reproduction.report import ClaimNumber, ClaimOutcome, ModelSummary, Verdict
from engine.reproduction.thesis import SECONDS, ThesisQuery
from engine.reproduction.wording import (
    UNKNOWN_TIME,
    accuracy_text,
    decision_text,
    decisive_number,
    distribution_text,
    number_title,
    statistic_text,
    sum_text,
    summary_sentence,
    time_text,
    trainings_text,
)
from tests.unit.reproduction.stand_ins import report_of


def number(value: float, verdict: Verdict) -> ClaimNumber:
    return ClaimNumber("lime", value, value, value, value, value, 9, verdict)


def test_names_are_told_by_the_titles_of_methods_measures_and_models() -> None:
    assert number_title("nli, comprehensiveness, kernel_shap", EMBEDDED) == "nli, Comprehensiveness, Kernel SHAP"
    assert number_title("lime, size-2", EMBEDDED) == "LIME, t5-small"
    assert number_title("lime, size-2", FULL) == "LIME, t5-efficient-mini"
    assert number_title("", EMBEDDED) == ""


def test_sums_are_told_with_their_weights() -> None:
    [linear] = declaration("sanity").select(("random-average-linear",))
    assert statistic_text(linear) == (
        "paired difference of rho with the later half of the blocks random and rho with all blocks random; "
        "each of 4 numbers"
    )
    models = "attention_mean; t5-mini-context"
    assert sum_text(linear.contrasts[0], EMBEDDED, {}) == f"cascading_half({models}) - 0.5 cascading_end({models})"


def test_it_is_told_how_many_trainings_a_claim_rests_on() -> None:
    sizes, one = declaration().select(("marked-found", "marked-rollout-second"))
    assert trainings_text(sizes, EMBEDDED) == "It rests on one training of each of 4 models."
    assert trainings_text(one, EMBEDDED) == "It rests on one training of one model."
    assert not any(trainings_text(claim, EMBEDDED) for claim in declaration("smat").claims)


def test_of_many_numbers_is_told_where_they_lie() -> None:
    some = (number(0.2, "holds"), number(-0.4, "does not hold"), number(0.1, "holds"))
    expected = "3 numbers, 2 within their bounds, 1 outside; values from −0.4 to 0.2"
    assert distribution_text(ClaimOutcome("a", "does not hold", tuple((one,) for one in some))) == expected
    assert distribution_text(ClaimOutcome("a", "holds", ((some[0],),))) == ""


def test_of_a_claim_that_fails_because_a_difference_is_too_small_this_is_told() -> None:
    [claim] = declaration("smat").select(("image-smat-baseline",), {"image": {"middle": 400}})
    small = ClaimNumber("400 examples", 0.003, -0.03, 0.037, -0.03, 0.037, 15, "does not hold", smallest_gain=0.039)
    fails = ClaimOutcome(claim.id, "does not hold", ((small,),), unit="seeds")
    assert decision_text(claim, fails, EMBEDDED) == (
        "400 examples: 0.003 (−0.03 to 0.037), n 15; any gain is below 0.039, and five students per setting, as in the "
        "paper, miss such gains more than two times in three"
    )
    worse = replace(fails, entries=((replace(small, value=-0.05, wide_high=-0.01, high=-0.01),),))
    assert (fails.too_small, worse.too_small) == (True, False)
    both = replace(worse, entries=(*fails.entries, *worse.entries))
    assert not both.too_small, "it would fail without the number that is too small"
    assert decisive_number(claim, both) is both.numbers[1]
    undecided = replace(small, verdict="undecided", value=-0.02, wide_high=0.02, smallest_gain=0.01)
    some = replace(fails, entries=((undecided,), *fails.entries))
    assert decisive_number(claim, some) is small, "an undecided number decides nothing, however low"
    report = replace(report_of(ThesisQuery(), "bert-marked"), outcomes=(fails, worse))
    assert summary_sentence(report) == (
        "Of 2 claims: 0 hold, 2 do not. 1 of the 2 that do not hold fails only because its gain is too small to be "
        "found with five students per setting."
    )


def test_how_often_models_are_right_is_told_by_data_set() -> None:
    report = report_of(ThesisQuery(), "bert-marked")
    assert accuracy_text(report) == ""
    rights = (("a", "nli", 0.31), ("b", "nli", 0.406), ("c", "reviews", 1.0), ("d", "reviews", None))
    models = tuple(ModelSummary(name, data, "", share, 100) for name, data, share in rights)
    expected = (
        "On nli the models are right on 31 to 41% of the examples; on reviews the models are right on 100% of the "
    )
    assert accuracy_text(replace(report, models=models)) == f"{expected}examples."


def test_time_is_that_of_the_models_that_are_here(monkeypatch: pytest.MonkeyPatch) -> None:
    one = ("families-attention-gpt2-last",)
    assert ThesisQuery(examples=30, claims=one).seconds() == pytest.approx(30 * SECONDS["gpt2"])
    assert "takes about" in time_text(ThesisQuery(examples=30, claims=one))
    assert ThesisQuery(claims=one, places={"gpt2-marked": "elsewhere"}).seconds() is None
    assert SECONDS.keys() == {base.rpartition("/")[2] for base in EMBEDDED.bases.values()}
    monkeypatch.setattr(catalog, "revision", lambda place: place)
    assert time_text(ThesisQuery("full", claims=one)) == UNKNOWN_TIME
