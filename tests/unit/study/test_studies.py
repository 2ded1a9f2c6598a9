"""A study whose time is over stays over, whatever the clock says later; what was confirmed before is kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from engine.study import studies
from engine.study.access import new_token
from engine.study.annotators import Participant, StudyNotOpen, confirm, consent, identify, join, resume, undo
from engine.study.ballots import next_ballot
from engine.study.database import Annotator, Study, Vote, study_database
from tests.unit.study.polls import agreed, answer, open_study, set_state

pytestmark = pytest.mark.usefixtures("store")
CLOSES = 5_000_000_000.0


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    return lambda now: monkeypatch.setattr(time, "time", lambda: now)


def attempts(study: Study, person: Participant, code: str) -> dict[str, Callable[[], object]]:
    """All that a participant may ask for."""
    given = answer(next_ballot(person.id))
    return {
        "join": lambda: join(study.token, "192.0.2.1"),
        "resume": lambda: resume(study.token, code, "192.0.2.1"),
        "consent": lambda: consent(person.id),
        "ballot": lambda: next_ballot(person.id),
        "answer": lambda: confirm(person.id, given),
        "undo": lambda: undo(person.id, new_token()),
    }


def votes_and_people(study: Study) -> tuple[list[str], int]:
    with study_database().reading() as session:
        votes = session.scalars(sa.select(Vote.token).where(Vote.study == study.id))
        people = session.scalars(sa.select(Annotator.id).where(Annotator.study == study.id))
        return list(votes), len(people.all())


@pytest.mark.parametrize("first", ["join", "resume", "consent", "ballot", "answer", "undo"])
def test_whoever_comes_first_after_the_end_finds_it_over_for_good(
    first: str, set_clock: Callable[[float], None]
) -> None:
    study = open_study(closes_at=CLOSES)
    person, code = join(study.token)
    kept = answer(next_ballot(consent(person.id).id))
    confirm(person.id, kept)
    asked = attempts(study, person, code)
    before = votes_and_people(study)

    set_clock(CLOSES)
    with pytest.raises(StudyNotOpen, match=r"is closed. Your confirmed answers are saved"):
        asked[first]()
    set_clock(CLOSES - 1000)
    for attempt in asked.values():
        with pytest.raises(StudyNotOpen, match="is closed"):
            attempt()

    assert votes_and_people(study) == before
    assert confirm(identify(study.token, code, "here").id, kept).before, "an answer sent again is confirmed again"
    assert studies.find(study.id).state == studies.CLOSED
    closed = [(at, more) for kind, at, more in studies.study_log(study.id) if kind == "closed"]
    assert closed == [(CLOSES, {"because": "its time was over"})]


@pytest.mark.parametrize("look", ["find", "by_token", "all_studies"])
def test_an_organizer_who_looks_after_the_end_finds_it_closed_for_good(
    look: str, set_clock: Callable[[float], None]
) -> None:
    study = open_study(closes_at=CLOSES)
    looks = {
        "find": lambda: studies.find(study.id),
        "by_token": lambda: studies.find_by_token(study.token),
        "all_studies": lambda: studies.list_studies()[0],
    }
    set_clock(CLOSES - 1)
    assert looks[look]().takes_votes
    set_clock(CLOSES + 5)
    assert (looks[look]().state, looks[look]().closed) == (studies.CLOSED, CLOSES + 5)
    set_clock(CLOSES - 1)
    assert not looks[look]().takes_votes
    assert studies.archive(study.id).state == studies.ARCHIVED


def test_a_clock_set_back_before_the_end_takes_no_vote_away(set_clock: Callable[[float], None]) -> None:
    study = open_study(closes_at=CLOSES, practice=0)
    person = agreed(study.token)
    for clock in (CLOSES - 1, CLOSES - 9e8, CLOSES - 10):
        set_clock(clock)
        confirm(person.id, answer(next_ballot(person.id)))
    assert len(votes_and_people(study)[0]) == 3
    assert studies.find(study.id).takes_votes


def told_by_a_vote(study: Study) -> None:
    person = agreed(study.token)
    confirm(person.id, answer(next_ballot(person.id)))


TOLD = {"a vote": told_by_a_vote, "what happened": lambda study: studies.close(study.id)}


@pytest.mark.parametrize("told", TOLD)
@pytest.mark.parametrize("first", ["join", "resume", "consent", "ballot", "answer", "undo", "find", "list", "link"])
def test_an_end_that_nobody_saw_is_known_by_what_came_after_it(
    told: str, first: str, set_clock: Callable[[float], None]
) -> None:
    study, other = open_study(closes_at=CLOSES), open_study()
    person, code = join(study.token)
    consent(person.id)
    looks = {
        "find": lambda: studies.find(study.id),
        "list": lambda: studies.list_studies()[1],
        "link": lambda: studies.find_by_token(study.token),
    }
    asked = {**attempts(study, person, code), **looks}

    set_clock(CLOSES)
    TOLD[told](other)
    set_clock(CLOSES - 1000)
    if first in looks:
        assert looks[first]().state == studies.CLOSED
    else:
        with pytest.raises(StudyNotOpen, match="is closed"):
            asked[first]()
    assert studies.find(study.id).state == studies.CLOSED


def test_a_time_to_come_is_not_known_from_before_or_from_another_machine(set_clock: Callable[[float], None]) -> None:
    study, other, imported = open_study(closes_at=CLOSES), open_study(), open_study()
    set_clock(CLOSES + 1)
    told_by_a_vote(imported)
    set_state(imported, studies.CLOSED)  # as a study with votes is that came from a file
    set_clock(CLOSES - 1)
    told_by_a_vote(other)
    told_by_a_vote(study)
    assert studies.find(study.id).takes_votes


def test_a_study_that_is_closed_does_not_end_again() -> None:
    study = open_study()
    closed = studies.close(study.id)
    assert studies.end_study(study.id) == closed
    assert [kind for kind, *_ in studies.study_log(study.id)] == ["closed"]


def test_many_who_find_it_over_at_once_close_it_once(set_clock: Callable[[float], None]) -> None:
    study = open_study(closes_at=CLOSES)
    people = [agreed(study.token) for _ in range(8)]
    set_clock(CLOSES)
    with ThreadPoolExecutor(len(people)) as threads:
        asked = [threads.submit(next_ballot, person.id) for person in people]
    assert all(isinstance(one.exception(), StudyNotOpen) for one in asked)
    assert [kind for kind, *_ in studies.study_log(study.id)] == ["closed"]
