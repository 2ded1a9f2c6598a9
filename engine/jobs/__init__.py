"""Long work: cut into cached units, listed on disk, cancelled and resumed from any page or process."""

from __future__ import annotations

from engine.jobs.kinds import Kind, Unit, job_kind, kind_of
from engine.jobs.ledger import Failure, Job
from engine.jobs.runner import (
    cancel,
    create,
    failures,
    forget,
    get,
    ledger,
    list_jobs,
    place,
    resume,
    run_now,
    submit,
    wait,
)

__all__ = [
    "Failure",
    "Job",
    "Kind",
    "Unit",
    "cancel",
    "create",
    "failures",
    "forget",
    "get",
    "job_kind",
    "kind_of",
    "ledger",
    "list_jobs",
    "place",
    "resume",
    "run_now",
    "submit",
    "wait",
]
