from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cache import Store, single_flight
from tests.storage import entry, in_child, wait_for

Answer = tuple[Any, Any, bool]


def ask_at_once(askers: int, ask: Callable[[int], Answer]) -> tuple[list[Answer], list[BaseException]]:
    answers: list[Answer] = []
    errors: list[BaseException] = []
    start = threading.Barrier(askers)

    def run(number: int) -> None:
        start.wait()
        try:
            answers.append(ask(number))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(askers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return answers, errors


class Counter:
    """Counts computations in a file, over all processes."""

    def __init__(self, path: Path, seconds: float = 0.05) -> None:
        self.path, self.seconds = path, seconds

    def __call__(self) -> tuple[Any, Any]:
        with self.path.open("a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(self.seconds)
        return entry(5)

    @property
    def count(self) -> int:
        return len(self.path.read_text().splitlines()) if self.path.exists() else 0


@pytest.fixture
def counter(tmp_path: Path) -> Counter:
    return Counter(tmp_path / "count")


def test_a_miss_and_a_hit(store: Store, counter: Counter) -> None:
    first = single_flight(store, "k", counter)
    second = single_flight(store, "k", counter)
    assert (first[2], second[2], counter.count) == (False, True, 1)
    assert first[0] == second[0] == {"number": 5}
    assert first[1]["scores"].tobytes() == second[1]["scores"].tobytes()
    assert not first[1]["scores"].flags.writeable


def test_a_miss_returns_what_a_hit_will(store: Store) -> None:
    def compute() -> tuple[Any, Any]:
        return {"pair": (1, 2)}, {}

    assert single_flight(store, "k", compute)[0] == single_flight(store, "k", compute)[0] == {"pair": [1, 2]}


def test_32_threads_cause_one_computation(store: Store, counter: Counter) -> None:
    answers, errors = ask_at_once(32, lambda _: single_flight(store, "k", counter))
    assert errors == []
    assert counter.count == 1
    assert sorted(hit for *_, hit in answers) == [False] + [True] * 31
    assert all(meta == {"number": 5} and scores["scores"].sum() == 25 for meta, scores, _ in answers)


def test_different_keys_do_not_wait_for_each_other(store: Store) -> None:
    meet = threading.Barrier(4, timeout=10)

    def compute() -> tuple[Any, Any]:
        meet.wait()
        return entry(1)

    answers, errors = ask_at_once(4, lambda number: single_flight(store, f"k{number}", compute))
    assert (len(answers), errors) == (4, [])


def test_4_processes_of_8_threads_cause_one_computation(store: Store, counter: Counter) -> None:
    counter.seconds = 0.3

    def run() -> None:
        answers, errors = ask_at_once(8, lambda _: single_flight(store, "k", counter))
        assert (len(answers), errors) == (8, [])

    wait_for(*[in_child(run) for _ in range(4)])
    assert counter.count == 1
    assert list((store.folder / "flights").iterdir()) == []


def test_an_error_reaches_all_who_wait_and_the_next_may_try(store: Store, counter: Counter) -> None:
    def fail() -> tuple[Any, Any]:
        counter()
        raise ValueError("the model is gone")

    answers, errors = ask_at_once(8, lambda _: single_flight(store, "k", fail))
    assert answers == []
    assert [str(error) for error in errors] == ["the model is gone"] * 8
    assert counter.count < 8
    assert single_flight(store, "k", counter)[2] is False


class Stopped(Exception):
    pass


@pytest.mark.parametrize("kind", [Stopped, KeyboardInterrupt, SystemExit])
def test_who_stops_alone_leaves_the_work_to_the_next(store: Store, counter: Counter, kind: type[BaseException]) -> None:
    begun = threading.Event()

    def stop() -> tuple[Any, Any]:
        begun.set()
        time.sleep(0.1)
        raise kind

    def ask(number: int) -> Answer:
        if number == 0:
            return single_flight(store, "k", stop, alone=(Stopped,))
        begun.wait()
        return single_flight(store, "k", counter, alone=(Stopped,))

    answers, errors = ask_at_once(6, ask)
    assert [type(error) for error in errors] == [kind]
    assert (len(answers), counter.count) == (5, 1)


def test_who_waits_may_give_up(store: Store, counter: Counter) -> None:
    counter.seconds = 0.5
    begun = time.monotonic()

    def ask(number: int) -> Answer:
        if number == 0:
            return single_flight(store, "k", counter)
        time.sleep(0.1)
        return single_flight(store, "k", counter, check=give_up)

    def give_up() -> None:
        if time.monotonic() > begun + 0.2:
            raise Stopped

    answers, errors = ask_at_once(2, ask)
    assert [type(error) for error in errors] == [Stopped]
    assert (len(answers), counter.count) == (1, 1)


def test_who_waits_for_another_process_may_give_up(store: Store, counter: Counter) -> None:
    counter.seconds = 30
    pid = in_child(lambda: single_flight(store, "k", counter))
    wait_until(lambda: counter.count == 1)
    with pytest.raises(Stopped):
        single_flight(store, "k", counter, check=stop_now)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def stop_now() -> None:
    raise Stopped


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_killed_process_frees_its_turn(store: Store, counter: Counter) -> None:
    counter.seconds = 30
    pid = in_child(lambda: single_flight(store, "k", counter))
    wait_until(lambda: counter.count == 1)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    counter.seconds = 0
    assert single_flight(store, "k", counter)[2] is False
    assert counter.count == 2


def test_a_fork_in_the_middle_of_a_computation(store: Store, counter: Counter) -> None:
    children = []

    def compute() -> tuple[Any, Any]:
        children.append(in_child(lambda: single_flight(store, "other", counter)))
        return counter()

    single_flight(store, "k", compute)
    wait_for(*children)
    assert counter.count == 2


@pytest.mark.parametrize("broken", ["a file in the way", "too small"])
def test_without_a_folder_threads_still_share(tmp_path: Path, counter: Counter, broken: str) -> None:
    folder, counter.seconds = tmp_path / "cache", 0.5
    if broken == "a file in the way":
        folder.write_text("")
    with Store(folder, 0 if broken == "too small" else 10**8) as store:
        answers, errors = ask_at_once(32, lambda _: single_flight(store, "k", counter))
        assert (len(answers), errors, store.get("k")) == (32, [], None)
        assert sum(not hit for *_, hit in answers) == counter.count <= 4
        assert store.status != ""


def test_a_corrupt_entry_is_computed_anew(store: Store, counter: Counter) -> None:
    single_flight(store, "k", counter)
    store.put_body("k", b"nonsense")
    assert single_flight(store, "k", counter)[2] is False
    assert single_flight(store, "k", counter)[2] is True
    assert counter.count == 2


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux lists a process's open files there")
def test_a_turn_that_is_over_leaves_no_open_file(store: Store) -> None:
    single_flight(store, "a", lambda: entry(1))
    before = len(os.listdir("/proc/self/fd"))
    for number in range(5):
        single_flight(store, f"k{number}", lambda: entry(2))
    assert len(os.listdir("/proc/self/fd")) == before
    assert not list((store.folder / "flights").iterdir())
