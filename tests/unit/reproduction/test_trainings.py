"""Verdicts over several trainings: their intervals by hand and by simulation, and what an examination says of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from engine.errors import UsageError
from engine.reproduction.claims import Claim, declaration
from engine.reproduction.report import CEILING, CONSTRUCTION, ClaimNumber, ClaimOutcome, Reproduction, Verdict
from engine.reproduction.shipped import shipped_report
from engine.reproduction.trainings import examine_trainings, over_trainings, training_interval

CLAIM = next(claim for claim in declaration().claims if claim.id == "marked-attention-between")
"""Four numbers, more than 0."""


def outcome_of(claim: Claim, value: float, reach: float, *, at_best: bool = False) -> ClaimOutcome:
    wide = 1.5 * reach

    def number(name: str) -> ClaimNumber:
        ends = value - reach, value + reach, value - wide, value + wide
        return ClaimNumber(name, value, *ends, 100, "undecided", at_best)

    entries = tuple(tuple(number(contrast.name) for contrast in entry) for entry in claim.entries)
    return ClaimOutcome(claim.id, "undecided", entries)


def over(claim: Claim, values: Sequence[float], reach: float = 0.01, *, at_best: bool = False) -> Verdict | None:
    return over_trainings(claim, [outcome_of(claim, value, reach, at_best=at_best) for value in values])


def test_the_interval_adds_both_reaches_as_squares() -> None:
    values, intervals = (0.2, 0.3, 0.4), ((0.1, 0.25), (0.2, 0.4), (0.3, 0.5))
    spread = 4.302652729911275 * 0.1 / math.sqrt(3)
    low, high = training_interval(values, intervals, 0.05)
    assert low == pytest.approx(0.3 - math.sqrt(spread**2 + 0.1**2))
    assert high == pytest.approx(0.3 + math.sqrt(spread**2 + (0.25 / 3) ** 2))
    equal = training_interval((0.5, 0.5), ((0.4, 0.6), (0.4, 0.6)), 0.05)
    assert equal == pytest.approx((0.4, 0.6)), "trainings that agree leave the interval over examples"


@pytest.mark.parametrize("between", [0.0, 0.02, 0.1, 0.5])
@pytest.mark.parametrize("both", [0.0, 0.5])
def test_it_contains_the_true_mean_at_least_as_often_as_it_says(between: float, both: float) -> None:
    """Of three trainings on the same 40 examples. `between`: the spread of trainings; `both`: of each with examples."""
    runs, trainings, examples = 2000, 3, 40
    draw = np.random.default_rng(0).standard_normal
    values = (
        between * draw((runs, trainings, 1))
        + 0.5 * draw((runs, 1, examples))
        + both * draw((runs, trainings, examples))
    )
    means = values.mean(axis=2)
    reach = stats.t.ppf(0.975, examples - 1) * values.std(axis=2, ddof=1) / math.sqrt(examples)
    inside = 0
    for mean, own in zip(means.tolist(), reach.tolist(), strict=True):
        low, high = training_interval(mean, [(m - r, m + r) for m, r in zip(mean, own, strict=True)], 0.05)
        inside += low <= 0 <= high
    assert inside / runs >= 0.94, "2,000 runs of an interval that is wrong at 5 % are above this in 98 of 100 cases"


def test_a_claim_is_judged_by_its_mean_over_trainings() -> None:
    assert over(CLAIM, (0.3, 0.31, 0.32)) == "holds"
    assert over(CLAIM, (-0.3, -0.31, -0.32)) == "does not hold"
    assert over(CLAIM, (0.3, 0.1, 0.5)) == "undecided", "the trainings differ"
    assert over(CLAIM, (0.3, 0.31, 0.32), 0.4) == "undecided", "the examples do"
    assert over(CLAIM, (0.3, 0.31, 0.32), at_best=True) == CEILING
    assert over(replace(CLAIM, by_construction="Always."), (0.3, 0.31, 0.32)) == CONSTRUCTION
    without = ClaimOutcome(CLAIM.id, "not run", why="It is not here.")
    assert over_trainings(CLAIM, [outcome_of(CLAIM, 0.3, 0.01), without]) is None


def test_an_examination_compares_reports_of_the_same_claims() -> None:
    shipped = shipped_report("faithfulness")
    assert shipped is not None
    report = shipped.report
    part = replace(report, outcomes=tuple(one for one in report.outcomes if one.id == CLAIM.id))
    found = examine_trainings("faithfulness", "seeds 1 and 2", [part, part])
    own = {one.id: one.verdict for one in report.outcomes}[CLAIM.id]
    assert found["verdicts"] == {CLAIM.id: [own, own]}
    assert found["overall"] == {CLAIM.id: own}
    assert "1 claims were also judged on 2 other trainings" in found["how"]
    assert "1 of the claims have the same verdict with all 3 trainings" in found["how"]
    turned = replace(part.outcomes[0], verdict="does not hold" if own == "holds" else "holds")
    opposed = examine_trainings("faithfulness", "seed 1", [replace(part, outcomes=(turned,))])
    assert (
        f"Verdicts of 1 are opposed: they hold with one training and fail with another (`{CLAIM.id}`)" in opposed["how"]
    )
    for other in (replace(report, digest="0"), replace(report, examples=2)):
        with pytest.raises(UsageError, match="REPORT: must be of the claims of"):
            examine_trainings("faithfulness", "seed 1", [other])


def test_claims_judged_before_are_kept() -> None:
    shipped = shipped_report("faithfulness")
    assert shipped is not None
    report, first, second = shipped.report, "marked-found", CLAIM.id

    def part(id: str) -> Reproduction:
        return replace(report, outcomes=tuple(one for one in report.outcomes if one.id == id))

    both = replace(report, outcomes=part(first).outcomes + part(second).outcomes)
    at_once = examine_trainings("faithfulness", "seeds 1 and 2", [both, both])
    assert list(at_once["verdicts"]) == [first, second]
    for one, other in ((first, second), (second, first)):
        before = examine_trainings("faithfulness", "seeds 1 and 2", [part(one)] * 2)
        assert examine_trainings("faithfulness", "seeds 1 and 2", [part(other)] * 2, before) == at_once
        assert examine_trainings("faithfulness", "seeds 1 and 2", [part(one)] * 2, at_once) == at_once
    worst = replace(part(first), models=tuple(replace(one, accuracy=0.5) for one in report.models))
    known = examine_trainings("faithfulness", "seeds 1 and 2", [worst] * 2)
    assert examine_trainings("faithfulness", "seeds 1 and 2", [both] * 2, known)["accuracies"] == [0.5, 1]
    with pytest.raises(UsageError, match="WHICH: must be 'seeds 1 and 2'"):
        examine_trainings("faithfulness", "seeds 3 and 4", [both], at_once)
