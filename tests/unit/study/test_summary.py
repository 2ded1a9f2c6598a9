"""What a study found: every part of the summary against counts by hand, its sentences, and the power forecast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t

from engine.errors import UsageError
from engine.study.counted_votes import Ranking
from engine.study.ratings import (
    Rating,
    comparable_intervals,
    count_differences,
    rate_methods,
    standard_errors,
    student_quantile,
)
from engine.study.simulation import RankingSimulation, simulate_rankings
from engine.study.summary import RankingSummary, answer_times, forecast_pairs, forecast_power, summarize_rankings

FEW = {"orders": 10, "resamples": 100}


def few(votes: Sequence[Ranking], placebo: str | None = None) -> RankingSummary:
    return summarize_rankings(votes, placebo, orders=10, resamples=100)


def vote(annotator: str, item: str, a: int, b: int, repeat: int = 0, seconds: int | float = 0.0) -> Ranking:
    return Ranking(annotator, item, {"a": a, "b": b}, repeat, seconds)


@pytest.fixture(scope="module")
def found() -> RankingSummary:
    made = RankingSimulation({"good": 2.0, "poor": 0.0, "random": 0.0}, annotators=12, items=6, seed=5)
    return few(simulate_rankings(made), "random")


def test_everything_is_in_it(found: RankingSummary) -> None:
    assert (found.votes, found.annotators, found.items) == (72, 12, 6)
    assert found.order[0] == found.worth_order[0] == "good"
    assert {rating.method: rating.rank for rating in found.ratings}["good"] == 1
    assert found.no_better_than_placebo == ("poor",)
    assert found.course.shape == (73, 3)
    assert found.wins[0, 1] == pytest.approx(1 - found.wins[1, 0])
    assert 0 < (found.concordance or 0) < 1
    assert found.spread == max(rating.spread for rating in found.ratings)
    assert len(found.by_item) == 6
    assert [group.votes for group in found.by_annotator] == [6] * 12


def test_a_repeat_changes_no_rating(found: RankingSummary) -> None:
    votes = simulate_rankings(
        RankingSimulation({"good": 2.0, "poor": 0.0, "random": 0.0}, annotators=12, items=6, seed=5)
    )
    reverse = {"good": 3, "poor": 2, "random": 1}
    repeats = [replace(one, ranks=reverse, repeat=1, at=one.at + 0.5) for one in votes[::7]]
    again = few([*repeats, *votes], "random")
    assert again.consistency is not None
    for name in vars(found).keys() - {"consistency", "needed", "power"}:
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name), name)
    with pytest.raises(UsageError, match=r"votes: must include first rankings \(repeat 0\), got 11 repeats only"):
        few(repeats)


def test_each_part_has_one_sentence(found: RankingSummary) -> None:
    said = found.meanings
    for text in said.values():
        assert text.endswith(".")
        assert ". " not in text
    assert said["placebo"] == "Not shown to be better than the placebo, random: poor."
    assert said["seconds"] == "Response times are unknown."
    assert said["consistency"].startswith("Self-consistency is unknown")
    assert "differ;" in said["ratings"]


def test_the_sentences_follow_the_numbers(found: RankingSummary) -> None:
    by_chance = replace(found, concordance=0.5, concordance_by_chance=0.5).meanings["concordance"]
    assert by_chance.startswith(
        "People hardly agree on an item: W is 1 if all rankings are equal, and about 0.50 by chance"
    )
    told = replace(found, placebo=None, consistency=(0.9, 1), alpha=-0.2, worths={"poor": 1.0, "good": 0.0}).meanings
    assert told["placebo"].startswith("The study has no placebo")
    assert told["consistency"].startswith("People agree strongly with themselves in one repeated")
    assert told["alpha"].startswith("People agree less than by chance")
    assert "a different order, poor, good:" in told["worths"]


def test_groups_and_times_by_hand() -> None:
    votes = [vote("al", "x", 1, 2, seconds=10), vote("al", "y", 1, 1, seconds=20), vote("bo", "x", 2, 1, seconds=30)]
    found = few([*votes, vote("bo", "y", 2, 1)])
    assert found.seconds is not None
    assert (found.seconds.low, found.seconds.median, found.seconds.high) == (15, 20, 25)
    al, bo = found.by_annotator
    assert (al.name, al.votes, al.mean_rank) == ("al", 2, {"a": 1.25, "b": 1.75})
    assert bo.mean_rank == {"a": 2.0, "b": 1.0}
    assert [group.mean_rank["a"] for group in found.by_item] == [1.5, 1.75]
    assert answer_times([10, 0.0]) == answer_times([10]), "unknown times do not count"
    assert found.meanings["ratings"].startswith("No two methods can be separated yet")


def test_a_placebo_that_nobody_ranked_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"placebo: unknown name 'c'.*Known: a, b"):
        few([vote("al", "x", 1, 2)], "c")


def test_two_methods_have_intervals_of_students_t() -> None:
    """With two methods that move against each other, what compares them is the plain 95% interval."""
    again = np.random.default_rng(0).normal(size=(5000, 1)) * [1.0, -1.0]
    errors = standard_errors(again)
    (low, high), _ = comparable_intervals(np.zeros(2), errors, pieces=20)
    assert high == -low == pytest.approx(t.ppf(0.975, 19) * errors[0, 0])
    assert errors[0, 1] == pytest.approx(2 * errors[0, 0])


def test_intervals_that_part_differ_by_more_than_bonferroni_allows() -> None:
    chance = np.random.default_rng(1)
    for _ in range(50):
        again = chance.normal(size=(100, 4)) @ chance.normal(size=(4, 4))
        errors = standard_errors(again)
        skills = chance.normal(size=4) * 4
        made = comparable_intervals(skills, errors, pieces=12)
        sure = np.abs(skills[:, None] - skills) > t.ppf(1 - 0.05 / 12, 11) * errors
        apart = [[one[0] > other[1] or other[0] > one[1] for other in made] for one in made]
        assert not (np.array(apart) & ~sure).any()
        least = 0.9999 * t.ppf(0.975, 11) * errors.diagonal()
        assert all((high - low) / 2 >= own for own, (low, high) in zip(least, made, strict=True))


@pytest.mark.parametrize("people", [1, 2, 3])
def test_a_few_who_agree_by_luck_prove_nothing(people: int) -> None:
    votes = [vote(str(person), "x", 1, 2) for person in range(people)]
    ratings = rate_methods(votes, **FEW).ratings
    assert ratings[0].skill > ratings[1].skill
    assert count_differences([rating.interval for rating in ratings]) == 0


def test_votes_needed_by_hand() -> None:
    ratings = rate_methods(
        simulate_rankings(RankingSimulation({"a": 0.6, "b": 0.0}, annotators=10, items=4, seed=2)), **FEW
    ).ratings
    [pair] = forecast_pairs(ratings, 10, 40)
    gap = abs(ratings[0].skill - ratings[1].skill)
    reach = sum(high - low for low, high in (rating.interval for rating in ratings)) / 2
    wanted = next(
        n for n in range(2, 9999) if gap > reach * (10 / n) ** 0.5 * student_quantile(n, 1) / student_quantile(10, 1)
    )
    assert (pair.annotators, pair.votes, pair.apart) == (wanted, 4 * wanted, wanted <= 10)
    assert {pair.better, pair.worse} == {"a", "b"}


def test_equal_methods_need_more_votes_than_anybody_has() -> None:
    ratings = rate_methods([vote("al", "x", 1, 1), vote("bo", "y", 1, 2), vote("cy", "y", 2, 1)], **FEW).ratings
    level = [replace(rating, skill=0.0) for rating in ratings]
    [pair] = forecast_pairs(level, 3, 3)
    assert (pair.annotators, pair.votes, pair.apart) == (None, None, False)


def test_of_one_annotator_nothing_is_forecast() -> None:
    alone = few([vote("al", "x", 1, 2), vote("al", "y", 1, 1), vote("al", "z", 1, 2)])
    [pair] = alone.needed
    assert (pair.better, pair.apart, pair.annotators, pair.votes) == ("a", False, None, None)
    assert alone.power == ()
    assert alone.meanings["needed"] == "A forecast needs at least two annotators."


def test_the_chart_of_power_rises(found: RankingSummary) -> None:
    points = found.power
    assert points[0].annotators == 2
    assert points[-1].annotators == 48
    assert all(point.votes == 6 * point.annotators for point in points)
    pairs = [point.pairs for point in points]
    assert pairs == sorted(pairs)
    assert {point.annotators: point.pairs for point in points}[12] == sum(pair.apart for pair in found.needed)


def test_the_forecast_reaches_the_next_pair_however_far() -> None:
    """Gap 0.1 and summed half-widths 1 with 10 people: the half-widths must shrink tenfold, beyond 40 people."""
    ratings = [Rating("a", 0.1, (-0.4, 0.6), 1, 2, 0.0), Rating("b", 0.0, (-0.5, 0.5), 1, 2, 0.0)]
    wanted = next(n for n in range(2, 9999) if (10 / n) ** 0.5 * student_quantile(n, 1) / student_quantile(10, 1) < 0.1)
    assert wanted > 40
    [pair] = forecast_pairs(ratings, 10, 25)
    last, before = forecast_power(ratings, 10, 25)[-1], forecast_power(ratings, 10, 25)[-2]
    assert (last.annotators, last.votes, last.pairs) == (wanted, -(-wanted * 25 // 10), 1)
    assert (pair.annotators, pair.votes) == (last.annotators, last.votes)
    assert before.pairs == 0
