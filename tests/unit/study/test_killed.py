"""Fifty people vote over HTTP at once, the server is killed, and every vote that it confirmed is there once."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa

from engine.study.database import Annotator, Vote, study_database
from tests.browser.server import Server, running
from tests.unit.study.polls import open_study
from tests.unit.study.voter import Unreached, Voter

PEOPLE = 50
EACH = 4
BEFORE = 60
"""Votes that are confirmed before the server is killed."""
SECONDS = 200


def begin(voters: Sequence[Voter], server: Server, errors: list[BaseException]) -> list[threading.Thread]:
    """All begin at once; those whom the server leaves without an answer stop."""
    barrier = threading.Barrier(len(voters))

    def take_part(voter: Voter) -> None:
        try:
            barrier.wait()
            voter.vote(server.url)
        except Unreached:
            pass
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=take_part, args=(voter,)) for voter in voters]
    for thread in threads:
        thread.start()
    return threads


def join_all(threads: Sequence[threading.Thread]) -> None:
    for thread in threads:
        thread.join(SECONDS)
    assert not any(thread.is_alive() for thread in threads)


def confirmed(voters: Sequence[Voter]) -> list[str]:
    return [token for voter in voters for token in voter.acknowledged]


def stored() -> Counter[str]:
    with study_database().reading() as session:
        return Counter(session.scalars(sa.select(Vote.token)))


def kill(server: Server, voters: Sequence[Voter], errors: Sequence[BaseException]) -> None:
    """`kill -9` as soon as so many votes are confirmed, with more under way."""
    end = time.monotonic() + SECONDS
    while len(confirmed(voters)) < BEFORE:
        assert not errors, errors
        assert time.monotonic() < end, f"{len(confirmed(voters))} votes were confirmed"
        time.sleep(0.005)
    os.kill(server.pid, signal.SIGKILL)


@pytest.mark.usefixtures("store")
@pytest.mark.slow(reason="fifty people vote at a server that is killed")
def test_no_confirmed_vote_is_lost_when_the_server_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "home"))
    study = open_study(items=6, practice=0, items_per_annotator=EACH, repeats=0)
    voters, errors = [Voter(study.token) for _ in range(PEOPLE)], list[BaseException]()

    with running(tmp_path) as server:
        threads = begin(voters, server, errors)
        kill(server, voters, errors)
        join_all(threads)
    assert errors == []
    early, found = confirmed(voters), stored()
    assert BEFORE <= len(early) < PEOPLE * EACH
    assert [found[token] for token in early] == [1] * len(early), "what was confirmed is on the disk"
    assert set(found.values()) == {1}

    with running(tmp_path) as server:
        join_all(begin(voters, server, errors))
        log = server.log
    assert errors == []
    assert all(voter.through for voter in voters)
    assert stored() == Counter(confirmed(voters)), "an answer that was sent again is there once"
    assert len(confirmed(voters)) == PEOPLE * EACH
    check_log(log, [voter.code for voter in voters])


def check_log(log: str, codes: Sequence[str]) -> None:
    """Nothing went wrong, and nothing of the participants is told but, at most, their pseudonyms."""
    with study_database().reading() as session:
        people = session.scalars(sa.select(Annotator)).all()
    assert len(people) >= PEOPLE, "who joined and was not told a code may have joined again"
    assert "Traceback" not in log
    assert not [code for code in codes if code in log]
    assert not [person.code for person in people if person.code in log]
