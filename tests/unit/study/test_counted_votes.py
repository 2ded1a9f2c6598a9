"""Rules that were declared before a study opened leave votes and people out, and say so."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pytest
from scipy.stats import kendalltau

from engine.study.counted_votes import CountedVote, Exclusion, apply_rules, mean_kendalls_tau
from engine.study.design import ExclusionRules

METHODS = ("a", "b", "c", "d")


def vote(
    annotator: str, item: int, ranks: Mapping[str, int] | None, repeat: int = 0, seconds: float = 10.0
) -> CountedVote:
    return CountedVote(annotator, str(item), repeat, METHODS, ranks, None, seconds, 0.0)


def ranked(*numbers: int) -> dict[str, int]:
    return dict(zip(METHODS, numbers, strict=True))


def test_without_rules_everything_stays() -> None:
    votes = [vote("p", 0, None, seconds=0.0), vote("p", 1, ranked(1, 2, 3, 4)), vote("p", 1, ranked(4, 3, 2, 1), 1)]
    assert apply_rules(ExclusionRules(), votes) == (tuple(votes), ())


def test_an_answer_that_was_too_quick_goes_alone() -> None:
    quick, slow = vote("p", 0, ranked(1, 2, 3, 4), 1, 1.9), vote("p", 1, ranked(1, 2, 3, 4), seconds=2.0)
    kept, gone = apply_rules(ExclusionRules(least_seconds=2.0), [quick, slow])
    assert kept == (slow,)
    assert gone == (Exclusion("least_seconds", "p", "0", 1, 1.9, 2.0, 1),)
    assert gone[0].reason == "The answer took 1.9 seconds, less than 2."


def test_people_are_judged_by_what_stays_of_theirs() -> None:
    few = [vote("few", item, ranked(1, 2, 3, 4), seconds=float(item)) for item in range(3)]
    many = [vote("many", item, ranked(1, 2, 3, 4)) for item in range(3)]
    kept, gone = apply_rules(ExclusionRules(least_seconds=1.0, least_votes=3), [*few, *many])
    assert kept == tuple(many)
    assert [(out.rule, out.annotator, out.item, out.value, out.votes) for out in gone] == [
        ("least_seconds", "few", "0", 0, 1),
        ("least_votes", "few", None, 2, 2),
    ]


def test_who_can_hardly_ever_tell() -> None:
    unsure = [vote("unsure", 0, None), vote("unsure", 1, None), vote("unsure", 2, ranked(1, 2, 3, 4))]
    half = [vote("half", 0, None), vote("half", 1, ranked(1, 2, 3, 4))]
    kept, gone = apply_rules(ExclusionRules(most_cannot_tell=0.5), [*unsure, *half])
    assert kept == tuple(half), "the limit itself is allowed"
    assert [out.reason for out in gone] == ["Chose “cannot tell” in 67% of the answers, more than 50%."]


def test_a_guess_is_no_cannot_tell() -> None:
    guess = CountedVote("p", "0", 0, METHODS, None, {"label": 1, "sure": 3}, 5.0, 0.0)
    assert apply_rules(ExclusionRules(most_cannot_tell=0.0), [guess]) == ((guess,), ())


def test_who_ranks_the_same_items_the_other_way_round() -> None:
    steady = [vote("steady", 0, ranked(1, 2, 3, 4)), vote("steady", 0, ranked(1, 3, 2, 4), 1)]
    fickle = [vote("fickle", 0, ranked(1, 2, 3, 4)), vote("fickle", 0, ranked(4, 3, 2, 1), 1)]
    once = [vote("once", 0, ranked(4, 3, 2, 1))]
    kept, gone = apply_rules(ExclusionRules(least_consistency=0.0), [*steady, *fickle, *once])
    assert kept == (*steady, *once), "who repeated nothing is not judged"
    assert [(out.annotator, out.value, out.limit, out.votes) for out in gone] == [("fickle", -1.0, 0.0, 2)]


def test_every_rule_that_speaks_against_a_person_is_told() -> None:
    votes = [vote("p", 0, None), vote("q", 0, ranked(1, 1, 3, 4))]
    _, gone = apply_rules(ExclusionRules(least_votes=2, most_cannot_tell=0.5), votes)
    assert [(out.annotator, out.rule) for out in gone] == [
        ("p", "least_votes"),
        ("p", "most_cannot_tell"),
        ("q", "least_votes"),
    ]


@pytest.mark.parametrize("seed", range(5))
def test_consistency_is_the_mean_of_scipys_tau(seed: int) -> None:
    chance = np.random.default_rng(seed)
    tables = chance.integers(1, 5, (4, 2, 4))
    votes = [vote("p", item, ranked(*tables[item, look].tolist()), look) for item in range(4) for look in (0, 1)]
    wanted = [kendalltau(first, second).statistic for first, second in tables]
    found = mean_kendalls_tau([*votes, vote("p", 9, ranked(1, 2, 3, 4)), vote("p", 8, None), vote("p", 8, None, 1)])
    assert found == pytest.approx(np.nanmean(wanted), abs=1e-12)


def test_a_ranking_that_ties_everything_has_no_order_to_keep() -> None:
    tied, strict = ranked(1, 1, 1, 1), ranked(1, 2, 3, 4)
    for looks in itertools.permutations([tied, strict]):
        assert mean_kendalls_tau([vote("p", 0, ranks, look) for look, ranks in enumerate(looks)]) is None
