"""A job kind for the tests: each unit waits, writes a line when it is computed, and fails if told to."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cache import key_for
from engine import jobs
from engine.errors import ExegesisError
from engine.jobs import WorkUnit, job_kind
from engine.store import result_store


@job_kind("sample", title=lambda spec: f"Sample of {spec.get('units')}")
def plan(spec: Any) -> Iterator[WorkUnit]:
    """`units`: how many, `log`: file, `seconds`: of each, `fail`?: numbers, `refuse`?: the plan itself fails,
    `together`?: a batch is offered."""
    if spec.get("refuse"):
        raise ExegesisError("the plan was refused")
    batch = None
    for number in range(spec["units"]):
        key = key_for({"sample": spec.get("name", ""), "number": number})
        batch = partial(_together, spec) if spec.get("together") and number == 0 else batch
        yield WorkUnit(key, f"unit {number}", partial(_compute, spec, number), batch=batch)


def _together(spec: Any, units: Sequence[WorkUnit]) -> None:
    with Path(spec["log"]).with_name("batches").open("a") as file:
        file.write(f"{len(units)}\n")
    for unit in units:
        result_store().put(unit.key, *unit.compute())


def _compute(spec: Any, number: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    if number in spec.get("fail", []):
        raise ValueError(f"number {number}\nis bad")
    time.sleep(spec["seconds"])
    with Path(spec["log"]).open("a") as file:
        file.write(f"{number} {os.getpid()}\n")
    return {"number": number}, {"scores": np.full(3, float(number))}


def command(*arguments: str) -> list[str]:
    """Runs `main` in another process."""
    return [
        sys.executable,
        "-c",
        "import sys; from tests import sample_job; sample_job.main(*sys.argv[1:])",
        *arguments,
    ]


def main(command: str, argument: str = "") -> None:
    """`submit SPEC` works on a job until it is over; `list` prints the jobs as JSON; `cancel ID`."""
    if command == "submit":
        job = jobs.submit("sample", json.loads(argument))
        print(job.id, flush=True)
        print(jobs.wait(job.id).state, flush=True)
    elif command == "list":
        print(json.dumps([[job.id, job.state, job.title, job.total, job.done] for job in jobs.list_jobs()]))
    elif command == "cancel":
        print(jobs.cancel(int(argument)).cancel_requested)
