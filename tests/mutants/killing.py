"""A plugin of pytest, for the runs with a mutant on: the tests are collected once, each mutant gets a forked process.

The parent has imported everything and run nothing, so that a child starts in a moment and finds every cache empty.
A child runs the tests chosen for its mutant and ends with the first that fails. A kill counts when the killing
test fails again alone with the mutant on and passes alone with it off. A mutant that is passed when files are
imported may be on from the start, in a parent of its own. The job is a file of JSON:
{"tests": {mutant: [test, ...]}, "wall": {test: seconds}, "results": folder}.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import select
import shutil
import signal
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

import mutant_switches as switches
import psutil
import pytest

SUBREAPER = 36
SLOWER, AT_LEAST = 10, 60.0
"""A test hangs when it takes so many times its usual duration, and so many seconds."""


BEGINS, FAILED, PASSED = b"b", b"f", b"p"
"""What a child says: a test begins; one has failed, and it ends; all have passed."""


class Child:
    """Ends a forked process with its first failure."""

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            os.write(self.pipe, FAILED)
            os._exit(0)


def pytest_configure() -> None:
    switches.in_test_process = True


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    job = json.loads(Path(os.environ[switches.JOB]).read_text(encoding="utf-8"))
    ctypes.CDLL(None).prctl(SUBREAPER, 1)  # what a child leaves behind becomes ours to end
    gc.collect()
    gc.freeze()
    trials = Trials(session, job["wall"])
    for number, tests in job["tests"].items():
        with suppress(FileExistsError):
            (Path(job["results"]) / f"{number}.begun").touch(exist_ok=False)  # else another process has it
            found = trials.judge(int(number), tests)
            (Path(job["results"]) / f"{number}.json").write_text(json.dumps(found), encoding="utf-8")
    return True


class Trials:
    def __init__(self, session: pytest.Session, wall: dict[str, float]) -> None:
        self.items = {item.nodeid: item for item in session.items}
        self.config = session.config
        self.wall: dict[str, float] = defaultdict(float)
        for test, seconds in wall.items():  # of a file's slowest test, which may have made what the others use
            self.wall[_file_of(test)] = max(self.wall[_file_of(test)], seconds)
        self.passes_alone: dict[str, bool] = {}

    def judge(self, number: int, tests: list[str]) -> dict[str, Any]:
        """The test that notices a mutant, none when all that were chosen pass."""
        began, left, ran = time.perf_counter(), [name for name in tests if name in self.items], 0
        unsure: list[str] = []
        if switches.chosen and not left:
            return {"by": _file_of(tests[0]), "how": "not imported", "ran": 0, "unsure": [], "seconds": 0.0}
        while left:
            done, how = self.run(number, left)
            ran += done
            if how == "passed":
                break
            test = left[done - 1]
            alone = how if done == 1 else self.run(number, [test])[1]
            if alone != "passed" and self.is_sound(test):
                seconds = round(time.perf_counter() - began, 1)
                return {"by": test, "how": alone, "ran": ran, "unsure": unsure, "seconds": seconds}
            unsure.append(test)
            left = left[done:]
        return {"by": None, "how": "", "ran": ran, "unsure": unsure, "seconds": round(time.perf_counter() - began, 1)}

    def is_sound(self, test: str) -> bool:
        if switches.chosen:  # on from the start, so that there is no process in which it is off
            return True
        if test not in self.passes_alone:
            self.passes_alone[test] = self.run(0, [test])[1] == "passed"
        return self.passes_alone[test]

    def run(self, number: int, tests: list[str]) -> tuple[int, str]:
        """(how many were begun, "passed", "failed", "hung" or "crashed"), in a process and a folder of their own."""
        folder = Path(tempfile.mkdtemp(prefix="exegesis-mutant-"))
        ours, theirs = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(ours)
            self.run_here(number, tests, folder, theirs)
            os._exit(0)
        os.close(theirs)
        begun, how, patience = 0, "", AT_LEAST
        while not how:
            said = os.read(ours, 1) if select.select([ours], [], [], patience)[0] else None
            if said == BEGINS:
                patience = max(AT_LEAST, SLOWER * self.wall[_file_of(tests[begun])])
                begun += 1
            else:
                how = {FAILED: "failed", PASSED: "passed", None: "hung"}.get(said, "crashed")
        os.close(ours)
        _end()
        shutil.rmtree(folder, ignore_errors=True)
        return begun, how

    def run_here(self, number: int, tests: list[str], folder: Path, pipe: int) -> None:
        os.setsid()
        log = os.open(folder / "log", os.O_CREAT | os.O_WRONLY)
        for standard in (1, 2):
            os.dup2(log, standard)
        os.environ["EXEGESIS_HOME"] = str(folder / "home")
        os.environ[switches.CHOSEN] = str(number)
        os.environ.pop(switches.FOLDER, None)
        switches.chosen, switches.in_test_process = number, True
        (folder / "tests").mkdir()
        self.config._tmp_path_factory._basetemp = folder / "tests"
        self.config.pluginmanager.register(Child(pipe))
        chosen = [self.items[name] for name in tests]
        for item, after in zip(chosen, [*chosen[1:], None], strict=True):
            os.write(pipe, BEGINS)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        os.write(pipe, PASSED)


def _file_of(test: str) -> str:
    return test.partition("::")[0]


def _end() -> None:
    """End the child and all that it has started."""
    for _ in range(3):
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, 0)[0]:
                pass
