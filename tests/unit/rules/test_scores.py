"""The scores of rules: counts by hand, published formulas, and resampling by a plain loop."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from engine.metrics.results import RESAMPLES, interval
from engine.rules.result import (
    RuleExample,
    RuleResult,
    balanced_accuracy,
    compare_rules,
    holm,
    independence_p,
    phi,
    score_rule,
)

HOLDS = (True, True, True, True, False, False)
CLAIMED = (True, True, True, False, True, False)


def result(
    holds: Sequence[bool] = HOLDS, claimed: Sequence[bool] = CLAIMED, rule: str = '"not" -> negative'
) -> RuleResult:
    examples = tuple(
        RuleExample(at, one, at % 2 == 1, "not" if one else "", 0 if hit else 1, hit, 0.8 if hit else 0.3)
        for at, (one, hit) in enumerate(zip(holds, claimed, strict=True))
    )
    return RuleResult(rule, "negative", False, examples)


def test_six_examples_by_hand() -> None:
    scores = score_rule(result())
    assert scores.share.value == 3 / 4
    assert scores.share.n == 4
    assert scores.coverage == 4 / 6
    assert scores.base == 4 / 6
    assert scores.lift == pytest.approx((3 / 4) / (4 / 6))
    assert scores.balanced.value == pytest.approx((3 / 4 + 1 / 2) / 2)
    # Three hits and one correct rejection, one of each error, over the root of the margins.
    assert scores.phi == pytest.approx(2 / 8)
    # Of all tables with these margins: 3 or 4 hits of 4, (C(4,3) C(2,1) + C(4,4) C(2,0)) / C(6,4).
    assert scores.p == pytest.approx((4 * 2 + 1) / math.comb(6, 4))
    assert [one.example for one in result().breaking] == [3]


def test_the_interval_of_the_share_is_wilsons() -> None:
    low, high = score_rule(result()).share.interval or (0, 0)
    expected = scipy.stats.binomtest(3, 4).proportion_ci(method="wilson")
    assert (low, high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_balanced_accuracy_is_resampled_by_examples_as_a_loop_does() -> None:
    rng = np.random.default_rng(3)
    holds, claimed = rng.random(40) < 0.4, rng.random(40) < 0.6
    found = score_rule(result(holds.tolist(), claimed.tolist()), seed=5).balanced.interval
    draws = np.random.default_rng([5, 40]).multinomial(40, np.full(40, 1 / 40), RESAMPLES)
    values = []
    for counts in draws:
        some = np.repeat(np.arange(40), counts)
        values.append(balanced_accuracy(holds[some], claimed[some]))
    assert found == pytest.approx(np.quantile([one for one in values if one is not None], [0.025, 0.975]))


def test_an_edit_is_compared_with_a_random_one_in_pairs() -> None:
    edits = ((0.5, 0.7), (0.1, 0.8), (0.9, 0.75), (0.2, 0.1))
    one = result()
    examples = [
        replace(own, removed=edits[at][0], random=edits[at][1], removed_changed=at == 1, random_changed=0.25)
        if own.holds
        else replace(own, inserted=0.6, neutral=0.4 if at == 4 else 0.7)
        for at, own in enumerate(one.examples)
    ]
    scores = score_rule(replace(one, examples=tuple(examples)), seed=2)
    falls = np.array([0.8 - 0.5, 0.8 - 0.1, 0.8 - 0.9, 0.3 - 0.2])
    random = np.array([0.8 - 0.7, 0.8 - 0.8, 0.8 - 0.75, 0.3 - 0.1])
    assert scores.fall.value == pytest.approx(falls.mean())
    assert scores.random_fall.value == pytest.approx(random.mean())
    assert scores.excess.value == pytest.approx((falls - random).mean())
    assert scores.excess.interval == pytest.approx(interval(falls - random, 2))
    assert scores.changed.value == 1 / 4
    assert scores.random_changed == 0.25
    assert scores.rise.value == pytest.approx((0.2 - 0.1) / 2)
    assert scores.toward.value == 1 / 2
    assert (scores.inserted.value, scores.neutral.value) == pytest.approx((0.6, 0.55))


def test_an_example_without_one_of_both_edits_does_not_count() -> None:
    one = result()
    examples = [replace(own, removed=0.5 if own.holds else None) for own in one.examples]
    examples[0] = replace(examples[0], random=0.7, removed_changed=True, random_changed=0.0)
    scores = score_rule(replace(one, examples=tuple(examples)))
    assert (scores.fall.n, scores.fall.interval, scores.changed.n) == (1, None, 1)


def test_a_constant_prediction_or_condition_has_no_score() -> None:
    for holds, claimed in (((True, False), (True, True)), ((True, True), (False, False))):
        scores = score_rule(result(holds, claimed))
        assert scores.balanced.value is None
        assert scores.phi is None
    assert score_rule(result((False, False), (True, False))).share.value is None
    assert score_rule(result((True, True), (True, False))).p is None
    assert score_rule(result((), ())).balanced.value is None


def test_phi_and_p_agree_with_the_library_on_random_tables() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        holds, claimed = rng.random(30) < 0.5, rng.random(30) < 0.4
        table = [[(a & b).sum() for b in (claimed, ~claimed)] for a in (holds, ~holds)]
        chi = scipy.stats.chi2_contingency(table, correction=False).statistic
        assert (phi(holds, claimed) or 0) ** 2 == pytest.approx(chi / 30)
        hits = int(table[0][0])
        tail = scipy.stats.hypergeom(30, int(claimed.sum()), int(holds.sum())).sf(hits - 1)
        assert independence_p(holds, claimed) == pytest.approx(tail)


def test_holm_by_hand() -> None:
    assert holm([0.01, None, 0.04, 0.03]) == pytest.approx([0.03, None, 0.06, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_rules_are_compared_with_the_best_in_pairs_and_more_of_them_widen_the_intervals() -> None:
    rng = np.random.default_rng(1)
    claimed = rng.random(60) < 0.5
    good = np.where(rng.random(60) < 0.8, claimed, ~claimed)
    other = rng.random(60) < 0.5
    [two] = compare_rules([result(other.tolist(), claimed.tolist()), result(good.tolist(), claimed.tolist())])
    assert (two.best, two.other) == (1, 0)
    first, second = balanced_accuracy(good, claimed), balanced_accuracy(other, claimed)
    assert first is not None
    assert second is not None
    assert two.difference.value == pytest.approx(first - second)
    three = compare_rules([result(one.tolist(), claimed.tolist()) for one in (other, good, other)])
    widths = [
        one.difference.interval[1] - one.difference.interval[0] for one in (two, three[0]) if one.difference.interval
    ]
    assert widths[1] > widths[0]
    [same] = compare_rules([result(good.tolist(), claimed.tolist())] * 2)
    assert same.difference.interval == (0.0, 0.0)
    assert compare_rules([result()]) == []


def test_the_attribution_rule_is_compared_in_the_held_out_half_alone() -> None:
    one = result()
    examples = tuple(replace(own, attribution_holds=own.as_claimed) for own in one.examples)
    scores = score_rule(replace(one, examples=examples, method="lime", word="w"))
    # Held out are examples 1, 3 and 5, of which the first has the class; the rule is true for 1 and 3.
    assert scores.own.value == pytest.approx((1 + 1 / 2) / 2)
    assert scores.attribution.value == 1.0
    assert scores.gain.value == pytest.approx(-0.25)
    assert scores.own.n == 3


def test_of_pictures_falls_are_compared() -> None:
    examples = tuple(
        RuleExample(at, True, at > 0, "", 1, True, 0.9, removed=0.2 + 0.1 * at, removed_changed=True, random=0.8,
                    random_changed=0.0, attribution=0.5)
        for at in range(3)
    )  # fmt: skip
    scores = score_rule(RuleResult("object -> any", "any", True, examples, "lime"))
    assert scores.own.value == pytest.approx(np.mean([0.9 - 0.3, 0.9 - 0.4]))
    assert scores.attribution.value == pytest.approx(0.4)
    assert scores.gain.value == pytest.approx(0.15)
    assert scores.excess.value == pytest.approx(0.5)
    assert scores.balanced.value is None
