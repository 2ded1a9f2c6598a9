"""The results of a study in the database, and what one participant saw."""

from __future__ import annotations

import threading

import pytest

from engine.errors import ExegesisError, UsageError
from engine.study import results as module
from engine.study import studies
from engine.study.access import new_token
from engine.study.annotators import Answer, Participant, confirm, undo
from engine.study.ballots import next_ballot, replay_ballot
from engine.study.counted_votes import EXCLUSION_EVENT, counted_votes, to_rankings
from engine.study.design import ExclusionRules
from engine.study.results import results, votes_version
from tests.unit.study.polls import METHODS, agreed, answer, open_study, set_state
from tests.unit.study.quick import rate_quickly

pytestmark = pytest.mark.usefixtures("store")


@pytest.fixture(autouse=True)
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The real summary with fewer resamples; the list has an entry for each time that it was made."""
    made: list[int] = []
    rate_quickly(monkeypatch, made.append)
    return made


def voted(token: str, *ranks: int, seconds: float = 9.0) -> Participant:
    """A new participant who answers everything in the same way."""
    person = agreed(token)
    while ballot := next_ballot(person.id):
        confirm(person.id, answer(ballot, *ranks, seconds=seconds))
    return person


def cannot_tell(person: Participant) -> None:
    ballot = next_ballot(person.id)
    assert ballot is not None
    confirm(person.id, Answer(ballot.token, new_token(), None, 9.0))


def test_a_study_without_votes_has_no_ratings() -> None:
    study = open_study()
    found = results(study.id)
    assert (found.answers, found.annotators, found.votes, found.cannot_tell) == (0, 0, (), 0)
    assert found.summary is None
    with pytest.raises(ExegesisError, match="there is no study 99"):
        results(99)


def test_the_summary_is_that_of_the_votes() -> None:
    study = open_study()
    voted(study.token, 1, 2, 3)
    voted(study.token, 2, 1, 3)
    unsure = agreed(study.token)
    cannot_tell(unsure)  # practice
    cannot_tell(unsure)
    found = results(study.id)
    assert found.summary is not None
    assert (found.answers, found.annotators, found.cannot_tell) == (13, 3, 1)
    assert len(to_rankings(counted_votes(study.id))) == 12
    assert found.summary.votes == len(found.summary.course) - 1 == 10, "each ranked one of five items twice"
    assert (found.summary.consistency or (0, 0))[1] == 2
    assert found.summary.placebo == "random"
    assert found.summary.methods == METHODS, "as in the design, whatever the first voter saw"


def test_repeats_alone_are_not_rated() -> None:
    """Whoever could not tell at first may rank at the second look."""
    study = open_study(items=2, practice=0)
    person = agreed(study.token)
    while ballot := next_ballot(person.id):
        again = answer(ballot) if len(results(study.id).votes) == 2 else Answer(ballot.token, new_token(), None, 9.0)
        confirm(person.id, again)
    found = results(study.id)
    assert [(vote.repeat, vote.ranks is None) for vote in found.votes] == [(0, True), (0, True), (1, False)]
    assert found.summary is None


def test_nothing_is_computed_twice(few_resamples: list[int]) -> None:
    study = open_study()
    voted(study.token)
    first = results(study.id)
    assert results(study.id) is first
    closed = studies.close(study.id)
    assert results(study.id).summary is first.summary
    assert results(study.id).study == closed
    assert few_resamples == [6]


def test_each_kind_of_change_is_noticed() -> None:
    study = open_study(practice=0)
    person = agreed(study.token)
    ballot = next_ballot(person.id)
    assert ballot is not None
    seen_so_far = [votes_version(study.id)]
    for step in (
        lambda: confirm(person.id, answer(ballot, 1, 2, 3)),
        lambda: confirm(person.id, answer(ballot, 3, 2, 1)),
        lambda: undo(person.id, new_token()),
    ):
        before = results(study.id)
        step()
        seen_so_far.append(votes_version(study.id))
        assert results(study.id) is not before
    assert len(set(seen_so_far)) == 4
    assert results(study.id).answers == 0


def test_many_who_ask_at_once_wait_for_one_computation(few_resamples: list[int]) -> None:
    study = open_study()
    voted(study.token)
    found: list[object] = []
    asking = [threading.Thread(target=lambda: found.append(results(study.id))) for _ in range(6)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert len(found) == 6
    assert len(set(map(id, found))) == len(few_resamples) == 1


def test_only_so_many_results_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CACHED", 2)
    made = [open_study().id for _ in range(3)]
    first, second, third = map(results, made)
    assert results(made[2]) is third
    assert results(made[1]) is second
    assert results(made[0]) is not first


def test_rules_are_applied_and_logged_once_when_the_study_is_over() -> None:
    study = open_study(exclusion=ExclusionRules(least_seconds=2.0, least_votes=4))
    stays, quick = voted(study.token), voted(study.token, seconds=0.5)
    short = agreed(study.token)
    for _ in range(3):
        ballot = next_ballot(short.id)
        assert ballot is not None
        confirm(short.id, answer(ballot, seconds=9.0))
    found = results(study.id)
    assert {vote.annotator for vote in found.votes} == {stays.pseudonym}
    assert {(out.rule, out.annotator) for out in found.excluded} == {
        ("least_seconds", quick.pseudonym),
        ("least_votes", short.pseudonym),
    }
    assert EXCLUSION_EVENT not in [kind for kind, _, _ in studies.study_log(study.id)], "they may still give more"
    set_state(study, "closed")
    results(study.id)
    results(study.id)
    logged = [details for kind, _, details in studies.study_log(study.id) if kind == EXCLUSION_EVENT]
    assert len(logged) == len(found.excluded) == 7
    assert logged[-1] == {
        "rule": "least_votes",
        "annotator": short.pseudonym,
        "item": None,
        "repeat": None,
        "value": 2.0,
        "limit": 4.0,
        "votes": 2,
    }


def test_what_somebody_saw_is_shown_with_the_names() -> None:
    study = open_study(practice=0)
    person = agreed(study.token)
    ballot = next_ballot(person.id)
    assert ballot is not None
    confirm(person.id, answer(ballot, 2, 1, 3))
    (vote,) = results(study.id).votes
    there = replay_ballot(study.id, person.pseudonym, vote.item)
    assert there.vote == vote
    assert there.methods == vote.order
    assert there.ballot.token == ballot.token
    for shown, was in zip(there.ballot.maps, ballot.maps, strict=True):
        assert shown.tokens == was.tokens
        assert shown.scores.tobytes() == was.scores.tobytes()


@pytest.mark.parametrize(("item", "repeat"), [("99", 0), ("0", 1), ("x", 0), ("-1", 0), ("9" * 30, 0)])
def test_what_nobody_saw(item: str, repeat: int) -> None:
    study = open_study(practice=0)
    person = agreed(study.token)
    next_ballot(person.id)
    with pytest.raises(UsageError, match=rf"ballot: item {item} was not shown to {person.pseudonym}"):
        replay_ballot(study.id, person.pseudonym, item, repeat)


def test_one_study_tells_nothing_of_another() -> None:
    study, other = open_study(practice=0), open_study(practice=0)
    person = voted(study.token)
    with pytest.raises(UsageError, match=f"in study {other.id}"):
        replay_ballot(other.id, person.pseudonym, results(study.id).votes[0].item)
    assert results(other.id).answers == 0
