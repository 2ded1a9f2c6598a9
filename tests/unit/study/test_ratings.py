"""Ratings of a study: the reported ones, partial order, agreement, wins, and annotators who are made up."""

from __future__ import annotations

import itertools

import choix
import krippendorff
import numpy as np
import pytest
import trueskill
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logsumexp
from scipy.stats import rankdata

from engine.errors import UsageError
from engine.study.counted_votes import WITHOUT, Ranking, competition_ranks, rank_table, ranked_methods, read_ranks
from engine.study.ratings import ERROR_RATE, count_differences, partial_ranks, rate_methods
from engine.study.simulation import (
    GuessSimulation,
    RankingSimulation,
    false_difference_rate,
    measure_coverage,
    simulate_rankings,
)
from engine.study.summary import (
    kendalls_w,
    kendalls_w_by_chance,
    krippendorffs_alpha,
    plackett_luce,
    self_consistency,
    win_shares,
)

STRONG = RankingSimulation({"a": 2.0, "b": 1.0, "c": 0.0}, annotators=20, items=8, seed=3)
FEW = {"orders": 20, "resamples": 100}


def vote(annotator: str, item: str, *ranks: int, repeat: int = 0, at: float = 0.0) -> Ranking:
    return Ranking(annotator, item, dict(zip("abcd", map(int, ranks), strict=False)), repeat, at=at)


def test_known_preferences_are_found() -> None:
    votes = simulate_rankings(STRONG)
    ratings = rate_methods(votes, **FEW).ratings
    assert [rating.rank for rating in ratings] == [1, 2, 3]
    assert sorted(plackett_luce(votes).items(), key=lambda pair: -pair[1])[0][0] == "a"
    assert all(rating.interval[0] < rating.skill < rating.interval[1] for rating in ratings)


def test_the_order_of_votes_hardly_matters_to_the_headline() -> None:
    votes = simulate_rankings(STRONG)
    backwards = [Ranking(v.annotator, v.item, v.ranks, v.repeat, v.seconds, -v.at) for v in votes]
    forth, back = (np.array([r.skill for r in rate_methods(each, **FEW).ratings]) for each in (votes, backwards))
    np.testing.assert_allclose(forth, back, atol=0.02)
    assert max(rating.spread for rating in rate_methods(votes, **FEW).ratings) < 0.05


def test_smats_setting_is_one_pass_of_the_package_in_time_order() -> None:
    votes = simulate_rankings(STRONG)[::-1]
    env = trueskill.TrueSkill(mu=0, sigma=0.5)
    held = {name: env.create_rating() for name in "abc"}
    for one in sorted(votes, key=lambda v: v.at):
        made = env.rate([(held[name],) for name in "abc"], ranks=[one.ranks[name] for name in "abc"])
        held = dict(zip("abc", (rating for (rating,) in made), strict=True))
    for rating in rate_methods(votes, **FEW).smat:
        wanted = held[rating.method]
        assert rating.skill == pytest.approx(wanted.mu, abs=1e-4)
        reach = 1.96 * wanted.sigma
        assert rating.interval == pytest.approx((wanted.mu - reach, wanted.mu + reach), abs=1e-4)


def test_the_course_ends_at_the_last_vote() -> None:
    votes = sorted(simulate_rankings(STRONG), key=lambda v: v.at)[:30]
    skills = rate_methods(votes, **FEW).course
    assert skills.shape == (31, 3)
    assert not skills[0].any()
    alone = rate_methods(votes[:12], **FEW).course
    np.testing.assert_allclose(skills[12], alone[-1], atol=1e-9)


def test_partial_ranks_by_hand() -> None:
    assert partial_ranks([(5, 6), (3, 4), (3.5, 5.5), (0, 1)]) == (1, 2, 1, 4)
    assert partial_ranks([(0, 2), (2, 3)]) == (1, 1), "intervals that touch are not told apart"
    assert count_differences([(5, 6), (3, 4), (3.5, 5.5), (0, 1)]) == 4


@given(st.lists(st.integers(1, 9), min_size=2, max_size=6))
def test_competition_ranks_keep_the_order(ranks: list[int]) -> None:
    made = list(competition_ranks({str(i): rank for i, rank in enumerate(ranks)}).values())
    for (one, new), (other, newer) in itertools.combinations(zip(ranks, made, strict=True), 2):
        assert (one < other) == (new < newer)
        assert (one == other) == (new == newer)
    assert min(made) == 1


def test_rank_strings() -> None:
    assert read_ranks("1,1,3,4", "abcd") == {"a": 1, "b": 1, "c": 3, "d": 4}
    assert read_ranks(" 2, 2,9 ", "abc") == {"a": 1, "b": 1, "c": 3}
    for bad in ("1,2", "1,2,x,3", "0,1,2,3", "", "1,2,3,-4"):
        with pytest.raises(UsageError, match="ranks: must be 4 comma-separated whole numbers"):
            read_ranks(bad, "abcd")


def test_votes_that_rank_other_methods_are_named() -> None:
    with pytest.raises(UsageError, match="that of bo on x ranks a, b"):
        ranked_methods([vote("al", "x", 1, 2, 3), vote("bo", "x", 1, 2)])
    with pytest.raises(UsageError, match="at least two methods"):
        rate_methods([])


def test_kendalls_w_by_hand() -> None:
    agreeing = [vote(name, "x", 1, 2, 3) for name in ("al", "bo", "cy")]
    assert kendalls_w(agreeing) == pytest.approx(1)
    assert kendalls_w([vote("al", "x", 1, 2, 3), vote("bo", "x", 3, 2, 1)]) == pytest.approx(0)
    # Sums of mid-ranks 2.5, 3.5, 6 and their mean 4: S = 6.5; W = 12 S / (4 * 24 - 2 * 6).
    assert kendalls_w([vote("al", "x", 1, 1, 3), vote("bo", "x", 1, 2, 3)][::-1]) == pytest.approx(12 * 6.5 / 84)
    assert kendalls_w([vote("al", "x", 1, 1, 1), vote("bo", "x", 1, 1, 1)]) is None
    assert kendalls_w([vote("al", "x", 1, 2, 3)]) is None


def test_kendalls_w_by_chance_is_what_chance_gives() -> None:
    chance = np.random.default_rng(0)
    votes = [vote(name, str(i), *(chance.permutation(4) + 1)) for i in range(300) for name in "xyz"]
    assert kendalls_w_by_chance(votes) == pytest.approx(1 / 3)
    assert kendalls_w(votes) == pytest.approx(1 / 3, abs=0.03)
    assert kendalls_w_by_chance(votes[:1]) is None


def test_alpha_is_one_when_all_agree_and_about_zero_by_chance() -> None:
    items = [str(i) for i in range(40)]
    alike = [vote(name, item, *np.random.default_rng(int(item)).permutation(4) + 1) for item in items for name in "xyz"]
    assert krippendorffs_alpha(alike) == pytest.approx(1)
    chance = np.random.default_rng(0)
    mixed = [vote(name, item, *(chance.permutation(4) + 1)) for item in items for name in "xyz"]
    assert abs(krippendorffs_alpha(mixed) or 1) < 0.15
    assert krippendorffs_alpha([vote("al", "x", 1, 2, 3)]) is None
    assert krippendorffs_alpha([vote("al", "x", 1, 1, 1), vote("bo", "x", 1, 1, 1)]) is None


def test_alpha_by_hand_and_by_the_package_where_people_tie() -> None:
    # Mid-ranks 1, 2, 3 and 2, 2, 2: values 1, 2, 3 occur 1, 4, 1 times, so squared differences of neighbors are 2.5^2
    # and of the ends 5^2. Observed 4 * 6.25 / 6, expected (2 * 8 * 6.25 + 2 * 25) / 30.
    assert krippendorffs_alpha([vote("al", "x", 1, 2, 3), vote("bo", "x", 1, 1, 1)]) == pytest.approx(1 - 25 / 6 / 5)
    votes = [vote("al", "x", 1, 1, 3), vote("bo", "x", 2, 1, 2), vote("al", "y", 1, 1, 1), vote("cy", "y", 3, 1, 1)]
    gap = np.nan
    mid_ranks = [[1.5, 1.5, 3, 2, 2, 2], [2.5, 1, 2.5, gap, gap, gap], [gap, gap, gap, 3, 1.5, 1.5]]
    wanted = krippendorff.alpha(reliability_data=np.array(mid_ranks), level_of_measurement="ordinal")
    assert krippendorffs_alpha(votes) == pytest.approx(wanted)


@given(st.integers(2, 5), st.integers(1, 6), st.integers(2, 4), st.integers(0, 2**32 - 1))
def test_alpha_is_that_of_the_package(people: int, items: int, methods: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    seen = [(person, item) for person in range(people) for item in range(items) if chance.random() < 0.8]
    votes = [vote(str(person), str(item), *chance.integers(1, methods + 1, methods)) for person, item in seen]
    table = np.full((people, items * methods), np.nan)
    for one, (person, item) in zip(votes, seen, strict=True):
        table[person, item * methods : (item + 1) * methods] = rankdata(list(one.ranks.values()))
    shared = table[:, (~np.isnan(table)).sum(axis=0) > 1]
    found = krippendorffs_alpha(votes)
    if len(np.unique(shared[~np.isnan(shared)])) < 2:
        assert found is None
    else:
        wanted = krippendorff.alpha(reliability_data=table, level_of_measurement="ordinal")
        assert found == pytest.approx(wanted, abs=1e-12)


def test_simulated_studies_are_counted_as_they_are_made() -> None:
    heard: list[tuple[object, ...]] = []
    made = RankingSimulation({"a": 0.0, "b": 0.0}, annotators=2, items=2)
    false_difference_rate(made, 2, orders=1, resamples=20, report=lambda *said: heard.append(said))
    guesses = GuessSimulation({WITHOUT: 0.6, "lime": 0.6}, annotators=4, items=4)
    measure_coverage(guesses, 2, lambda *said: heard.append(said))
    assert heard == 2 * [(0, 2, "simulated studies"), (1, 2, "simulated studies")]


def test_one_method_is_no_comparison() -> None:
    with pytest.raises(UsageError, match="strength: must be a number for each of at least two methods"):
        simulate_rankings(RankingSimulation({"a": 1.0}))


def test_people_who_tie_everything_agree_on_nothing() -> None:
    chance = np.random.default_rng(0)
    for ties in (lambda person, item: person < 4, lambda person, item: item % 2):
        votes = [
            vote(str(person), str(item), *([1] * 4 if ties(person, item) else chance.permutation(4) + 1))
            for person, item in itertools.product(range(8), range(40))
        ]
        assert abs(krippendorffs_alpha(votes) or 1) < 0.05


def test_self_consistency_is_over_repeats_alone() -> None:
    votes = [vote("al", "x", 1, 2, 3), vote("al", "x", 1, 2, 3, repeat=1), vote("bo", "x", 3, 2, 1)]
    assert self_consistency(votes) == (pytest.approx(1), 1)
    reverse = [vote("bo", "y", 1, 2, 3), vote("bo", "y", 3, 2, 1, repeat=1)]
    assert self_consistency([*votes, *reverse]) == (pytest.approx(0), 2)
    assert self_consistency(votes[:1]) is None


def test_wins_by_hand() -> None:
    shares = win_shares([vote("al", "x", 1, 2, 2), vote("bo", "x", 2, 1, 3)])
    np.testing.assert_allclose(shares, [[0.5, 0.5, 1], [0.5, 0.5, 0.75], [0, 0.25, 0.5]])


@pytest.mark.parametrize(("methods", "annotators", "step"), [("AB", 5, 1.0), ("ABCD", 12, 0.3), ("ABC", 4, 9.0)])
def test_equal_orders_are_counted_as_choix_reads_them_one_by_one(methods: str, annotators: int, step: float) -> None:
    strength = {name: step * place for place, name in enumerate(methods)}
    votes, rng = simulate_rankings(RankingSimulation(strength, annotators, items=6)), np.random.default_rng(3)
    orders = [
        tuple(np.lexsort((rng.random(len(ranks)), ranks)).tolist()) for ranks in rank_table(votes) for _ in range(10)
    ]
    wanted = choix.ilsr_rankings(len(methods), orders, alpha=1e-3)
    np.testing.assert_allclose(list(plackett_luce(votes, 3).values()), wanted - wanted.mean(), atol=1e-9)


def test_plackett_luce_is_where_the_likelihood_is_greatest() -> None:
    orders = [*["abcd"] * 4, "bacd", "bdac", "cabd", "dcba", "acdb", "dabc"]
    votes = [vote("al", str(i), *(1 + order.index(name) for name in "abcd")) for i, order in enumerate(orders)]

    def surprise(worths: np.ndarray) -> float:
        """Minus the log of the product, place by place, of who comes next among those who are left."""
        of = dict(zip("abcd", worths - worths.mean(), strict=True))
        left = [order[place:] for order in orders for place in range(4)]
        return float(sum(logsumexp([of[name] for name in names]) - of[names[0]] for names in left))

    wanted = minimize(surprise, np.zeros(4), tol=1e-10).x
    np.testing.assert_allclose(list(plackett_luce(votes).values()), wanted - wanted.mean(), atol=0.01)
    two = [vote("al", str(i), *(ranks)) for i, ranks in enumerate([(1, 2)] * 3 + [(2, 1)])]
    assert plackett_luce(two)["a"] - plackett_luce(two)["b"] == pytest.approx(np.log(3), abs=0.01)
    ties = plackett_luce([vote("al", "x", 1, 1), *two[2:]])
    assert ties["a"] == pytest.approx(0, abs=0.35), "a tie is each order as often, drawn by chance"


def test_votes_of_one_person_are_one_piece_of_evidence() -> None:
    """Ten people who disagree tell methods apart less than one person's taste repeated would have it."""
    one_sided = [vote("al", str(i), 1, 2, at=float(i)) for i in range(30)]
    others = [vote(name, "x", *(order), at=40.0) for name, order in (("bo", (2, 1)), ("cy", (2, 1)), ("di", (1, 2)))]
    a, b = rate_methods([*one_sided, *others], **FEW).ratings
    assert a.skill > b.skill
    assert (a.rank, b.rank) == (1, 1), "the votes of one annotator alone do not make a difference certain"


@pytest.mark.parametrize("studies", [20, pytest.param(200, marks=pytest.mark.slow(reason="rates 200 studies"))])
def test_equal_methods_are_seldom_told_apart(studies: int) -> None:
    """Plain 95% intervals tell some apart in 6% of these studies."""
    equal = RankingSimulation(dict.fromkeys("abcd", 0.0), annotators=10, items=2, taste=1.0)
    assert false_difference_rate(equal, studies, orders=2, resamples=60) <= ERROR_RATE
