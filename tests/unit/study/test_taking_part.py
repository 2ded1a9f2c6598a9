"""Participants from their joining to the end of the study: they agree, go on elsewhere, and come too late."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine.study import annotators, studies
from engine.study.access import AttemptLimit, TooManyAttempts, new_token
from engine.study.annotators import StudyNotOpen, UnknownIdentifier, confirm, consent, join, resume, undo
from engine.study.ballots import next_ballot
from engine.study.counted_votes import counted_votes, to_rankings
from engine.study.database import Annotator, study_database
from engine.study.design import Design, check_design
from tests.unit.study.polls import agreed, answer, ballot_of, open_study, rows_of, set_state
from tests.unit.study.samples import image_design, text_design


@pytest.fixture(autouse=True)
def no_tries(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same tests on each kind of database; nobody has typed a wrong code yet."""
    monkeypatch.setattr(annotators, "CODE_ATTEMPTS", AttemptLimit())


def test_a_participant_joins_agrees_and_goes_on_elsewhere() -> None:
    study = open_study()
    person, code = join(study.token)
    assert not person.consented
    with pytest.raises(UnknownIdentifier, match=r"has not consented"):
        next_ballot(person.id)
    assert consent(person.id) == dataclasses.replace(person, consented=True)
    seen = ballot_of(person)
    there = resume(study.token, code.upper().replace("-", " "), "a phone")
    assert there == consent(person.id)
    assert ballot_of(there).token == seen.token
    with study_database().reading() as session:
        kept = session.get_one(Annotator, person.id)
    assert code not in repr(vars(kept))
    assert code.replace("-", "") not in repr(vars(kept))


def test_consent_keeps_its_first_time() -> None:
    person = agreed(open_study().token)
    with study_database().reading() as session:
        first = session.get_one(Annotator, person.id).consented
    consent(person.id)
    with study_database().reading() as session:
        assert session.get_one(Annotator, person.id).consented == first


def test_a_wrong_code_or_link_is_refused_and_after_five_one_waits() -> None:
    study, other = open_study(), open_study()
    _, code = join(other.token)
    with pytest.raises(UnknownIdentifier, match="Link: does not belong to any study"):
        join("guessed")
    for _ in range(5):
        with pytest.raises(UnknownIdentifier, match="Code: does not belong to anybody in this study"):
            resume(study.token, code, "one address")
    with pytest.raises(TooManyAttempts, match="Wait"):
        resume(study.token, code, "one address")
    for source in ("one address", "another address"):
        assert resume(other.token, code, source).study == other.id


def test_a_whole_study_is_walked_practice_first() -> None:
    study = open_study(items=6, practice=2, items_per_annotator=5, repeats=1)
    person = agreed(study.token)
    walked = []
    while ballot := next_ballot(person.id):
        walked.append((ballot.practice, ballot.done, ballot.of))
        confirm(person.id, answer(ballot, 2, 1, 2))
    assert walked == [(True, 0, 6)] * 2 + [(False, done, 6) for done in range(6)]
    matches = to_rankings(counted_votes(study.id))
    assert [match.repeat for match in matches].count(1) == 1
    assert len(matches) == 6, "practice does not count"
    assert len({match.item for match in matches}) == 5


@pytest.mark.parametrize("state", ["draft", "closed", "archived"])
def test_a_study_that_is_not_open_takes_no_votes(state: str) -> None:
    study = open_study()
    person = agreed(study.token)
    ballot = ballot_of(person)
    kept = answer(ballot)
    confirm(person.id, kept)
    set_state(study, state)
    for refused in (
        lambda: confirm(person.id, answer(ballot)),
        lambda: undo(person.id, new_token()),
        lambda: next_ballot(person.id),
        lambda: join(study.token),
    ):
        with pytest.raises(StudyNotOpen, match=r"has not opened yet|is closed"):
            refused()
    assert confirm(person.id, kept).before, "what is on the disk is confirmed again"
    assert [vote.token for vote in rows_of(study)] == [kept.token]


def test_a_study_expires_by_the_servers_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    study = open_study(closes_at=time.time() + 3600)
    person = agreed(study.token)
    ballot = ballot_of(person)
    confirm(person.id, answer(ballot))
    monkeypatch.setattr(time, "time", lambda closes_at=study.design["closes_at"]: closes_at)
    with pytest.raises(StudyNotOpen, match=r"is closed. Your confirmed answers are saved"):
        confirm(person.id, answer(ballot))
    assert len(rows_of(study)) == 1


@pytest.mark.parametrize("design", [text_design, image_design])
def test_a_study_of_a_model_is_opened_voted_on_and_closed(design: Callable[[Path], Design], tmp_path: Path) -> None:
    made = check_design(design(tmp_path))
    study = studies.open_study(studies.create(made).id)
    person = agreed(study.token)
    ballot = ballot_of(person)
    assert ballot.input.kind == made.kind
    assert len(ballot.maps) == len(made.ballot_methods)
    for one in ballot.maps:
        assert (one.grid is None) == (made.kind == "text")
        assert np.abs(one.scores).max() <= 1
    while ballot := next_ballot(person.id):
        confirm(person.id, answer(ballot, *range(1, 1 + len(made.ballot_methods))))
    studies.close(study.id)
    with pytest.raises(StudyNotOpen, match="is closed"):
        next_ballot(person.id)
    for match in to_rankings(counted_votes(study.id)):
        assert sorted(match.ranks) == sorted(method.id for method in made.ballot_methods)
