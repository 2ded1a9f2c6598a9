from __future__ import annotations

import threading
import time

import pytest

from engine.device_queue import DeviceQueue
from tests.waiting import until


def line_up(turns: DeviceQueue, count: int, served: list[int]) -> list[threading.Thread]:
    """Threads that ask one after the other, in the order of their numbers."""

    def ask(number: int) -> None:
        with turns:
            served.append(number)

    threads = []
    for number in range(count):
        threads.append(threading.Thread(target=ask, args=(number,)))
        before = turns.waiting
        threads[-1].start()
        until(lambda before=before: turns.waiting == before + 1)  # type: ignore[misc]
    return threads


def test_first_come_first_served() -> None:
    turns, served = DeviceQueue(), list[int]()
    with turns:
        threads = line_up(turns, 20, served)
        assert turns.waiting == 20
        assert turns.place() == 0
        assert [turns.place(thread.ident) for thread in threads] == list(range(1, 21))
        assert served == []
    for thread in threads:
        thread.join(10)
    assert served == list(range(20))
    assert turns.waiting == 0
    assert turns.place() is None


def test_one_at_a_time() -> None:
    turns, inside, worst = DeviceQueue(), [0], [0]

    def ask() -> None:
        for _ in range(30):
            with turns:
                inside[0] += 1
                worst[0] = max(worst[0], inside[0])
                time.sleep(0)
                inside[0] -= 1

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert worst == [1]


def test_nobody_comes_twice_before_another_who_waits() -> None:
    turns, served = DeviceQueue(), list[str]()
    stop = threading.Event()

    def greedy() -> None:
        while not stop.is_set():
            with turns:
                served.append("greedy")
                time.sleep(0.001)

    thread = threading.Thread(target=greedy)
    thread.start()
    until(lambda: len(served) > 3)
    for _ in range(10):
        before = len(served)
        with turns:
            assert len(served) <= before + 2
    stop.set()
    thread.join(10)


def test_an_error_ends_the_turn() -> None:
    turns = DeviceQueue()
    with pytest.raises(ValueError, match="inside"), turns:
        raise ValueError("inside")
    with turns:
        assert turns.place() == 0


class Stopped(Exception):
    pass


def test_who_gives_up_leaves_the_line() -> None:
    turns, served, errors = DeviceQueue(), list[int](), list[BaseException]()

    def give_up() -> None:
        raise Stopped

    def ask() -> None:
        try:
            turns.take(give_up)
        except Stopped as error:
            errors.append(error)

    with turns:
        quitter = threading.Thread(target=ask)
        quitter.start()
        until(lambda: turns.waiting == 1 or bool(errors))
        threads = line_up(turns, 1, served)
        quitter.join(10)
        assert len(errors) == 1
    for thread in threads:
        thread.join(10)
    assert served == [0]
