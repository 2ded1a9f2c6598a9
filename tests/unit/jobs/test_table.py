"""A table of jobs that is damaged or cannot be used for a while: no job is stuck, nothing that is finished is lost."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine import jobs
from engine.errors import ExegesisError
from engine.jobs import runner
from engine.jobs.table import JobTable, this_process

SECONDS = 20.0
FULL = ExegesisError("The list of jobs cannot be used: database or disk is full.")


def spec(tmp_path: Path, units: int = 3) -> dict[str, Any]:
    return {"units": units, "seconds": 0.0, "log": str(tmp_path / "log")}


def failing(monkeypatch: pytest.MonkeyPatch, name: str, times: int, when: Callable[..., bool]) -> list[int]:
    """`JobTable.name` fails the first `times` times that `when` holds for its arguments. Returns how many are left."""
    works, left = getattr(JobTable, name), [times]

    def tried(self: JobTable, *args: Any, **values: Any) -> Any:
        if left[0] and when(*args, **values):
            left[0] -= 1
            raise FULL
        return works(self, *args, **values)

    monkeypatch.setattr(JobTable, name, tried)
    return left


def ends(*args: Any, **values: Any) -> bool:
    """Whether a move says how a job ended."""
    return values.get("state") in ("done", "failed", "cancelled")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "END_PAUSES", (0.01, 0.01))
    monkeypatch.setattr(runner, "PAUSE_SECONDS", 0.01)


def test_the_end_is_written_as_soon_as_it_can_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = failing(monkeypatch, "move", 2, ends)
    job = jobs.wait(jobs.submit("sample", spec(tmp_path)).id, SECONDS)
    assert (job.state, job.done, left) == ("done", 3, [0])


def test_a_list_that_another_program_locks_holds_up_the_end_and_the_next_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[JobTable.__module__], "_BUSY_SECONDS", 0.2)
    monkeypatch.setattr(runner, "END_PAUSES", (0.01,) * 500)
    first = jobs.submit("sample", spec(tmp_path, units=30) | {"seconds": 0.02})
    second = jobs.submit("sample", spec(tmp_path, units=40))
    while not (tmp_path / "log").exists():
        time.sleep(0.005)
    with contextlib.closing(sqlite3.connect(jobs.job_table().path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        while len((tmp_path / "log").read_text().splitlines()) < 30:
            time.sleep(0.005)
        time.sleep(0.1)
        assert jobs.get(first.id).state == "running"
        with pytest.raises(ExegesisError, match="database is locked"):
            jobs.submit("sample", spec(tmp_path))
        other.execute("ROLLBACK")
    assert [jobs.wait(job.id, SECONDS).state for job in (first, second)] == ["done", "done"]


def test_a_job_whose_end_cannot_be_written_is_interrupted_and_the_queue_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = failing(monkeypatch, "move", 3, ends)
    first = jobs.submit("sample", spec(tmp_path))
    second = jobs.submit("sample", spec(tmp_path, units=5))
    assert jobs.wait(second.id, SECONDS).state == "done"
    stuck = jobs.get(first.id)
    assert (stuck.state, left) == ("interrupted", [0])
    assert stuck.error.startswith("Its result could not be written to the list of jobs. Resume the job:")
    jobs.resume(first.id)
    again = jobs.wait(first.id, SECONDS)
    assert (again.state, again.done, again.computed) == ("done", 3, 0)


def test_in_the_foreground_an_end_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, "move", 3, ends)
    job = jobs.create("sample", spec(tmp_path))
    with pytest.raises(ExegesisError, match="disk is full"):
        jobs.run_now(job)
    assert jobs.get(job.id).state == "interrupted"
    assert jobs.run_now(job).state == "done"


@pytest.mark.parametrize("name", ["next_queued", "start"])
def test_the_queue_tries_again_when_a_job_cannot_be_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    left = failing(monkeypatch, name, 4, lambda *_: True)
    job = jobs.wait(jobs.submit("sample", spec(tmp_path)).id, SECONDS)
    assert (job.state, job.computed, left) == ("done", 3, [0])


def test_a_running_job_of_ours_on_which_no_thread_works_is_interrupted(tmp_path: Path) -> None:
    job = jobs.create("sample", spec(tmp_path))
    assert jobs.job_table().start(job.id, this_process())
    assert (
        JobTable(jobs.job_table().path).get(job.id).state == "running"
    )  # one who does not know our threads believes it
    assert [listed.state for listed in jobs.list_jobs()] == ["interrupted"]
    assert jobs.cancel(job.id).state == "cancelled"


def test_a_job_that_was_taken_up_since_it_was_read_is_left_alone(tmp_path: Path) -> None:
    ours, job = jobs.job_table(), jobs.create("sample", spec(tmp_path))
    ours.start(job.id, this_process())
    read = dataclasses.replace(JobTable(ours.path).get(job.id))
    time.sleep(0.01)
    ours.queue_again(job.id, ["running"], "another", this_process())
    ours.start(job.id, this_process())
    assert ours._with_interruption(read).queued > read.queued
    assert JobTable(ours.path).get(job.id).state == "running"


def test_the_list_is_read_where_nothing_can_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = jobs.create("sample", spec(tmp_path))
    jobs.job_table().start(job.id, this_process())
    works = JobTable._begin

    def begin(self: JobTable, reading: bool = False) -> Any:
        if not reading:
            raise FULL
        return works(self, reading)

    monkeypatch.setattr(JobTable, "_begin", begin)
    assert [listed.state for listed in jobs.list_jobs()] == ["interrupted"]
    assert JobTable(jobs.job_table().path).get(job.id).state == "running"


def test_listing_reads_no_spec_until_it_is_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = spec(tmp_path)
    ids = [jobs.create("sample", asked | {"name": str(n)}).id for n in range(3)]
    reads: list[int] = []
    reader = JobTable._read_spec

    def counted(self: JobTable, id: int) -> dict[str, Any]:
        reads.append(id)
        return reader(self, id)

    monkeypatch.setattr(JobTable, "_read_spec", counted)
    ours = JobTable(jobs.job_table().path)
    for _ in range(3):
        listed = ours.all()
    assert reads == []
    for _ in range(3):
        assert ours.all()[0].spec["name"] == "2"
    assert reads == [ids[2]]
    assert listed[1].spec == asked | {"name": "1"}
    assert json.loads(json.dumps(dataclasses.asdict(listed[1])))["spec"] == asked | {"name": "1"}
    assert reads == [ids[2], ids[1]]


def test_the_spec_of_a_job_that_is_gone_is_an_error(tmp_path: Path) -> None:
    job = jobs.run_now(jobs.create("sample", spec(tmp_path)))
    kept = JobTable(jobs.job_table().path).get(job.id)
    jobs.forget(job.id)
    assert repr(kept.spec) == "StoredSpec(not read yet)"
    with pytest.raises(ExegesisError, match=f"there is no job {job.id}"):
        kept.spec["units"]


def test_a_folder_that_cannot_be_written(own_home: Path, tmp_path: Path) -> None:
    own_home.write_text("in the way")
    job = jobs.run_now(jobs.create("sample", spec(tmp_path, units=4)))
    assert (job.state, job.computed) == ("done", 4)
    assert "cannot be used" in job.note
    assert "Jobs are lost when this process ends" in jobs.job_table().status
    assert [listed.id for listed in jobs.list_jobs()] == [job.id]


def test_a_list_that_is_damaged_is_put_aside(own_home: Path, tmp_path: Path) -> None:
    own_home.mkdir()
    (own_home / "jobs.db").write_bytes(b"no database" * 999)
    assert jobs.run_now(jobs.create("sample", spec(tmp_path, units=4))).state == "done"
    assert "damaged or has another version" in jobs.job_table().status
    assert len(list(own_home.glob("jobs.db.aside-*"))) == 1


@pytest.mark.parametrize(
    "step", [61, pytest.param(1, marks=pytest.mark.slow(reason="1,300 lists are made, damaged and opened: 13 s"))]
)
def test_a_flipped_byte_in_the_first_page_of_the_list_is_survived(tmp_path: Path, step: int) -> None:
    """It holds the schema and the header; at worst the list is put aside and begun anew, and that is said. Of the room
    between them, which SQLite does not read, a sample is enough."""
    whole, flipped = tmp_path / "whole.db", tmp_path / "home" / "jobs.db"
    table = JobTable(whole)
    table.add("sample", "Sample", {}, "queue", this_process())
    table.close()
    page = whole.read_bytes()[:4096]
    free = range(128, page.index(b"CREATE ") - 128)
    assert len(free) > 2000
    assert not any(page[place] for place in free)
    for place in (18, *(place for place in range(0, 4096, step) if place not in free or place % 61 == 0)):
        content = bytearray(whole.read_bytes())
        content[place] ^= 0xFF
        flipped.parent.mkdir()
        flipped.write_bytes(content)
        table = JobTable(flipped)
        with contextlib.suppress(ExegesisError):  # says that the list is put aside, and to try again
            table.get(table.add("sample", "One", {}, "queue", this_process()).id)
        assert table.get(table.add("sample", "Another", {}, "queue", this_process()).id).title == "Another"
        assert "ends with this process" not in table.status, place
        table.close()
        shutil.rmtree(flipped.parent)
