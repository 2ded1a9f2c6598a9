"""Votes: what one holds, what is refused, what an undo takes back, and what no odd clock changes."""

from __future__ import annotations

import dataclasses
import time

import pytest
import sqlalchemy as sa

from engine.errors import UsageError
from engine.study.access import new_token
from engine.study.annotators import Answer, UnknownIdentifier, confirm, undo
from engine.study.ballots import next_ballot
from engine.study.counted_votes import counted_votes, method_names, to_rankings
from engine.study.database import Event, study_database
from engine.study.design import Design, MethodChoice
from tests.unit.study.polls import METHODS, agreed, answer, ballot_of, open_study, rows_of

pytestmark = pytest.mark.usefixtures("store")


def test_a_vote_names_the_methods_that_stood_at_its_places() -> None:
    study = open_study(practice=0)
    person = agreed(study.token)
    confirm(person.id, answer(ballot_of(person), 3, 1, 1, seconds=12.5))
    (match,), (vote,) = to_rankings(counted_votes(study.id)), rows_of(study)
    assert match.ranks == dict(zip([METHODS[place] for place in vote.order], [3, 1, 1], strict=True))
    assert (match.annotator, match.seconds, match.repeat) == (person.pseudonym, 12.5, 0)


def test_cannot_tell_is_an_answer_and_no_match() -> None:
    study = open_study(practice=0)
    person = agreed(study.token)
    first = ballot_of(person)
    confirm(person.id, Answer(first.token, new_token(), None))
    assert ballot_of(person).token != first.token
    assert to_rankings(counted_votes(study.id)) == []
    assert [(vote.annotator, vote.ranks) for vote in counted_votes(study.id)] == [(person.pseudonym, None)]


def test_an_undo_takes_back_the_last_vote_once() -> None:
    study = open_study(practice=0)
    person = agreed(study.token)
    given = []
    for _ in range(2):
        given.append(answer(ballot_of(person)))
        confirm(person.id, given[-1])
    token = new_token()
    assert undo(person.id, token) == undo(person.id, token) == given[1].ballot
    assert ballot_of(person).token == given[1].ballot
    assert [vote.superseded_by for vote in rows_of(study)] == [None, token]
    confirm(person.id, answer(ballot_of(person)))
    assert len(to_rankings(counted_votes(study.id))) == 2
    with study_database().reading() as session:
        (event,) = session.scalars(sa.select(Event).where(Event.study == study.id, Event.kind == "vote undone"))
    assert event.details == {"annotator": person.pseudonym, "vote": given[1].token}


def test_there_may_be_nothing_to_undo() -> None:
    assert undo(agreed(open_study().token).id, new_token()) is None


def test_an_undone_item_is_counted_as_unanswered() -> None:
    study = open_study(items=2, practice=0, votes_per_item=1, repeats=0)
    one, other = agreed(study.token), agreed(study.token)
    for _ in range(2):
        confirm(one.id, answer(ballot_of(one)))
    assert next_ballot(other.id) is None
    undo(one.id, new_token())
    assert next_ballot(other.id) is not None


def test_a_clock_that_is_set_back_changes_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    study = open_study(items=4, practice=0, repeats=0)
    person = agreed(study.token)
    items = []
    for clock in (1000.0, 2000.0, 500.0, 1500.0):
        monkeypatch.setattr(time, "time", lambda clock=clock: clock)
        ballot = ballot_of(person)
        items.append(ballot.input.text)
        confirm(person.id, answer(ballot))
    matches = to_rankings(counted_votes(study.id))
    assert [match.at for match in matches] == [1000, 2000, 2000, 2000]
    assert [f"Text {match.item}." for match in matches] == items
    confirm(person.id, change := answer(ballot, 1, 1, 1))
    assert [vote.token for vote in rows_of(study) if vote.superseded_by is None][-1] == change.token


@pytest.mark.parametrize("ranks", [(), (1, 2), (1, 2, 3, 4), (0, 1, 2), (1, 2, 4)])
def test_ranks_that_do_not_fit_are_refused(ranks: tuple[int, ...]) -> None:
    study = open_study()
    person = agreed(study.token)
    with pytest.raises(UsageError, match=r"ranks: must be 3 numbers from 1 to 3, one for each of A, B, C"):
        confirm(person.id, dataclasses.replace(answer(ballot_of(person)), ranks=ranks))
    assert rows_of(study) == []


@pytest.mark.parametrize(
    ("said", "kept"), [(-3.0, 0), (float("nan"), 0), (float("inf"), 0), (1e9, 86_400), (10**400, 86_400), (2.5, 2.5)]
)
def test_no_vote_is_lost_for_a_browsers_odd_clock(said: float, kept: float) -> None:
    study = open_study()
    person = agreed(study.token)
    confirm(person.id, answer(ballot_of(person), seconds=said))
    assert [vote.seconds for vote in rows_of(study)] == [kept]


@pytest.mark.parametrize("token", ["", "short", "x" * 201])
def test_a_token_that_others_may_draw_is_refused(token: str) -> None:
    person = agreed(open_study().token)
    with pytest.raises(UsageError, match="token: must be 16 to 200 random letters"):
        confirm(person.id, dataclasses.replace(answer(ballot_of(person)), token=token))


def test_a_study_that_does_not_exist_has_no_matches() -> None:
    with pytest.raises(UnknownIdentifier, match="there is no study 987654"):
        to_rankings(counted_votes(987654))


def test_a_method_that_is_there_twice_is_told_apart_by_a_number() -> None:
    methods = (MethodChoice("lime", {"samples": 1}), MethodChoice("lrp"), MethodChoice("lime", {"samples": 2}))
    assert method_names(Design(methods=methods)) == ("lime 1", "lrp", "lime 3", "random")
