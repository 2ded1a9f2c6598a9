"""Rows of examples, their means and intervals: by hand, against scipy, by simulated coverage, and at their limits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from engine.errors import ExegesisError, UsageError
from engine.metrics.catalog import METRICS, metric
from engine.metrics.results import (
    BY_BATCH,
    EQUAL,
    ONE,
    MeanDifference,
    MetricKey,
    MetricRow,
    MetricScore,
    MetricSkip,
    interval,
    mean_difference,
    mean_scores,
)

LIME = MetricKey("m", "reviews", "lime", "comprehensiveness")
RANDOM = MetricKey("m", "reviews", "random", "comprehensiveness")


def test_a_score_is_the_mean_of_its_rows_and_counts_what_was_skipped_and_why() -> None:
    rows = [MetricRow(LIME, 0, 0.25), MetricRow(RANDOM, 0, 0.0), MetricRow(LIME, 3, 0.75)]
    skips = [
        MetricSkip(LIME, 1, "too long"),
        MetricSkip(RANDOM, 1, "too long"),
        MetricSkip(LIME, 2, "too long"),
        MetricSkip(LIME, 4, "flat"),
    ]
    lime, random = mean_scores(rows, skips)
    assert (lime.method, lime.metric, lime.value, lime.n, lime.better) == ("lime", "comprehensiveness", 0.5, 2, "high")
    assert lime.skipped == {"too long": 2, "flat": 1}
    assert lime.interval is not None
    assert lime.interval[0] < 0.5 < lime.interval[1]
    assert (random.value, random.interval, random.n, random.skipped) == (0.0, None, 1, {"too long": 1})


def test_what_was_only_skipped_has_no_value_but_is_there() -> None:
    [found] = mean_scores([], [MetricSkip(LIME, 1, "flat")])
    assert (found.value, found.interval, found.n, found.skipped) == (None, None, 0, {"flat": 1})
    assert mean_scores([]) == []


def test_intervals_are_the_bootstraps_and_need_no_order_of_methods() -> None:
    values = np.random.default_rng(0).random(30)
    rows = [MetricRow(LIME, place, float(value)) for place, value in enumerate(values)]
    other = [MetricRow(RANDOM, place, 1.0 - float(value)) for place, value in enumerate(values)]
    assert mean_scores([*other, *rows], seed=4)[1].interval == interval(values, 4)


@pytest.mark.parametrize(("metric", "values", "doubt"), [
    ("comprehensiveness", [0.1, 0.2, 0.4], ""),
    ("gt_overlap", [1.0, 1.0, 1.0], ""),
    ("plausibility_auc", [1.0, 1.0, 1.0], EQUAL),
    ("mean_rank", [1.0], ONE),
    ("seconds", [0.5, 0.5, 0.7], BY_BATCH),
    ("seconds", [0.5], BY_BATCH),
])  # fmt: skip
def test_a_score_says_why_its_interval_tells_nothing(metric: str, values: list[float], doubt: str) -> None:
    of = MetricKey("m", "d", "lime", metric)
    [found] = mean_scores([MetricRow(of, place, value) for place, value in enumerate(values)])
    assert found.doubt == doubt
    assert (found.interval is None) == (doubt in (ONE, BY_BATCH))
    assert mean_scores([], [MetricSkip(of, 1, "flat")])[0].doubt == ""


def test_seconds_have_no_interval_for_a_batch_shares_one_measurement() -> None:
    """16 examples of one batch and 4 of another are two measurements: 20 rows resampled feign what nobody measured."""
    rows = [MetricRow(MetricKey("m", "d", "lime", "seconds"), place, 1.0 if place < 16 else 3.0) for place in range(20)]
    [found] = mean_scores(rows)
    assert (found.value, found.interval, found.n) == (pytest.approx(1.4), None, 20)


def test_percents_and_pairs_of_methods_are_scores_of_their_own() -> None:
    curve = [MetricRow(MetricKey("m", "d", "lime", "without_top", percent=percent), 0, 0.5) for percent in (0, 50, 100)]
    pair = [
        MetricRow(MetricKey("m", "d", "lime", "rank_spearman", against=other), 0, 0.5)
        for other in ("random", "gradient")
    ]
    assert [score.percent for score in mean_scores(curve)] == [0, 50, 100]
    assert [(score.against, score.better) for score in mean_scores(pair)] == [
        ("random", "neither"),
        ("gradient", "neither"),
    ]


def test_a_difference_is_that_of_the_examples_that_both_have() -> None:
    hard = np.random.default_rng(3).random(40)
    rows = [MetricRow(LIME, place, float(value)) for place, value in enumerate(hard + 0.1)]
    rows += [MetricRow(RANDOM, place, float(value)) for place, value in enumerate(hard[:30])]
    found = mean_difference(rows, LIME, RANDOM)
    assert (found.value, found.n) == (pytest.approx(0.1), 30)
    assert found.interval == pytest.approx((0.1, 0.1))
    assert mean_difference(rows, LIME, MetricKey("m", "reviews", "shap", "comprehensiveness")) == MeanDifference(
        None, None, 0
    )


def test_a_tidy_row() -> None:
    assert MetricRow(LIME, 7, 0.5).as_plain() == {
        "model": "m", "dataset": "reviews", "example": 7, "method": "lime", "metric": "comprehensiveness",
        "value": 0.5, "against": "", "percent": None,
    }  # fmt: skip


def test_what_is_no_number_and_what_is_unknown_is_refused() -> None:
    with pytest.raises(ExegesisError, match="comprehensiveness of lime, example 3: must be a finite number, got nan"):
        MetricRow(LIME, 3, float("nan"))
    with pytest.raises(UsageError, match=r"metric: unknown name 'suficiency'\. Did you mean 'sufficiency'"):
        metric("suficiency")
    with pytest.raises(ValueError, match="exactly where there are examples"):
        MetricScore("sufficiency", "lime", None, None, 2)


def test_every_metric_says_what_it_is() -> None:
    for id, known in METRICS.items():
        assert id == known.id
        assert known.title
        assert known.unit
        assert known.about.endswith(".")


Draw = Callable[[np.random.Generator, int], np.ndarray]

NORMAL: Draw = lambda rng, n: rng.normal(0.3, 1.0, n)  # noqa: E731
SKEWED: Draw = lambda rng, n: rng.exponential(1.0, n)  # noqa: E731
FALLS: Draw = lambda rng, n: rng.beta(0.4, 1.2, n)  # noqa: E731
SHARES: Draw = lambda rng, n: (rng.random(n) < 0.3).astype(float)  # noqa: E731


@pytest.mark.parametrize(("draw", "truth", "n", "least"), [
    (NORMAL, 0.3, 10, 0.93),
    (NORMAL, 0.3, 50, 0.93),
    (SKEWED, 1.0, 20, 0.90),
    (SKEWED, 1.0, 100, 0.93),
    (FALLS, 0.25, 20, 0.91),
    (FALLS, 0.25, 500, 0.93),
    (SHARES, 0.3, 50, 0.92),
])  # fmt: skip
def test_it_covers_the_true_mean_in_about_95_of_100_samples(draw: Draw, truth: float, n: int, least: float) -> None:
    """Over 800 samples, of which the error is under 0.008 (one standard deviation at 95%)."""
    rng = np.random.default_rng(11)
    found = [interval(draw(rng, n)) for _ in range(800)]
    covered = np.mean([low <= truth <= high for low, high in filter(None, found)])
    assert least <= covered <= 0.985


def test_of_many_examples_it_is_scipys() -> None:
    values = np.random.default_rng(2).exponential(1.0, 400)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=9999, method="BCa", rng=np.random.default_rng(0))
    assert interval(values) == pytest.approx(tuple(theirs.confidence_interval), abs=0.012)


def test_a_skewed_mean_has_more_room_above() -> None:
    values = np.random.default_rng(5).exponential(1.0, 40)
    low, high = interval(values) or (0.0, 0.0)
    assert high - values.mean() > 1.1 * (values.mean() - low) > 0


@pytest.mark.parametrize("n", [2, 3, 4])
def test_an_interval_does_not_depend_on_how_sums_are_rounded(n: int) -> None:
    """Of few values many resamples hold each once: their mean is that of the values, whatever its last digit."""
    for values in np.random.default_rng(n).uniform(size=(200, n)):
        low, high = interval(3.7 * values) or (0.0, 0.0)
        assert (low / 3.7, high / 3.7) == pytest.approx(interval(values), rel=1e-9)


def test_the_same_seed_gives_the_same_and_another_nearly_the_same() -> None:
    values = np.random.default_rng(1).normal(size=60)
    assert interval(values, 3) == interval(values, 3)
    assert interval(values, 3) != interval(values, 4)
    assert interval(values, 3) == pytest.approx(interval(values, 4), abs=0.05)


def test_it_moves_and_grows_with_the_values() -> None:
    values = np.random.default_rng(1).normal(size=30)
    low, high = interval(values) or (0.0, 0.0)
    assert interval(2 * values + 1) == pytest.approx((2 * low + 1, 2 * high + 1))


@pytest.mark.parametrize("n", [5, 12, 500])
def test_a_share_of_examples_has_the_exact_interval_however_many_count(n: int) -> None:
    for hits in (0, 1, n // 2, n - 1, n):
        theirs = stats.binomtest(hits, n).proportion_ci(method="exact")
        values = np.repeat([1.0, 0.0], [hits, n - hits])
        assert interval(values, share=True) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_one_of_twelve() -> None:
    """Clopper and Pearson's by hand: of 12 at 0.0021 one or more come in 2.5%, at 0.3848 one or none."""
    low, high = interval(np.repeat([1.0, 0.0], [1, 11]), share=True) or (0.0, 0.0)
    assert 1 - (1 - low) ** 12 == pytest.approx(0.025)
    assert (1 - high) ** 12 + 12 * high * (1 - high) ** 11 == pytest.approx(0.025)
    assert (round(low, 4), round(high, 4)) == (0.0021, 0.3848)


def test_values_that_only_look_like_counts_are_resampled() -> None:
    """A perfect score is no share: its interval has no width, and never more than that of a worse score."""
    assert interval(np.ones(12)) == (1.0, 1.0)
    assert interval(np.full(12, 0.5), share=True) == (0.5, 0.5)
    assert interval(np.array([0.0, 0.5, 1.0, 1.0]), share=True) == interval(np.array([0.0, 0.5, 1.0, 1.0]))


def test_it_stays_within_the_values() -> None:
    low, high = interval(np.array([1.0] * 9 + [0.0])) or (-1.0, 2.0)
    assert 0 <= low < 0.9 < high <= 1


@given(st.lists(st.sampled_from([0.0, 0.0, 0.0, 0.1, 1.0, -40.0]), min_size=2, max_size=30))
@settings(deadline=None)
def test_it_is_in_order_and_among_the_values_however_they_lie(values: list[float]) -> None:
    low, high = interval(np.array(values)) or (1.0, 0.0)
    assert min(values) <= low <= high <= max(values)


def test_few_or_equal_values() -> None:
    assert interval(np.array([])) is None
    assert interval(np.array([0.3])) is None
    assert interval(np.full(9, 0.3)) == (0.3, 0.3)
    low, high = interval(np.array([0.0, 1.0])) or (1.0, 0.0)
    assert 0 <= low < 0.5 < high <= 1
