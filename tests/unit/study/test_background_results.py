"""A page that follows a study with many votes does not wait for their rating."""

from __future__ import annotations

import dataclasses
import threading
from collections import Counter
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from engine.errors import ExegesisError
from engine.study import results as following
from engine.study.annotators import confirm
from engine.study.ballots import next_ballot
from engine.study.database import Study
from engine.study.results import (
    SAMPLED,
    latest_results,
    latest_version,
    rating_progress,
    results,
    sample_rankings,
    votes_version,
)
from engine.study.simulation import RankingSimulation, simulate_rankings
from engine.study.studies import close
from tests.unit.study.polls import agreed, answer, open_study
from tests.unit.study.quick import rate_quickly


@pytest.fixture(autouse=True)
def slow(store: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Ratings of two votes and more, which wait for this event; every study has many votes.

    It asks for the store, so that no thread holds a connection any more when that is closed.
    """
    go = threading.Event()
    rate_quickly(monkeypatch, lambda votes: votes < 2 or go.wait(30))
    monkeypatch.setattr(following, "FOREGROUND_ANSWERS", 0)
    monkeypatch.setattr(following, "PAUSE_SECONDS", 0)
    following._rest_until.clear()
    go.set()
    yield go
    go.set()
    for thread in working():
        thread.join()


def working() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("results of study")]


def voted(study: Study, votes: int) -> None:
    person = agreed(study.token)
    for _ in range(votes):
        ballot = next_ballot(person.id)
        assert ballot is not None
        confirm(person.id, answer(ballot))


def test_what_is_known_is_shown_until_the_newer_results_are_there(slow: threading.Event) -> None:
    study = open_study(practice=0)
    voted(study, 2)
    first, of_first = results(study.id), votes_version(study.id)
    assert latest_results(study.id) is first is results(study.id)
    slow.clear()
    voted(study, 3)
    assert latest_results(study.id) == first
    assert latest_version(study.id) == of_first
    [thread] = working()
    slow.set()
    thread.join()
    assert latest_version(study.id) == votes_version(study.id) == (5, 0)
    assert latest_results(study.id) is results(study.id)
    assert latest_results(study.id).answers == 5


def test_a_study_that_closed_meanwhile_is_shown_as_closed(slow: threading.Event) -> None:
    study = open_study(practice=0)
    voted(study, 2)
    results(study.id)
    slow.clear()
    voted(study, 1)
    closed = close(study.id)
    assert latest_results(study.id).study == closed
    assert latest_results(study.id).answers == 2


def test_after_its_work_it_rests_as_long(slow: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    study, now = open_study(practice=0), [100.0]
    monkeypatch.setattr("engine.study.results.time", SimpleNamespace(monotonic=lambda: now[0]))
    voted(study, 1)
    results(study.id)
    following._rest_until[study.id] = 110.0
    voted(study, 1)
    assert latest_results(study.id).answers == 1
    assert working() == []
    now[0] = 110.0
    assert latest_results(study.id).answers == 1
    for thread in working():
        thread.join()
    assert latest_results(study.id).answers == 2
    assert slow.is_set()


def test_a_sample_is_rated_before_all_votes(slow: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "SAMPLE", 1)
    study = open_study(practice=0)
    voted(study, 2)
    slow.clear()
    sampled = latest_results(study.id)
    assert latest_version(study.id) == SAMPLED
    assert sampled.summary is not None
    assert (sampled.sample, sampled.summary.votes, sampled.answers, len(sampled.votes)) == (1, 1, 2, 2)
    [thread] = working()
    slow.set()
    thread.join()
    assert latest_version(study.id) == votes_version(study.id)
    assert latest_results(study.id) is results(study.id)
    assert results(study.id).sample is None
    assert rating_progress(study.id) == 0


def test_a_sample_has_whole_people_in_the_order_of_the_votes() -> None:
    rankings = simulate_rankings(RankingSimulation({"A": 0.0, "B": 1.0}, annotators=5, items=4))
    repeated = [dataclasses.replace(one, repeat=1) for one in rankings[:3]]
    sample = sample_rankings([*repeated, *rankings], 10, seed=1)
    assert [rankings.index(one) for one in sample] == sorted(rankings.index(one) for one in sample)
    assert sorted(Counter(one.annotator for one in sample).values()) == [2, 4, 4]
    assert sample_rankings([*repeated, *rankings], 20, seed=1) == rankings
    assert sample_rankings(rankings, 10, seed=2) != sample


def test_few_votes_are_rated_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "FOREGROUND_ANSWERS", 300)
    study = open_study(practice=0)
    for votes in (1, 2):
        voted(study, votes)
        assert latest_version(study.id) == votes_version(study.id)
        assert latest_results(study.id) is results(study.id)
    assert working() == []


def test_an_unknown_study() -> None:
    with pytest.raises(ExegesisError, match="there is no study 99"):
        latest_results(99)
