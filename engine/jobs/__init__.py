"""Long work: cut into cached units, listed on disk, cancelled and resumed from any page or process.

`kinds` cuts a specification into units, `runner` runs them, `table` lists the jobs of all processes, each owned by a
`process`, and `eta` estimates the time left. The work itself is that of the experiments.
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
