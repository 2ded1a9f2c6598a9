"""How far studies are, counted by the database: the same as the votes that the results read."""

from __future__ import annotations

import pytest

from engine.study.access import new_token
from engine.study.annotators import Answer, confirm, join, undo
from engine.study.ballots import next_ballot
from engine.study.counted_votes import counted_votes
from engine.study.studies import AnswerCounts, count_answers
from tests.unit.study.polls import agreed, answer, open_study

pytestmark = pytest.mark.usefixtures("store")


def test_a_study_that_nobody_joined_is_left_out() -> None:
    open_study()
    assert count_answers() == {}


def test_practice_what_was_taken_back_and_who_did_not_agree_do_not_count() -> None:
    study, other = open_study(), open_study()
    join(study.token)
    agreed(study.token)
    agreed(other.token)
    person = agreed(study.token)
    while (ballot := next_ballot(person.id)) is not None:
        confirm(person.id, answer(ballot))
    undo(person.id, new_token())
    ballot = next_ballot(person.id)
    assert ballot is not None
    confirm(person.id, Answer(ballot.token, new_token(), None))
    found = counted_votes(study.id)
    assert len(found) == 6
    assert count_answers() == {study.id: AnswerCounts(2, len(found), 1, voters=1), other.id: AnswerCounts(1)}
