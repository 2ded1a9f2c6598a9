"""What a session knows of its participant, and how an answer is kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
import streamlit as st

from components.annotate import page as annotate_ballot
from components.annotate import page as annotate_page
from components.annotate import seat as annotate_seat
from components.annotate.page import LOST, _save_guess, workload
from components.annotate.seat import (
    TAB_KEY,
    UNREACHABLE,
    Seat,
    _receive_code,
    _receive_view,
    current_seat,
    take_message,
    take_seat,
    viewed_since,
)
from components.organizer import Visit
from components.widgets.ranking import ConfirmedRanking
from engine.errors import ExegesisError
from engine.study.access import new_token
from engine.study.annotators import Guess, StudyNotOpen
from engine.study.ballots import next_ballot
from engine.study.database import ADDRESS, Study, Vote, study_database
from engine.study.design import Design, ItemChoice
from tests.unit.study.polls import agreed, open_study, set_state

CODE = "abcd-efgh-jkmn-pqrs"


class Clock:
    """A clock that the test sets."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def state(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """A session without a browser."""
    held: dict[str, Any] = {}
    monkeypatch.setattr(st, "session_state", held)
    yield held
    study_database().close()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (annotate_seat, annotate_ballot):
        monkeypatch.setattr(module, "time", made)
    return made


def seated(**more: Any) -> tuple[Study, Seat]:
    study = open_study(practice=0, **more)
    take_seat(study.token, agreed(study.token), CODE, "items")
    seat = current_seat(study.token)
    assert seat is not None
    return study, seat


def shown(seat: Seat) -> str:
    """The ballot that is on the page now."""
    ballot = next_ballot(seat.person)
    assert ballot is not None
    viewed_since(ballot.token)
    return ballot.token


def votes() -> list[Vote]:
    with study_database().reading() as session:
        return list(session.scalars(sa.select(Vote).order_by(Vote.id)))


def test_a_seat_is_that_of_its_study_only() -> None:
    study, seat = seated()
    assert current_seat("another") is None
    assert seat.code == CODE
    annotate_seat.leave_seat()
    assert current_seat(study.token) is None


def test_time_counts_from_when_a_ballot_was_first_shown(clock: Clock) -> None:
    _, seat = seated()
    ballot = shown(seat)
    clock.now += 12
    shown(seat)
    clock.now += 3
    annotate_ballot._save(seat, ballot, ConfirmedRanking((2, 1, 3), 1, new_token()))
    [vote] = votes()
    assert (vote.ranks, vote.seconds) == ([2, 1, 3], 15)
    clock.now += 7
    following = shown(seat)
    clock.now += 2
    annotate_ballot._save(seat, following, ConfirmedRanking(None, 1, new_token()))
    assert [(vote.ranks, vote.seconds) for vote in votes()] == [([2, 1, 3], 15), (None, 2)]


@pytest.mark.parametrize(("seen", "seconds"), [(4, 4 + 3), (0, 3), (-9, 3), (1e9, 12 + 3)])
def test_a_hidden_tab_is_not_looked_at_and_no_look_is_longer_than_the_server_s(
    clock: Clock, seen: int | float, seconds: int
) -> None:
    _, seat = seated()
    ballot = shown(seat)
    clock.now += 12
    annotate_seat.record_view("another", 1)
    annotate_seat.record_view(ballot, seen)
    clock.now += 3
    annotate_ballot._save(seat, ballot, ConfirmedRanking(None, 1, new_token()))
    assert [vote.seconds for vote in votes()] == [seconds]


def test_a_reload_goes_on_with_what_was_seen_before_it(clock: Clock) -> None:
    ballot, age = "of an earlier session", 20.0
    assert viewed_since(ballot, age) == clock.now
    annotate_seat.record_view(ballot, 14)
    assert viewed_since(ballot) == clock.now - 14
    annotate_seat.record_view(ballot, 300)
    assert viewed_since(ballot) == clock.now - age


def test_the_same_answer_sent_twice_is_one_vote() -> None:
    _, seat = seated()
    ballot, ranking = shown(seat), ConfirmedRanking((1, 1, 3), 1, new_token())
    for _ in range(2):
        annotate_ballot._save(seat, ballot, ranking)
    assert [vote.ranks for vote in votes()] == [[1, 1, 3]]


def test_two_clicks_on_the_same_button_take_back_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[dict[str, Any]] = []
    monkeypatch.setattr(st, "button", lambda *_, **how: drawn.append(how))
    _, seat = seated()
    for _ in range(2):
        annotate_ballot._save(seat, shown(seat), ConfirmedRanking((1, 2, 3), 1, new_token()))
    for screen in ("one", "one", "other"):
        annotate_ballot.draw_way_back(seat, screen)
    one, _, other = drawn
    for _ in range(2):
        one["on_click"](*one["args"])
    assert [vote.superseded_by is None for vote in votes()] == [True, False]
    assert one["key"] != other["key"], "a click that comes late is not one on the next screen's"
    other["on_click"](*other["args"])
    assert [vote.superseded_by is None for vote in votes()] == [False, False]


def test_once_answered_the_code_is_not_held_any_more() -> None:
    study, seat = seated()
    ballot = shown(seat)
    annotate_ballot._save(seat, ballot, ConfirmedRanking((1, 2, 3), 1, new_token()))
    after = current_seat(study.token)
    assert after is not None
    assert (after.code, after.last) == ("", ballot)


def test_an_answer_after_the_end_is_not_kept_and_the_page_will_say_so() -> None:
    study, seat = seated()
    ballot = shown(seat)
    set_state(study, "closed")
    with pytest.raises(StudyNotOpen):
        annotate_ballot._save(seat, ballot, ConfirmedRanking((1, 2, 3), 1, new_token()))
    assert votes() == []
    assert take_message() == LOST
    assert take_message() == ""


def test_a_failure_of_the_server_is_logged_with_the_pseudonym_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("integrated_gradients")

    _, seat = seated()
    monkeypatch.setattr(annotate_ballot, "confirm", fail)
    with pytest.raises(ExegesisError, match=r"^The server failed\.$"):
        annotate_ballot._save(seat, shown(seat), ConfirmedRanking((1, 2, 3), 1, new_token()))
    assert seat.pseudonym in caplog.text
    assert CODE not in caplog.text


def test_a_database_that_is_down_is_named_in_the_log_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _, seat = seated()
    ballot = shown(seat)
    with monkeypatch.context() as down:
        down.setenv(ADDRESS, "sqlite:////proc/no/such/place.db")
        with pytest.raises(ExegesisError, match=rf"^{UNREACHABLE}$"):
            annotate_ballot._save(seat, ballot, ConfirmedRanking((1, 2, 3), 1, new_token()))
    assert "place.db" in caplog.text
    assert seat.pseudonym in caplog.text
    assert CODE not in caplog.text


def test_a_second_click_guesses_nothing_else() -> None:
    _, seat = seated(mode="predict", repeats=0, items_per_annotator=4)
    ballot = shown(seat)
    for label in (1, 0):
        _save_guess(seat, ballot, Guess(label, 5))
    assert [vote.guess for vote in votes()] == [{"label": 1, "sure": 5}]


@pytest.mark.parametrize("sent", [None, 7, ["a"], "x" * 101])
@pytest.mark.parametrize(("step", "then"), [("code", "code"), ("instructions", "instructions"), ("no", "items")])
def test_what_a_tab_sends_is_believed_only_as_a_short_text(
    sent: object, step: str, then: str, state: dict[str, Any]
) -> None:
    heard: list[tuple[str, str]] = []
    state[TAB_KEY] = {"kept": {"code": sent, "step": "code"}}
    _receive_code(lambda *code: heard.append(code))
    state[TAB_KEY] = {"kept": {"code": CODE, "step": step}}
    for _ in range(2):
        _receive_code(lambda *code: heard.append(code))
    assert heard == [(CODE, then)]


@pytest.mark.parametrize("sent", [None, 7, {"screen": 7, "seconds": 1}, {"screen": "a", "seconds": float("nan")}])
def test_what_a_tab_has_seen_is_a_screen_and_a_number(sent: object, state: dict[str, Any], clock: Clock) -> None:
    viewed_since("a", age=9.0)
    state[TAB_KEY] = {"seen": sent}
    _receive_view()
    assert viewed_since("a") == clock.now
    state[TAB_KEY] = {"seen": {"screen": "a", "seconds": 2.5}}
    _receive_view()
    assert viewed_since("a") == clock.now - 2.5


def test_the_workload_counts_every_look() -> None:
    few = Design(items=ItemChoice(count=5), items_per_annotator=3, repeats=1, practice=2)
    assert workload(few) == "There are 6 items. The first 2 are for practice."
    single = Design(items=ItemChoice(count=1), items_per_annotator=1, repeats=0, practice=0)
    assert workload(single) == "There is 1 item."


@pytest.mark.parametrize(
    ("address", "other", "share"),
    [
        ("2001:db8:0:1::5", "2001:db8:0:1:9::6", True),
        ("2001:db8:0:1::5", "2001:db8:0:2::5", False),
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
    ],
)
def test_participants_share_limits_by_network_or_address(
    address: str, other: str, share: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = []
    for one in (address, other):
        monkeypatch.setattr(annotate_page, "current_visit", lambda one=one: Visit(one))
        sources.append(annotate_page._source())
    assert (sources[0] == sources[1]) is share
