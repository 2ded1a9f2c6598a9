"""What the page of results says: the answer that the intervals allow, methods by their titles, rules in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from components.results.descriptions import (
    describe_preference,
    describe_ranking,
    describe_rankings,
    describe_rules,
    method_titles,
    rank_span,
    titled_summary,
)
from engine.format import join_names
from engine.study.counted_votes import CountedVote, Ranking
from engine.study.design import Design, ExclusionRules, MethodChoice
from engine.study.ratings import Interval, Rating, last_ranks, partial_ranks
from engine.study.summary import RankingSummary, summarize_rankings

NAMES = ("lime", "gradient", "random")
BY, BASIS = "by people like these", "2 votes by 2 people"


@pytest.fixture(scope="module")
def found() -> RankingSummary:
    votes = [
        Ranking("p", "1", {"random": 3, "lime": 1, "gradient": 2}),
        Ranking("q", "1", {"random": 2, "lime": 1, "gradient": 2}),
    ]
    return summarize_rankings(votes, "random", orders=5, resamples=50)


def of(found: RankingSummary, *intervals: Interval) -> RankingSummary:
    """The same with other intervals, of the methods of `NAMES`."""
    first, last = partial_ranks(intervals), last_ranks(intervals)
    rows = zip(NAMES, intervals, first, last, strict=True)
    return replace(
        found, ratings=tuple(Rating(name, sum(ends) / 2, ends, rank, end, 0.0) for name, ends, rank, end in rows)
    )


@pytest.mark.parametrize(
    ("intervals", "said"),
    [
        (((4, 5), (2, 3), (0, 1)), f"lime is rated above gradient and random {BY} (2 votes by 2 people)."),
        (((0, 1), (0, 1), (4, 5)), f"random is rated above lime and gradient {BY} (2 votes by 2 people)."),
        (((0, 5), (2, 3), (0, 4)), f"{BASIS} show no difference between the methods."),
        (((3, 5), (3, 5), (3, 5)), f"{BASIS} show no difference between the methods."),
        (((2, 3), (0, 2), (1, 1.5)), f"lime is rated above random {BY}; {BASIS} do not separate lime and gradient."),
        (
            ((4, 5), (4, 6), (0, 1)),
            f"gradient and lime are rated above random {BY}; {BASIS} do not separate gradient and lime.",
        ),
        (((4, 5), (0, 1), (0.5, 4.2)), f"lime is rated above gradient {BY}; {BASIS} do not separate lime and random."),
        (
            ((4, 9), (3, 6), (3.5, 3.8)),
            f"lime is rated above random {BY}; {BASIS} do not separate lime and gradient.",
        ),
        (
            ((4.5, 9), (4, 5), (0, 4.2)),
            f"lime is rated above random {BY}; {BASIS} do not separate lime and gradient.",
        ),
    ],
)  # fmt: skip
def test_the_answer_claims_what_the_intervals_allow(
    found: RankingSummary, intervals: Sequence[Interval], said: str
) -> None:
    assert describe_preference(of(found, *intervals)) == said


def test_the_answer_says_on_how_many_votes_it_rests(found: RankingSummary) -> None:
    apart = of(found, (4, 5), (4, 6), (0, 1))
    based = "Based on 2 rankings by 2 annotators on 1 item; they separate"
    assert describe_rankings(apart) == f"{based} 2 of 3 pairs of methods."
    assert describe_rankings(of(found, (3, 5), (3, 5), (3, 5))) == f"{based} 0 of 3 pairs of methods."


def test_one_person_stands_for_nobody_else(found: RankingSummary) -> None:
    alone = replace(of(found, (4, 5), (2, 3), (0, 1)), annotators=1, votes=9)
    said = "lime is rated above gradient and random by this one person (9 votes by 1 person)."
    assert describe_preference(alone) == said


def test_winners_over_different_methods_have_clauses_of_their_own(found: RankingSummary) -> None:
    """The wide interval of d overlaps with all but c, that of a with d alone."""
    ends = {"a": (4, 5), "b": (1, 2), "c": (-1, 0), "d": (0.5, 4.5)}
    first, last = partial_ranks(list(ends.values())), last_ranks(list(ends.values()))
    rows = zip(ends.items(), first, last, strict=True)
    ratings = tuple(Rating(name, sum(own) / 2, own, rank, end, 0.0) for (name, own), rank, end in rows)
    assert describe_preference(replace(found, ratings=ratings)) == (
        f"a is rated above b and c {BY}; d is rated above c {BY}; {BASIS} do not separate a and d."
    )


def test_ranks_are_places_or_spans_of_them() -> None:
    assert rank_span(Rating("a", 0.0, (0, 1), 2, 2, 0.0)) == "2"
    assert rank_span(Rating("a", 0.0, (0, 1), 3, 4, 0.0)) == "3–4"
    assert [join_names(names) for names in (["a"], ["a", "b"], ["a", "b", "c"])] == ["a", "a and b", "a, b and c"]


def test_results_go_by_titles_in_the_order_of_the_design(found: RankingSummary) -> None:
    design = Design(methods=(MethodChoice("gradient"), MethodChoice("lime")))
    titles = method_titles(design)
    assert titles == {"gradient": "Gradient", "lime": "LIME", "random": "Random"}
    shown = titled_summary(found, titles)
    assert shown.methods == ("Gradient", "LIME", "Random")
    assert shown.placebo == "Random"
    assert [rating.method for rating in shown.ratings] == list(shown.methods)
    assert shown.order == tuple(titles[name] for name in found.order)
    for row, column in np.ndindex(3, 3):
        names = [list(titles)[place] for place in (row, column)]
        assert shown.wins[row, column] == found.wins[found.methods.index(names[0]), found.methods.index(names[1])]
    np.testing.assert_array_equal(shown.course[:, 1], found.course[:, found.methods.index("lime")])
    assert shown.worths == {titles[name]: worth for name, worth in found.worths.items()}
    assert shown.by_item[0].mean_rank == {titles[name]: rank for name, rank in found.by_item[0].mean_rank.items()}
    assert "Random" in shown.meanings["placebo"]


def test_the_same_method_twice_has_numbers_and_an_unknown_one_its_id() -> None:
    twice = (MethodChoice("lime", {"n_samples": 10}), MethodChoice("lime", {"n_samples": 20}), MethodChoice("of_1999"))
    titles = method_titles(Design(methods=twice, placebo=False))
    assert titles == {"lime 1": "LIME 1", "lime 2": "LIME 2", "of_1999": "of_1999"}


def test_a_vote_is_told_the_best_first_with_its_ties() -> None:
    titles = {"lime": "LIME", "gradient": "Gradient", "random": "Random"}
    vote = CountedVote("p", "1", 0, NAMES, {"lime": 2, "gradient": 2, "random": 1}, None, 1.0, 0.0)
    assert describe_ranking(vote, titles) == "Random › Gradient = LIME"
    assert describe_ranking(replace(vote, ranks=None), titles) == "cannot tell"


def test_rules_are_told_in_words() -> None:
    assert describe_rules(ExclusionRules()).startswith("The study has no exclusion rules")
    rules = ExclusionRules(least_seconds=2.0, least_votes=5, most_cannot_tell=0.25, least_consistency=-0.5)
    assert describe_rules(rules) == (
        "Excluded by rules set before the study opened: answers faster than 2 seconds; annotators with fewer than 5 "
        "answers; annotators with more than 25% “cannot tell”; annotators with a self-consistency (Kendall's tau) "
        "below -0.50."
    )
