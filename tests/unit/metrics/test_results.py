"""Rows of examples and what they come to: by hand."""

from __future__ import annotations

import numpy as np
import pytest

from engine.errors import ExegesisError, UsageError
from engine.metrics.bootstrap import interval
from engine.metrics.catalog import METRICS, metric
from engine.metrics.results import BY_BATCH, EQUAL, ONE, Difference, Of, Row, Score, Skip, difference, scores

LIME = Of("m", "reviews", "lime", "comprehensiveness")
RANDOM = Of("m", "reviews", "random", "comprehensiveness")


def test_a_score_is_the_mean_of_its_rows_and_counts_what_was_skipped_and_why() -> None:
    rows = [Row(LIME, 0, 0.25), Row(RANDOM, 0, 0.0), Row(LIME, 3, 0.75)]
    skips = [Skip(LIME, 1, "too long"), Skip(RANDOM, 1, "too long"), Skip(LIME, 2, "too long"), Skip(LIME, 4, "flat")]
    lime, random = scores(rows, skips)
    assert (lime.method, lime.metric, lime.value, lime.n, lime.better) == ("lime", "comprehensiveness", 0.5, 2, "high")
    assert lime.skipped == {"too long": 2, "flat": 1}
    assert lime.interval is not None
    assert lime.interval[0] < 0.5 < lime.interval[1]
    assert (random.value, random.interval, random.n, random.skipped) == (0.0, None, 1, {"too long": 1})


def test_what_was_only_skipped_has_no_value_but_is_there() -> None:
    [found] = scores([], [Skip(LIME, 1, "flat")])
    assert (found.value, found.interval, found.n, found.skipped) == (None, None, 0, {"flat": 1})
    assert scores([]) == []


def test_intervals_are_the_bootstraps_and_need_no_order_of_methods() -> None:
    values = np.random.default_rng(0).random(30)
    rows = [Row(LIME, place, float(value)) for place, value in enumerate(values)]
    other = [Row(RANDOM, place, 1.0 - float(value)) for place, value in enumerate(values)]
    assert scores([*other, *rows], seed=4)[1].interval == interval(values, 4)


@pytest.mark.parametrize(("metric", "values", "doubt"), [
    ("comprehensiveness", [0.1, 0.2, 0.4], ""),
    ("gt_overlap", [1.0, 1.0, 1.0], ""),
    ("plausibility_auc", [1.0, 1.0, 1.0], EQUAL),
    ("mean_rank", [1.0], ONE),
    ("seconds", [0.5, 0.5, 0.7], BY_BATCH),
    ("seconds", [0.5], BY_BATCH),
])  # fmt: skip
def test_a_score_says_why_its_interval_tells_nothing(metric: str, values: list[float], doubt: str) -> None:
    of = Of("m", "d", "lime", metric)
    [found] = scores([Row(of, place, value) for place, value in enumerate(values)])
    assert found.doubt == doubt
    assert (found.interval is None) == (doubt in (ONE, BY_BATCH))
    assert scores([], [Skip(of, 1, "flat")])[0].doubt == ""


def test_seconds_have_no_interval_for_a_batch_shares_one_measurement() -> None:
    """16 examples of one batch and 4 of another are two measurements: 20 rows resampled feign what nobody measured."""
    rows = [Row(Of("m", "d", "lime", "seconds"), place, 1.0 if place < 16 else 3.0) for place in range(20)]
    [found] = scores(rows)
    assert (found.value, found.interval, found.n) == (pytest.approx(1.4), None, 20)


def test_percents_and_pairs_of_methods_are_scores_of_their_own() -> None:
    curve = [Row(Of("m", "d", "lime", "without_top", percent=percent), 0, 0.5) for percent in (0, 50, 100)]
    pair = [Row(Of("m", "d", "lime", "rank_spearman", against=other), 0, 0.5) for other in ("random", "gradient")]
    assert [score.percent for score in scores(curve)] == [0, 50, 100]
    assert [(score.against, score.better) for score in scores(pair)] == [("random", "neither"), ("gradient", "neither")]


def test_a_difference_is_that_of_the_examples_that_both_have() -> None:
    hard = np.random.default_rng(3).random(40)
    rows = [Row(LIME, place, float(value)) for place, value in enumerate(hard + 0.1)]
    rows += [Row(RANDOM, place, float(value)) for place, value in enumerate(hard[:30])]
    found = difference(rows, LIME, RANDOM)
    assert (found.value, found.n) == (pytest.approx(0.1), 30)
    assert found.interval == pytest.approx((0.1, 0.1))
    assert difference(rows, LIME, Of("m", "reviews", "shap", "comprehensiveness")) == Difference(None, None, 0)


def test_a_tidy_row() -> None:
    assert Row(LIME, 7, 0.5).as_plain() == {
        "model": "m", "dataset": "reviews", "example": 7, "method": "lime", "metric": "comprehensiveness",
        "value": 0.5, "against": "", "percent": None,
    }  # fmt: skip


def test_what_is_no_number_and_what_is_unknown_is_refused() -> None:
    with pytest.raises(ExegesisError, match="comprehensiveness of lime, example 3: must be a finite number, got nan"):
        Row(LIME, 3, float("nan"))
    with pytest.raises(UsageError, match=r"metric: unknown name 'suficiency'\. Did you mean 'sufficiency'"):
        metric("suficiency")
    with pytest.raises(ValueError, match="exactly where there are examples"):
        Score("sufficiency", "lime", None, None, 2)


def test_every_metric_says_what_it_is() -> None:
    for id, known in METRICS.items():
        assert id == known.id
        assert known.title
        assert known.unit
        assert known.about.endswith(".")
