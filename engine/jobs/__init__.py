"""Background jobs: split into cached units, stored on disk, cancelled and resumed from any page or process.

`kinds` splits a specification into units and estimates the time left, `runner` runs them, and `table` lists the jobs of
all processes. The work itself is defined by the experiments.
"""

from __future__ import annotations

from engine.jobs.kinds import JobKind, WorkUnit, job_kind, kind_of
from engine.jobs.runner import (
    cancel,
    count_ahead,
    create,
    failures,
    forget,
    get,
    job_table,
    list_jobs,
    resume,
    run_now,
    submit,
    wait,
)
from engine.jobs.table import Job, UnitFailure

__all__ = [
    "Job", "JobKind", "UnitFailure", "WorkUnit", "cancel", "count_ahead", "create", "failures", "forget", "get",
    "job_kind", "job_table", "kind_of", "list_jobs", "resume", "run_now", "submit", "wait",
]  # fmt: skip
