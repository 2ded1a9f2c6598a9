from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from engine import jobs
from engine.errors import ExegesisError, UsageError
from engine.progress import CancelToken
from engine.store import result_store
from tests.waiting import until

SECONDS = 20.0


def spec(tmp_path: Path, units: int = 4, **more: Any) -> dict[str, Any]:
    return {"units": units, "seconds": 0.0, "log": str(tmp_path / "log"), **more}


def computed(tmp_path: Path) -> list[int]:
    log = tmp_path / "log"
    return [int(line.split()[0]) for line in log.read_text().splitlines()] if log.exists() else []


def test_a_job_is_done_unit_by_unit(tmp_path: Path) -> None:
    job = jobs.submit("sample", spec(tmp_path))
    assert (job.kind, job.title, job.state) == ("sample", "Sample of 4", "queued")
    job = jobs.wait(job.id, SECONDS)
    assert (job.state, job.total, job.done, job.computed, job.failed) == ("done", 4, 4, 4, 0)
    assert (job.error, job.note, job.label, job.seconds_left) == ("", "", "", None)
    assert job.created <= job.started <= job.finished  # type: ignore[operator]
    assert computed(tmp_path) == [0, 1, 2, 3]
    assert result_store().stats().entries == 4


def test_what_was_computed_is_shared_by_a_job_that_is_submitted_twice(tmp_path: Path) -> None:
    first = jobs.submit("sample", spec(tmp_path))
    second = jobs.submit("sample", spec(tmp_path, units=6))
    assert jobs.wait(first.id, SECONDS).computed == 4
    ended = jobs.wait(second.id, SECONDS)
    assert (ended.done, ended.computed) == (6, 2)
    assert computed(tmp_path) == [0, 1, 2, 3, 4, 5]


def test_two_processes_of_jobs_at_once_share_units(tmp_path: Path) -> None:
    ids = [jobs.create("sample", spec(tmp_path, units=8, seconds=0.02)) for _ in range(3)]
    threads = [threading.Thread(target=jobs.run_now, args=(job,)) for job in ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    ended = [jobs.get(job.id) for job in ids]
    assert [job.state for job in ended] == ["done"] * 3
    assert sum(job.computed for job in ended) == 8
    assert sorted(computed(tmp_path)) == list(range(8))


def test_first_come_first_served_and_the_place_in_line(tmp_path: Path) -> None:
    ids = [jobs.submit("sample", spec(tmp_path, units=5, seconds=0.1, name=str(n))) for n in range(3)]
    until(lambda: jobs.get(ids[0].id).state == "running")
    assert [jobs.count_ahead(jobs.get(job.id)) for job in ids] == [0, 1, 2]
    ended = [jobs.wait(job.id, SECONDS) for job in ids]
    assert [job.state for job in ended] == ["done"] * 3
    starts = [job.started or 0.0 for job in ended]
    ends = [job.finished or 0.0 for job in ended]
    assert ends[0] <= starts[1] <= ends[1] <= starts[2]
    assert jobs.count_ahead(ended[2]) == 0
    assert [job.id for job in jobs.list_jobs()] == [job.id for job in reversed(ids)]


def test_a_job_is_cancelled_within_one_unit(tmp_path: Path) -> None:
    job = jobs.submit("sample", spec(tmp_path, units=500, seconds=0.05))
    until(lambda: len(computed(tmp_path)) >= 2)
    jobs.cancel(job.id)
    before = len(computed(tmp_path))
    ended = jobs.wait(job.id, SECONDS)
    assert ended.state == "cancelled"
    assert len(computed(tmp_path)) <= before + 1
    assert ended.done == len(computed(tmp_path))


def test_a_waiting_job_is_cancelled_at_once(tmp_path: Path) -> None:
    first = jobs.submit("sample", spec(tmp_path, units=3, seconds=0.1))
    second = jobs.submit("sample", spec(tmp_path, units=3, name="second"))
    assert jobs.cancel(second.id).state == "cancelled"
    assert jobs.wait(first.id, SECONDS).state == "done"
    assert jobs.get(second.id).state == "cancelled"
    assert len(computed(tmp_path)) == 3


def test_a_cancelled_job_resumes_without_computing_twice(tmp_path: Path) -> None:
    job = jobs.submit("sample", spec(tmp_path, units=12, seconds=0.03))
    until(lambda: len(computed(tmp_path)) >= 2)
    jobs.cancel(job.id)
    stopped = jobs.wait(job.id, SECONDS)
    assert jobs.resume(job.id).state in ("queued", "running")
    ended = jobs.wait(job.id, SECONDS)
    assert (ended.state, ended.done) == ("done", 12)
    assert ended.computed == 12 - stopped.done
    assert computed(tmp_path) == list(range(12))


def test_cancelling_or_resuming_what_is_done_changes_nothing(tmp_path: Path) -> None:
    job = jobs.wait(jobs.submit("sample", spec(tmp_path)).id, SECONDS)
    assert jobs.cancel(job.id) == job
    assert jobs.resume(job.id) == job


def test_a_failing_unit_does_not_stop_the_others(tmp_path: Path) -> None:
    job = jobs.wait(jobs.submit("sample", spec(tmp_path, fail=[1, 3])).id, SECONDS)
    assert (job.state, job.done, job.computed, job.failed) == ("failed", 4, 2, 2)
    assert job.error == "2 of 4 units failed. The first: unit 1: ValueError: number 1 is bad"
    assert [(f.label, f.error) for f in jobs.failures(job.id)] == [
        ("unit 1", "ValueError: number 1 is bad"),
        ("unit 3", "ValueError: number 3 is bad"),
    ]
    assert computed(tmp_path) == [0, 2]


def test_a_failed_job_tries_only_the_failed_units_again(tmp_path: Path) -> None:
    job = jobs.wait(jobs.submit("sample", spec(tmp_path, fail=[1])).id, SECONDS)
    jobs.resume(job.id)
    again = jobs.wait(job.id, SECONDS)
    assert (again.state, again.done, again.computed, again.failed) == ("failed", 4, 0, 1)
    assert computed(tmp_path) == [0, 2, 3]
    assert len(jobs.failures(job.id)) == 1


def test_all_units_fail(tmp_path: Path) -> None:
    job = jobs.wait(jobs.submit("sample", spec(tmp_path, fail=[0, 1, 2, 3])).id, SECONDS)
    assert job.state == "failed"
    assert job.error.startswith("All 4 units failed. The first: unit 0: ValueError")


def test_a_plan_that_fails(tmp_path: Path) -> None:
    job = jobs.wait(jobs.submit("sample", spec(tmp_path, refuse=True)).id, SECONDS)
    assert (job.state, job.error, job.total) == ("failed", "the plan was refused", 0)


def test_the_queue_goes_on_after_a_failure(tmp_path: Path) -> None:
    jobs.submit("sample", spec(tmp_path, refuse=True))
    job = jobs.submit("sample", spec(tmp_path))
    assert jobs.wait(job.id, SECONDS).state == "done"


def test_in_the_foreground_progress_is_reported(tmp_path: Path) -> None:
    heard: list[tuple[int, int, str]] = []
    job = jobs.create("sample", spec(tmp_path, units=3))
    ended = jobs.run_now(job, lambda *told: heard.append(told))
    assert ended.state == "done"
    assert heard == [(0, 3, "unit 0"), (1, 3, "unit 1"), (2, 3, "unit 2"), (3, 3, "")]


def test_in_the_foreground_a_token_cancels_and_the_job_can_be_run_again(tmp_path: Path) -> None:
    token = CancelToken()

    def report(done: int, total: int, label: str) -> None:
        if done == 2:
            token.cancel()

    job = jobs.run_now(jobs.create("sample", spec(tmp_path, units=6)), report, token)
    assert job.state == "cancelled"
    assert len(computed(tmp_path)) == 3
    assert jobs.run_now(job).state == "done"
    assert computed(tmp_path) == list(range(6))


def test_an_interrupt_in_the_foreground_leaves_a_job_to_resume(tmp_path: Path) -> None:
    job = jobs.create("sample", spec(tmp_path))

    def press(done: int, total: int, label: str) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        jobs.run_now(job, press)
    assert jobs.get(job.id).state == "interrupted"
    jobs.resume(job.id)
    assert jobs.wait(job.id, SECONDS).state == "done"
    assert computed(tmp_path) == [0, 1, 2, 3]


def batches(tmp_path: Path) -> list[int]:
    return [int(line) for line in (tmp_path / "batches").read_text().splitlines()]


def test_units_with_a_batch_are_computed_a_few_at_a_time(tmp_path: Path) -> None:
    jobs.run_now(jobs.create("sample", spec(tmp_path, units=3)))
    job = jobs.run_now(jobs.create("sample", spec(tmp_path, units=24, together=True)))
    assert (job.state, job.done, job.computed) == ("done", 24, 21)
    assert batches(tmp_path) == [16, 5]
    assert computed(tmp_path) == list(range(24))


def test_a_batch_that_fails_is_computed_one_by_one(tmp_path: Path) -> None:
    job = jobs.run_now(jobs.create("sample", spec(tmp_path, units=20, fail=[2], together=True)))
    assert (job.state, job.done, job.computed, job.failed) == ("failed", 20, 17, 1)
    assert job.error.startswith("1 of 20 units failed. The first: unit 2")
    assert batches(tmp_path) == [16, 4]
    assert sorted(computed(tmp_path)) == [n for n in range(20) if n != 2]


def test_time_left_counts_only_what_was_computed(tmp_path: Path) -> None:
    jobs.wait(jobs.submit("sample", spec(tmp_path, units=30)).id, SECONDS)
    job = jobs.submit("sample", spec(tmp_path, units=40, seconds=0.2))
    left: list[float] = []
    while not (now := jobs.get(job.id)).is_over:
        if now.seconds_left is not None:
            left.append(now.seconds_left)
            assert now.done >= 30
        time.sleep(0.02)
    assert max(left) > 1.0
    assert min(left) < 1.0


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"job kind: unknown name 'sampel'\. Did you mean 'sample'\?"):
        jobs.submit("sampel", {})
    with pytest.raises(UsageError, match=r"spec: must be plain JSON for a job of kind sample \(value\['x'\]: must be"):
        jobs.submit("sample", {"x": object()})
    with pytest.raises(ExegesisError, match="there is no job 999"):
        jobs.get(999)
    assert jobs.list_jobs() == []


def test_a_finished_job_is_taken_off_the_list_and_its_results_stay(tmp_path: Path) -> None:
    job = jobs.create("sample", spec(tmp_path))
    with pytest.raises(UsageError, match=r"is queued\. Cancel it before"):
        jobs.forget(job.id)
    jobs.run_now(job)
    jobs.forget(job.id)
    assert jobs.list_jobs() == []
    assert result_store().stats().entries == 4


def test_a_kind_is_registered_once() -> None:
    def other(spec: Any) -> list[jobs.WorkUnit]:
        return []

    with pytest.raises(ValueError, match="'sample' is registered twice"):
        jobs.job_kind("sample", title="Other")(other)
