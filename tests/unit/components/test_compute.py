"""Computations of pages: shared by all sessions, continued over a rerun, stopped once nobody waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from components import compute
from components.compute import run_shared
from engine.errors import Cancelled, UsageError
from engine.progress import CancelToken, cancellable
from engine.runtime import in_chunks, turn, turns
from tests.waiting import until

GRACE = 0.3


class Left(BaseException):
    """What Streamlit raises in a page that nobody sees any more."""


class Work:
    """Computes until it is let go or cancelled, in the device's turn."""

    def __init__(self) -> None:
        self.let_go, self.begun = threading.Event(), threading.Event()
        self.calls, self.cancelled_after = 0, 0.0

    def __call__(self, token: CancelToken) -> str:
        self.calls += 1
        started = time.monotonic()
        with cancellable(token), turn():
            self.begun.set()
            try:
                while not self.let_go.wait(0.01):
                    token.check()
            except Cancelled:
                self.cancelled_after = time.monotonic() - started
                raise
        return "made"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(compute, "GRACE_SECONDS", GRACE)
    monkeypatch.setattr(compute, "POLL_SECONDS", 0.01)
    yield
    until(lambda: not compute._running)
    assert turns().place() is None
    assert turns().waiting == 0


def silent(words: str) -> None:
    pass


def leave_once_begun(work: Work) -> None:
    def tick(words: str) -> None:
        if work.begun.is_set():
            raise Left

    with pytest.raises(Left):
        run_shared("key", work, tick)


class Asker(threading.Thread):
    """Asks in a thread of its own, as a session does."""

    def __init__(self, work: Callable[[CancelToken], str], key: str = "key") -> None:
        super().__init__(daemon=True)
        self.work, self.key, self.said = work, key, list[str]()
        self.got: object = None
        self.start()

    def run(self) -> None:
        try:
            self.got = run_shared(self.key, self.work, self.said.append)
        except Exception as error:
            self.got = error


def test_the_answer_comes_from_another_thread_and_is_told_meanwhile() -> None:
    work = Work()
    asker = Asker(work)
    until(lambda: len(asker.said) > 2)
    work.let_go.set()
    asker.join(10)
    assert asker.got == "made"
    assert set(asker.said) == {"0 s"}


def test_what_nobody_waits_for_is_cancelled_after_the_grace_and_frees_the_device() -> None:
    work = Work()
    leave_once_begun(work)
    with turn():
        assert work.cancelled_after >= GRACE
    assert run_shared("other", lambda token: "soon", silent) == "soon"


def test_who_asks_again_in_time_loses_nothing() -> None:
    work = Work()
    leave_once_begun(work)
    asker = Asker(work)
    until(lambda: asker.said)
    time.sleep(2 * GRACE)
    work.let_go.set()
    asker.join(10)
    assert asker.got == "made"
    assert (work.calls, work.cancelled_after) == (1, 0.0)


def test_who_asks_too_late_gets_a_computation_of_their_own() -> None:
    first, second = Work(), Work()
    leave_once_begun(first)
    until(lambda: first.cancelled_after)
    second.let_go.set()
    assert run_shared("key", second, silent) == "made"


def test_two_sessions_share_one_computation_and_one_may_leave() -> None:
    work = Work()
    stays = Asker(work)
    until(lambda: stays.said)
    leave_once_begun(work)
    time.sleep(2 * GRACE)
    work.let_go.set()
    stays.join(10)
    assert stays.got == "made"
    assert work.calls == 1


def test_an_error_reaches_all_who_wait_and_the_next_asks_anew() -> None:
    go, error = threading.Event(), UsageError("text: no.")

    def fail(token: CancelToken) -> str:
        go.wait(10)
        raise error

    askers = [Asker(fail), Asker(fail)]
    until(lambda: all(asker.said for asker in askers))
    go.set()
    for asker in askers:
        asker.join(10)
    assert [asker.got for asker in askers] == [error, error]
    assert run_shared("key", lambda token: "again", silent) == "again"


def test_who_waits_for_the_device_sees_the_place_in_the_queue() -> None:
    with turn():
        works = [Work(), Work()]
        first = Asker(works[0], "first")
        until(lambda: turns().waiting == 1)
        second = Asker(works[1], "second")
        until(lambda: first.said and second.said and turns().waiting == 2)
        until(lambda: second.said[-1].endswith("2 in the queue"))
        assert first.said[-1] == "waiting for the device, place 1 in the queue"
        assert second.said[-1] == "waiting for the device, place 2 in the queue"
    for work in works:
        work.let_go.set()
    for asker in (first, second):
        asker.join(10)
        assert asker.got == "made"


def test_the_evaluations_of_the_engine_are_counted() -> None:
    go = threading.Event()

    def passes(token: CancelToken) -> str:
        in_chunks(lambda rows: rows.start < 32 or go.wait(10), 96, 32)
        return "made"

    asker = Asker(passes)
    until(lambda: "0 s, 32 of 96 evaluations" in asker.said)
    go.set()
    asker.join(10)
    assert asker.got == "made"
