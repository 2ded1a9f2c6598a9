"""Significance of words: p-values by hand and by enumeration, BH by hand, the false discovery rate by simulation."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence

import numpy as np
import pytest
import scipy.stats

from engine.errors import ExegesisError, UsageError
from engine.predictions import predictions
from engine.request import Example
from engine.significance import texts as significance
from engine.significance.false_discovery import (
    ALTERNATIVES,
    RATES,
    TIE,
    Alternative,
    Control,
    adjusted_p_values,
    check_choices,
    draws_needed,
    randomization_p_values,
    survives,
)
from engine.significance.simulation import (
    IGNORED,
    LINEAR,
    MATTERING,
    PRODUCTS,
    WORDS,
    WRONG,
    simulate,
    simulate_pictures,
    simulated_p_values,
)
from engine.significance.texts import SignificanceQuery, TextSignificance, text_significance
from engine.substitution import Edit, edited, like, load_masked_model, words_of
from tests.unit.cli.conftest import Run, run

__all__ = ["run"]
MODEL = "reviews-minilm"
REVIEW = Example("The acting was wonderful.")

pytestmark = pytest.mark.usefixtures("home")


def result_of(value: float, draws: Sequence[Sequence[float]]) -> TextSignificance:
    words = words_of(Example(" ".join("abcdefghij"[: len(draws)])))
    none = np.zeros(len(draws))
    return TextSignificance(
        "m", "r", "s", 0, "yes", False, value, words, tuple(() for _ in words), none, np.array(draws)
    )


def test_p_values_by_hand() -> None:
    observed, draws = np.array([0.9, 0.5, 0.2]), np.array([[0.1, 0.2, 0.3, 0.8], [0.5, 0.6, 0.1, 0.2], [0.2] * 4])
    assert randomization_p_values(observed, draws).tolist() == [1 / 5, 3 / 5, 5 / 5], "ties count as extreme"
    # Two-sided: 0.5 lies 0.12 from the mean of its five values, 0.38, and all draws at least as far. Of the first word,
    # the mean is 0.46 and 0.9 lies farthest.
    assert randomization_p_values(observed, draws, "two-sided").tolist() == [1 / 5, 5 / 5, 5 / 5]


def test_adjusted_p_values_of_three_words_by_hand() -> None:
    p_values = np.array([0.01, 0.04, 0.03])
    # BH: sorted .01, .03, .04 times 3, 3/2, 1 = .03, .045, .04, then the minimum from the end on.
    np.testing.assert_allclose(adjusted_p_values(p_values), [0.03, 0.04, 0.04])
    # BY multiplies by 1 + 1/2 + 1/3.
    np.testing.assert_allclose(adjusted_p_values(p_values, "by"), np.array([0.03, 0.04, 0.04]) * 11 / 6)
    assert survives(adjusted_p_values(p_values), 0.03).tolist() == [True, False, False]
    assert len(adjusted_p_values(np.array([]))) == 0


@pytest.mark.parametrize("tests", [1, 3, 17, 40])
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("control", ["bh", "by"])
def test_one_word_alone_can_be_significant_with_the_draws_needed_and_not_with_one_less(
    tests: int, rate: float, control: Control
) -> None:
    def alone(draws: int) -> bool:
        p_values = np.array([1 / (draws + 1), *[1.0] * (tests - 1)])
        return bool(survives(adjusted_p_values(p_values, control), rate)[0])

    needed = draws_needed(tests, rate, control)
    assert alone(needed)
    assert not alone(needed - 1)


def test_too_few_draws_are_told_with_how_many_words_must_be_significant_together() -> None:
    few = result_of(0.9, [[0.1] * 19] * 3)
    assert few.shortage(0.2) == "", "3 x 1/20 is at most .2"
    assert few.shortage(0.1) == (
        "With 19 draws a p-value is at least 0.05, so at a rate of 10% none is unless at least 2 words are significant."
    )
    assert survives(few.adjusted(), 0.1).all(), "here all three are"
    one = result_of(0.9, [[0.1] * 19, [0.9] * 19, [0.9] * 19])
    assert not survives(one.adjusted(), 0.1).any()
    assert "no word can be significant" in result_of(0.9, [[0.1] * 4] * 3).shortage(0.05)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_p_values_are_valid_under_every_order_of_exchangeable_values(alternative: Alternative) -> None:
    """An exact oracle: each of the values is the text's own equally often, so p <= a must hold in at most a of them."""
    for values in ([0.1, 0.2, 0.3, 0.9], [0.5, 0.5, 0.5, 0.7], [0.2, 0.2, 0.8, 0.8]):
        orders = np.array(list(itertools.permutations(values)))
        p_values = randomization_p_values(orders[:, 0], orders[:, 1:], alternative)
        for level in (0.25, 0.5, 0.75):
            assert (p_values <= level).mean() <= level + 1e-12
        if len(set(values)) == 4 and alternative == "greater":
            assert sorted(p_values) == sorted([0.25, 0.5, 0.75, 1.0] * 6), "without ties it is uniform"


def test_many_draws_come_near_the_p_value_of_the_whole_vocabulary() -> None:
    """The null distribution can be enumerated: each word that the masked model may put there, with its probability."""
    found = text_significance(SignificanceQuery(MODEL, REVIEW, draws=3_000))
    from engine import runtime

    words = words_of(REVIEW)
    with runtime.turn():
        masked = load_masked_model()
        shares = masked.probabilities(REVIEW, words)
    for at in (0, 3):
        likely = np.flatnonzero(shares[at] > 1e-4)
        texts = [edited(REVIEW, [Edit(words[at], like(words[at].text, masked.words[one]))]) for one in likely]
        index = found.label == "positive"
        values = np.array([one.probabilities[int(index)] for one in predictions(MODEL, texts)])
        exact = shares[at][likely][values >= found.value - TIE].sum()
        spread = (exact * (1 - exact) / 3_000) ** 0.5
        assert found.p_values()[at] == pytest.approx(exact, abs=4 * spread + 2e-3)
        mean = (shares[at][likely] @ values) / shares[at][likely].sum()
        assert found.changes[at] == pytest.approx(found.value - mean, abs=0.03)


def test_values_are_those_of_the_edited_texts_one_by_one() -> None:
    found = text_significance(SignificanceQuery(MODEL, REVIEW, draws=5, words_from="reviews", seed=3))
    known = significance._words_of_dataset("reviews")
    generator = np.random.default_rng(3)
    for word, own in zip(found.words, found.draws, strict=True):
        names = [known[at] for at in generator.integers(len(known), size=5)]
        for name, value in zip(names, own, strict=True):
            text = edited(REVIEW, [Edit(word, like(word.text, name))])
            (prediction,) = predictions(MODEL, [text])
            assert dict(zip(prediction.labels, prediction.probabilities, strict=True))[found.label] == value


def test_the_seed_decides_and_a_second_call_reads_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    query = SignificanceQuery(MODEL, REVIEW, draws=30)
    found, other = text_significance(query), text_significance(SignificanceQuery(MODEL, REVIEW, draws=30, seed=1))
    assert not np.array_equal(found.draws, other.draws)
    monkeypatch.setattr(significance, "predictions", lambda *_: pytest.fail("nothing is left to compute"))
    again = text_significance(query)
    np.testing.assert_array_equal(again.draws, found.draws)
    assert (again.words, again.replacements, again.as_json()) == (found.words, found.replacements, found.as_json())


def test_a_word_that_the_masked_model_repeats_is_not_significant() -> None:
    found = text_significance(SignificanceQuery(MODEL, Example("The acting was not wonderful."), draws=100))
    for at, share in enumerate(found.repeats):
        assert found.p_values()[at] >= share * 100 / 101


def test_pairs_are_tested_in_both_texts_and_one_word_is_enough() -> None:
    pair = text_significance(SignificanceQuery("nli-minilm", Example("A man plays.", "He sings."), draws=9))
    assert [word.segment for word in pair.words] == [0, 0, 0, 1, 1]
    one = text_significance(SignificanceQuery(MODEL, Example("Wonderful!")))
    assert (len(one.words), one.count) == (1, 19)
    np.testing.assert_array_equal(one.adjusted(), one.p_values())


def test_what_cannot_be_tested_is_refused() -> None:
    with pytest.raises(UsageError, match="text: must have at least one word, got none"):
        text_significance(SignificanceQuery(MODEL, Example("...")))
    with pytest.raises(UsageError, match="draws: must be a whole number from 1 to 9,999, got 0"):
        SignificanceQuery(MODEL, REVIEW, draws=0)
    with pytest.raises(ExegesisError, match="masked_model: 'no-such-model' is neither embedded nor a folder"):
        text_significance(SignificanceQuery(MODEL, REVIEW, masked_model="no-such-model"))
    with pytest.raises(UsageError, match="target"):
        text_significance(SignificanceQuery(MODEL, REVIEW, target="no-such-class"))
    with pytest.raises(UsageError, match="rate: must be a number between 0 and 1"):
        check_choices(1.0, "greater", "bh")
    with pytest.raises(UsageError, match="alternative: unknown name 'less'"):
        check_choices(0.1, "less", "bh")
    with pytest.raises(UsageError, match="control: unknown name 'bonferroni'"):
        check_choices(0.1, "greater", "bonferroni")


def test_words_beyond_what_the_model_reads_are_not_tested() -> None:
    long = Example("Good. " + "so " * 520 + "bad")
    words, unread = significance._read_words(SignificanceQuery(MODEL, long))
    assert unread > 0
    assert len(words) + unread == 522
    assert "bad" not in [word.text for word in words]
    none = np.zeros(1)
    found = TextSignificance("m", "r", "s", 0, "yes", False, 0.5, words[:1], ((),), none, np.zeros((1, 9)), unread)
    assert found.unread_note == f"{unread} words beyond what m reads, not tested."


def test_more_text_than_fits_in_memory_is_refused_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(significance, "MOST_CHARACTERS", 100)
    monkeypatch.setattr(significance, "edited", lambda *_: pytest.fail("no text should be made"))
    with pytest.raises(UsageError, match=r"draws: .* different texts of 25 characters .* Lower --draws"):
        text_significance(SignificanceQuery(MODEL, REVIEW, draws=50, words_from="reviews"))


def test_p_values_are_uniform_under_the_null_hypothesis() -> None:
    p_values = np.concatenate(
        [simulated_p_values(LINEAR, np.random.default_rng(seed))[MATTERING:] for seed in range(60)]
    )
    assert scipy.stats.kstest(p_values, "uniform").pvalue > 0.01


def test_the_simulation_keeps_the_rate_unless_the_replacements_are_wrong() -> None:
    """120 texts of each setting; docs/numbers.md has the table of 2,000."""
    rates = simulate(120)
    right = [one for one in rates if one.setting != WRONG]
    assert {one.setting for one in right} == {LINEAR, IGNORED, PRODUCTS}
    assert all(one.controlled for one in right), right
    assert all(one.power and one.power > 0.5 for one in right), "a test that finds nothing would keep any rate"
    # Independent tests: the rate of BH is the rate times the share of words that do not matter.
    for one in rates:
        if one.setting == LINEAR and one.control == "bh":
            assert abs(one.false_discovery_rate - one.rate * (1 - MATTERING / WORDS)) < 4 * one.standard_error
    assert not any(one.controlled for one in rates if one.setting == WRONG and one.control == "bh")


def test_the_simulation_of_pictures_keeps_the_rate_only_for_a_class_chosen_beforehand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("engine.significance.simulation.PATCHES", (9,))
    rates = {one.setting: one for one in simulate_pictures(400)}
    assert rates["9 patches, chosen class"].controlled
    assert rates["9 patches, chosen class"].false_discovery_rate > 0.03, "a test that finds nothing keeps any rate"
    assert not rates["9 patches, predicted class against others"].controlled
    assert not rates["9 patches, chosen class against others"].controlled


def test_the_command_prints_words_and_json(run: Run) -> None:
    text = ("significance", "--text", REVIEW.text, "--draws", "39")
    printed = run(*text)
    assert printed.code == 0
    assert "of 4 words are significant at a false discovery rate of 0.1 (39 draws each" in printed.out
    assert printed.err == ""
    plain = json.loads(run(*text, "--rate", "0.2", "--control", "by", "--json").out)
    found = text_significance(SignificanceQuery(MODEL, REVIEW, draws=39))
    assert plain == json.loads(json.dumps(found.as_json(0.2, "greater", "by")))
    assert "With 39 draws" in run(*text, "--rate", "0.01").err
    assert run("significance").err.startswith("error: significance: needs an input.")
    assert run("significance", "--simulate", "--text", "x").err.startswith("error: --simulate: makes its own texts")
