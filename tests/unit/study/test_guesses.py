"""What guesses say, against counts by hand, published intervals, and people whose skill is known."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from engine.errors import UsageError
from engine.metrics.results import wilson_interval
from engine.study.counted_votes import WITHOUT, GuessAnswer, GuessTarget
from engine.study.guesses import (
    GuessSummary,
    gain_interval,
    pool_ratios,
    share_interval,
    summarize_guesses,
)
from engine.study.simulation import GuessSimulation, simulate_guesses

NORMAL = 1.959964
SKILL = {WITHOUT: 0.6, "lime": 0.85, "gradient": 0.6, "random": 0.35}


def guess(who: str, condition: str, label: int | None, sure: int = 3, item: str = "1", **more: int) -> GuessAnswer:
    """The model said 1, and the truth is 0."""
    return GuessAnswer(who, item, condition, label, None if label is None else sure, GuessTarget(1, 0), **more)


def found_in(made: GuessSimulation) -> GuessSummary:
    return summarize_guesses(simulate_guesses(made), tuple(made.accuracy)[1:])


ANSWERS = [
    guess("a", WITHOUT, 1, sure=5),
    guess("a", WITHOUT, 0, sure=1, item="2"),
    guess("b", WITHOUT, None, item="3"),
    guess("a", "lime", 1, sure=4, item="4", seconds=10),
    guess("b", "lime", 1, sure=4, seconds=20),
    guess("b", "lime", 0, sure=5, item="2", seconds=30),
    guess("b", "lime", 1, sure=5, item="2", repeat=1),
    guess("b", "lime", 1, sure=5, repeat=1),
]


def test_the_numbers_are_those_counted_by_hand() -> None:
    found = summarize_guesses(ANSWERS, ["lime", "random"], "random")
    without, lime, random = found.conditions
    assert without.share is not None
    assert lime.share is not None
    assert (without.share.right, without.share.guesses, without.cannot_tell, without.answers) == (1, 2, 1, 3)
    assert (lime.share.right, lime.share.guesses, lime.cannot_tell) == (2, 3, 0)
    assert without.sure == 3
    assert lime.sure == pytest.approx(13 / 3)
    assert lime.gain is not None
    assert lime.gain.accuracy == pytest.approx(2 / 3 - 1 / 2)
    assert lime.gain.sure == pytest.approx(13 / 3 - 3)
    assert {level: (share.right, share.guesses) for level, share in found.by_sureness.items()} == {
        1: (0, 1),
        4: (2, 2),
        5: (1, 2),
    }
    assert {level: share.accuracy for level, share in lime.by_sureness.items()} == {4: 1, 5: 0}
    assert lime.seconds is not None
    assert lime.seconds.median == 20
    assert (without.seconds, without.gain) == (None, None)
    assert (random.share, random.sure, random.gain, random.answers) == (None, None, None, 0)
    assert found.consistency == (0.5, 2)
    assert (found.guesses, found.cannot_tell, found.annotators, found.items) == (5, 1, 2, 4)


def test_right_is_what_the_model_said_and_not_the_truth() -> None:
    found = summarize_guesses(ANSWERS, ["lime"])
    assert found.obvious == 0
    assert found.commonest == 1
    known = [dataclasses.replace(one, target=GuessTarget(1)) for one in ANSWERS]
    assert summarize_guesses(known, ["lime"]).obvious is None


def test_the_commonest_class_is_counted_over_the_answers() -> None:
    answers = [dataclasses.replace(guess("a", WITHOUT, 1, item=str(n)), target=GuessTarget(n % 3)) for n in range(7)]
    assert summarize_guesses(answers, ["lime"]).commonest == pytest.approx(3 / 7)


@pytest.mark.parametrize(
    ("right", "count", "low", "high"), [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611)]
)
def test_one_persons_interval_is_wilsons(right: int, count: int, low: float, high: float) -> None:
    """The published figures of Newcombe (1998), Statistics in Medicine 17, page 857, table I, method 3."""
    assert wilson_interval(right / count, count, NORMAL) == pytest.approx((low, high), abs=5e-5)
    alone = pool_ratios(np.array([[float(right)]]), np.array([[float(count)]]))
    assert share_interval(alone, 0) == pytest.approx((low, high), abs=5e-5)


def test_wilsons_ends_solve_the_equation_of_the_score_test() -> None:
    for end in wilson_interval(0.7, 33, 2.5):
        assert abs(0.7 - end) == pytest.approx(2.5 * np.sqrt(end * (1 - end) / 33))


def test_one_persons_difference_is_agresti_and_caffos() -> None:
    right, count = np.array([[48.0, 56.0]]), np.array([[80.0, 70.0]])
    shares, counts = np.array([49 / 82, 57 / 72]), np.array([82, 72])
    error = np.sqrt((shares * (1 - shares) / counts).sum())
    middle = 57 / 72 - 49 / 82
    wanted = (middle - NORMAL * error, middle + NORMAL * error)
    assert gain_interval(pool_ratios(right, count), 1, 0, 1) == pytest.approx(wanted, abs=1e-6)


def test_people_who_agree_by_luck_make_no_interval_narrower_than_independent_answers() -> None:
    for right in (5.0, 8.0, 10.0):
        alike = pool_ratios(np.full((6, 2), right), np.full((6, 2), 10.0))
        low, high = wilson_interval(right / 10, 60, 2.570582)
        assert share_interval(alike, 0) == pytest.approx((low, high), abs=1e-6)
        assert np.ptp(gain_interval(alike, 1, 0, 1)) > 0.1


def test_people_who_differ_make_the_interval_wider() -> None:
    counts = np.full((10, 2), 10.0)
    differ = pool_ratios(np.repeat([[2.0, 2.0], [10.0, 10.0]], 5, axis=0), counts)
    alike = pool_ratios(np.full((10, 2), 6.0), counts)
    assert np.ptp(share_interval(differ, 0)) > 2 * np.ptp(share_interval(alike, 0))
    assert gain_interval(differ, 1, 0, 1) == pytest.approx(gain_interval(alike, 1, 0, 1)), "each is as good in both"


def test_a_known_skill_is_found() -> None:
    found = found_in(GuessSimulation(SKILL, annotators=150, items=40, seed=3))
    for one in found.conditions:
        assert one.share is not None
        assert one.share.interval[0] <= SKILL[one.name] <= one.share.interval[1]
        assert np.ptp(one.share.interval) < 0.1
    gains = {one.name: one.gain for one in found.conditions if one.gain}
    assert gains["lime"].interval[0] > 0.15
    assert gains["random"].interval[1] < -0.15
    assert gains["gradient"].interval[0] < 0 < gains["gradient"].interval[1]
    assert found.meanings["helpful"] == (
        "People guess the prediction correctly more often with lime than without an explanation. People guess the "
        "prediction correctly less often with random than without. No significant effect: gradient."
    )


def made_counts(annotators: int, taste: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Right guesses and all of them, by person and condition, of people who differ in skill."""
    chance = np.random.default_rng(seed)
    general = ndtri(list(SKILL.values())) * np.sqrt(1 + taste**2)
    own = chance.standard_normal((annotators, 1)) + chance.standard_normal((annotators, len(SKILL)))
    counts = np.full(own.shape, 5)
    return chance.binomial(counts, ndtr(general + taste * np.sqrt(0.5) * own)).astype(float), counts.astype(float)


@pytest.mark.parametrize(("annotators", "taste"), [(2, 0.5), (5, 0.0), (10, 1.0), (20, 0.5)])
def test_the_intervals_hold_as_often_as_they_say(annotators: int, taste: float) -> None:
    true = list(SKILL.values())
    each, together = [], []
    for seed in range(200):
        found = pool_ratios(*made_counts(annotators, taste, seed))
        shares = [share_interval(found, one) for one in range(len(true))]
        gains = [gain_interval(found, one, 0, 3) for one in range(1, len(true))]
        each += [low <= share <= high for (low, high), share in zip(shares, true, strict=True)]
        together.append(all(low <= share - true[0] <= high for (low, high), share in zip(gains, true[1:], strict=True)))
    assert np.mean(each) > 0.93, "95% less what 800 draws may be off"
    assert np.mean(together) > 0.91, "95% less what 200 draws may be off"


def test_a_convincing_explanation_that_does_not_help_is_called_so() -> None:
    made = GuessSimulation({WITHOUT: 0.7, "lime": 0.7, "random": 0.7}, 40, 30, air={"lime": 1.0})
    found = found_in(made)
    lime = found.conditions[1]
    assert lime.gain is not None
    assert lime.gain.sure_interval[0] > 0.5
    assert "more confident with lime, but not significantly more often right" in found.meanings["plausible"]
    assert found.meanings["helpful"] == "No significant effect: lime and random."


def test_people_who_cannot_tell_are_counted_and_uneven_ones_told() -> None:
    answers = [guess(f"p{n}", WITHOUT, None if n < 4 else 1) for n in range(10)]
    answers += [guess(f"p{n}", "lime", 1, item="2") for n in range(10)]
    said = summarize_guesses(answers, ["lime"]).meanings["cannot_tell"]
    assert "4 answers" in said
    assert "40% with no explanation and 0% with lime" in said


@pytest.mark.parametrize("answers", [[guess("a", WITHOUT, None)], [guess("a", "lime", 1)], [guess("a", WITHOUT, 1)]])
def test_the_first_answer_can_be_shown(answers: Sequence[GuessAnswer]) -> None:
    found = summarize_guesses(answers, ["lime"])
    assert all(found.meanings.values())
    assert [one.gain for one in found.conditions] == [None, None]
    assert "unknown" in found.meanings["helpful"]


def test_what_cannot_be_summed_up_is_told() -> None:
    with pytest.raises(UsageError, match="answers: must include at least one first answer, got none"):
        summarize_guesses([], ["lime"])
    with pytest.raises(UsageError, match="method"):
        summarize_guesses([guess("a", "lrp", 1)], ["lime"])
    with pytest.raises(UsageError, match="accuracy: must be a number between 0 and 1 for each condition"):
        simulate_guesses(GuessSimulation({WITHOUT: 1.0}))
    with pytest.raises(UsageError, match="annotators: must be a whole number of at least 1"):
        simulate_guesses(GuessSimulation(SKILL, annotators=0))
