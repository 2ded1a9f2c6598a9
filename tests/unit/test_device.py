"""The queue of a device: first come, first served; people before jobs; and where a job lets others pass."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine import jobs, runtime
from engine.errors import Cancelled
from engine.explain import explain
from engine.input_kinds import load_classifier
from engine.progress import CancelToken, cancellable
from engine.request import Example, Request
from engine.runtime import (
    INTERACTIVE_FIRST,
    DeviceQueue,
    clock,
    in_background,
    in_chunks,
    rows_at_once,
    turn,
    turns,
    unlent,
)
from tests.tiny import save_checkpoint
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


@pytest.fixture(autouse=True)
def nobody_is_left() -> Iterator[None]:
    yield
    until(lambda: turns().place() is None and not turns().waiting)


def asks(line: DeviceQueue, served: list[str], names: str) -> list[threading.Thread]:
    """A thread a letter, one after the other; small letters ask in the background."""

    def ask(name: str) -> None:
        with in_background() if name.islower() else nullcontext(), line:
            served.append(name)

    threads = []
    for name in names:
        threads.append(threading.Thread(target=ask, args=(name,)))
        before = line.waiting
        threads[-1].start()
        until(lambda before=before: line.waiting == before + 1)  # type: ignore[misc]
    return threads


def joined(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(10)


def test_people_come_before_jobs_and_each_line_is_fair() -> None:
    line, served = DeviceQueue(), list[str]()
    with line:
        threads = asks(line, served, "aAbBC")
        assert [line.place(thread.ident) for thread in threads] == [4, 1, 5, 2, 3]
    joined(threads)
    assert "".join(served) == "ABCab"


def test_a_job_is_overtaken_so_often_and_then_comes() -> None:
    line, served = DeviceQueue(), list[str]()
    with line:
        threads = asks(line, served, "ab" + "A" * (2 * INTERACTIVE_FIRST + 1))
    joined(threads)
    assert "".join(served) == "A" * INTERACTIVE_FIRST + "a" + "A" * INTERACTIVE_FIRST + "b" + "A"


def test_a_turn_is_lent_to_people_only_and_comes_back_before_other_jobs() -> None:
    line, served = DeviceQueue(), list[str]()
    with in_background():
        line.take()
        threads = asks(line, served, "b")
        assert line.lend() == 0
        assert served == []
        threads += asks(line, served, "AB")
        assert line.lend() > 0
        assert served == ["A", "B"]
        assert line.place() == 0
        line.give()
    joined(threads)
    assert served == ["A", "B", "b"]


def test_who_is_in_front_lends_nothing() -> None:
    line, served = DeviceQueue(), list[str]()
    with line:
        threads = asks(line, served, "A")
        assert line.lend() == 0
        assert served == []
    joined(threads)


class Person(threading.Thread):
    """Takes the turn of the runtime in front, and keeps it until let go."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.inside, self.go = threading.Event(), threading.Event()
        before = turns().waiting
        self.start()
        until(lambda: turns().waiting == before + 1 or self.inside.is_set())

    def run(self) -> None:
        with turn():
            self.inside.set()
            self.go.wait(10)


def pieces(each: Callable[[int], object], count: int = 3) -> list[int]:
    def compute(rows: slice) -> int:
        each(rows.start)
        return rows.start

    return in_chunks(compute, count, 1)


def test_a_job_lends_its_turn_between_two_chunks_and_its_clock_stands_still() -> None:
    people: list[Person] = []
    order: list[str] = []

    def each(number: int) -> None:
        order.append(f"{number}{'x' * sum(person.inside.is_set() for person in people)}")
        if not number:
            people.append(Person())
            people[0].go.set()
            assert not people[0].inside.is_set(), "not before the chunk is over"

    with in_background(), turn(lends=True):
        before, started = clock(), time.perf_counter()
        assert pieces(each) == [0, 1, 2]
        assert clock() - before < time.perf_counter() - started
    assert order == ["0", "1x", "2x"]


@pytest.mark.parametrize("how", ["in front", "does not lend", "changed model"])
def test_nobody_passes_where_that_is_not_safe(how: str) -> None:
    people: list[Person] = []

    def each(number: int) -> None:
        if not number:
            people.append(Person())
            people[0].go.set()
        assert not people[0].inside.is_set()

    ground = nullcontext() if how == "in front" else in_background()
    with ground, turn(lends=how != "does not lend"), unlent() if how == "changed model" else nullcontext():
        pieces(each)
    people[0].join(10)
    assert people[0].inside.is_set()


@pytest.mark.parametrize(("background", "lends", "rows"), [(True, True, 40), (True, False, 163), (False, True, 163)])
def test_passes_are_shorter_where_a_person_may_have_to_wait_for_one(
    background: bool, lends: bool, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load_classifier("text", str(save_checkpoint("bert", tmp_path)), "float32", torch.device("cpu"))
    monkeypatch.setattr(runtime, "last_level_cache", lambda: 1 << 30)
    with in_background() if background else nullcontext(), turn(lends):
        assert rows_at_once(model, 100) == rows
        with unlent():
            assert rows_at_once(model, 100) == 163


@pytest.mark.parametrize(
    ("cache", "tokens"), [(1 << 16, 16_384), (1 << 19, 1_024), (1 << 21, 2_682), (1 << 30, 16_384)]
)
def test_passes_on_a_processor_stay_in_its_cache(
    cache: int, tokens: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token of 32 hidden and two times 80 inner numbers has 768 bytes, the block 36,864."""
    model = load_classifier("text", str(save_checkpoint("bert", tmp_path)), "float32", torch.device("cpu"))
    monkeypatch.setattr(model.module.config, "hidden_size", 32)
    monkeypatch.setattr(model.module.config, "intermediate_size", 80)
    monkeypatch.setattr(runtime, "last_level_cache", lambda: cache)
    assert rows_at_once(model, 1) == tokens
    assert rows_at_once(model, 100) == tokens // 100
    assert rows_at_once(model, 2 * tokens) == 1


def test_unlent_ends() -> None:
    people: list[Person] = []
    with in_background(), turn(lends=True):
        with pytest.raises(ValueError, match="inside"), unlent():
            raise ValueError("inside")
        people.append(Person())
        people[0].go.set()
        pieces(lambda number: None, 1)
        assert people[0].inside.is_set()


def test_a_job_that_is_cancelled_while_its_turn_is_lent_takes_nobody_elses() -> None:
    token, people = CancelToken(), list[Person]()

    def cancel() -> None:
        assert people[0].inside.wait(10)
        token.cancel()

    def each(number: int) -> None:
        people.append(Person())
        threading.Thread(target=cancel, daemon=True).start()

    with pytest.raises(Cancelled), in_background(), cancellable(token), turn(lends=True):
        pieces(each)
    assert turns().place(people[0].ident) == 0, "the person still has the turn"
    assert turns().waiting == 0
    people[0].go.set()
    people[0].join(10)
    with turn():
        assert turns().place() == 0


def test_a_page_overtakes_a_job_that_runs_and_no_number_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(runtime, "CPU_TOKENS_LENT", 64)  # many small chunks
    model = str(save_checkpoint("bert", tmp_path / "bert"))
    texts = [f"the plot drags {word}" for word in ("on", "and bores", "but the cast is good", "again")]
    spec = {"model": model, "methods": ["lime"], "examples": [{"text": text} for text in texts]}
    half, asked = threading.Event(), threading.Event()
    own, chunks = runtime.attempt, list[str]()

    def attempt(compute: Any) -> Any:
        chunks.append(threading.current_thread().name)
        if len(chunks) == 3:
            half.set()
            asked.wait(10)
            until(lambda: turns().waiting == 1)
        return own(compute)

    monkeypatch.setattr(runtime, "attempt", attempt)
    job = jobs.submit("explain", spec)
    assert half.wait(20)
    asked.set()
    explain(Request(model, "gradient_l2", Example("good")))
    mine = chunks.index(threading.current_thread().name)
    ended = jobs.wait(job.id, 20.0)
    assert (ended.state, ended.computed) == ("done", 4)
    assert mine == 3, "the chunk at hand is finished, the next ones are the page's"
    assert len(chunks) > mine + 3, "most of the job's were still to come"
    here = [explain(Request(model, "lime", Example(text))).scores for text in texts]
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "undisturbed"))
    assert jobs.run_now(jobs.create("explain", spec)).computed == 4
    for scores, text in zip(here, texts, strict=True):
        np.testing.assert_array_equal(scores, explain(Request(model, "lime", Example(text))).scores)
