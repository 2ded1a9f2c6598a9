"""Jobs across real processes: killed, resumed, cancelled and listed from elsewhere."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine import jobs
from engine.jobs.table import Process, is_alive, process_of, this_process
from tests.sample_job import command
from tests.storage import in_child, wait_for

ROOT = Path(__file__).parents[3]
SECONDS = 30.0


class Elsewhere:
    """A process that works on a job of its own."""

    def __init__(self, spec: dict[str, Any]) -> None:
        arguments = command("submit", json.dumps(spec))
        self.process = subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.job = int(self.process.stdout.readline())

    def answer(self) -> str:
        return self.process.communicate(timeout=SECONDS)[0].strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Elsewhere]:
    spec = {"units": 40, "seconds": 0.05, "log": str(tmp_path / "log")}
    started = Elsewhere(spec)
    until_computed(tmp_path, 3)
    yield started
    started.kill()


def computed(tmp_path: Path) -> list[int]:
    log = tmp_path / "log"
    return [int(line.split()[0]) for line in log.read_text().splitlines()] if log.exists() else []


def until_computed(tmp_path: Path, count: int) -> None:
    end = time.monotonic() + SECONDS
    while len(computed(tmp_path)) < count:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_killed_job_is_interrupted_and_resumes_with_no_unit_computed_twice(
    elsewhere: Elsewhere, tmp_path: Path
) -> None:
    elsewhere.kill()
    before = computed(tmp_path)
    assert 3 <= len(before) < 40
    job = jobs.get(elsewhere.job)
    assert job.state == "interrupted"
    assert "Resume the job: finished parts are not computed again." in job.error
    jobs.resume(job.id)
    ended = jobs.wait(job.id, SECONDS)
    assert (ended.state, ended.done, ended.error) == ("done", 40, "")
    assert ended.owner.pid == os.getpid()
    # A kill between the last line of a unit and its place in the store would be an honest second computation.
    counts = Counter(computed(tmp_path))
    assert sorted(counts) == list(range(40))
    assert [number for number, times in counts.items() if times > 1 and number != before[-1]] == []
    assert ended.computed in (40 - len(before), 41 - len(before))


def test_a_waiting_job_of_a_killed_process_is_interrupted_too(tmp_path: Path) -> None:
    def submit_two_and_die() -> None:
        for number in range(2):
            jobs.submit("sample", {"units": 9, "seconds": 5, "log": str(tmp_path / "log"), "name": str(number)})
        os.kill(os.getpid(), 9)

    os.waitpid(in_child(submit_two_and_die), 0)
    assert [job.state for job in jobs.list_jobs()] == ["interrupted"] * 2


def test_a_job_is_listed_and_cancelled_from_another_process(elsewhere: Elsewhere, tmp_path: Path) -> None:
    here = jobs.get(elsewhere.job)
    assert (here.state, here.owner.pid) == ("running", elsewhere.process.pid)
    assert jobs.resume(elsewhere.job).owner.pid == elsewhere.process.pid
    assert jobs.cancel(elsewhere.job).cancel_requested
    assert elsewhere.answer() == "cancelled"
    assert len(computed(tmp_path)) < 40
    assert jobs.get(elsewhere.job).state == "cancelled"


def test_our_jobs_are_listed_and_cancelled_by_another_process(tmp_path: Path) -> None:
    spec = {"units": 500, "seconds": 0.05, "log": str(tmp_path / "log")}
    job = jobs.submit("sample", spec)
    until_computed(tmp_path, 1)
    listed = subprocess.run(command("list"), cwd=ROOT, capture_output=True, text=True, check=True, timeout=SECONDS)
    assert json.loads(listed.stdout)[0][:3] == [job.id, "running", "Sample of 500"]
    subprocess.run(command("cancel", str(job.id)), cwd=ROOT, check=True, capture_output=True, timeout=SECONDS)
    assert jobs.wait(job.id, SECONDS).state == "cancelled"


def test_two_processes_work_at_once_and_share_units(elsewhere: Elsewhere, tmp_path: Path) -> None:
    spec = {"units": 40, "seconds": 0.05, "log": str(tmp_path / "log")}
    ours = jobs.run_now(jobs.create("sample", spec))
    assert elsewhere.answer() == "done"
    theirs = jobs.get(elsewhere.job)
    assert (ours.done, theirs.done) == (40, 40)
    assert ours.computed + theirs.computed == 40
    assert sorted(computed(tmp_path)) == list(range(40))


def test_two_processes_resume_one_job_and_one_of_them_does(elsewhere: Elsewhere, tmp_path: Path) -> None:
    elsewhere.kill()

    def try_to_resume() -> None:
        jobs.resume(elsewhere.job)
        assert jobs.wait(elsewhere.job, SECONDS).state == "done"
        time.sleep(0.5)

    wait_for(*[in_child(try_to_resume) for _ in range(3)])
    pids = {line.split()[1] for line in (tmp_path / "log").read_text().splitlines()}
    assert len(pids) == 2


def test_a_forked_process_has_a_queue_of_its_own(tmp_path: Path) -> None:
    spec = {"units": 3, "seconds": 0.0, "log": str(tmp_path / "log")}
    assert jobs.wait(jobs.submit("sample", spec).id, SECONDS).state == "done"

    def child() -> None:
        job = jobs.wait(jobs.submit("sample", spec | {"units": 5}).id, SECONDS)
        assert (job.state, job.computed) == ("done", 2)

    wait_for(in_child(child))


def test_a_reused_pid_is_no_lie() -> None:
    now = time.time()
    mine = this_process()
    assert mine.pid == os.getpid()
    assert is_alive(mine, now)
    assert not is_alive(dataclasses.replace(mine, started=mine.started - 60), now)
    assert not is_alive(dataclasses.replace(mine, pid=2**22 + 1), now)
    parent = process_of(os.getppid())
    assert is_alive(parent, now)
    assert not is_alive(dataclasses.replace(parent, started=parent.started + 60), now)


def test_a_zombie_is_dead() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        theirs = process_of(process.pid)
        assert is_alive(theirs, time.time())
        process.kill()
        end = time.monotonic() + SECONDS
        while is_alive(theirs, time.time()):
            assert time.monotonic() < end
            time.sleep(0.01)


def test_another_machine_lives_by_its_heartbeat() -> None:
    other = Process("another-machine", os.getpid(), 0.0)
    assert is_alive(other, time.time() - 5)
    assert not is_alive(other, time.time() - 500)
