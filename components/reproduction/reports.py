"""What is known alike of both papers' reproductions: the report of this computer, the one that ships, the jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

from engine import jobs
from engine.jobs import Job

Report = TypeVar("Report")
Carried = TypeVar("Carried", covariant=True)
Ended = tuple[tuple[int, int, float | None], ...]
"""Of each job that is over: its number, how much it had done, and when it ended."""


@runtime_checkable
class Ships(Protocol[Carried]):
    """A report that comes with the project, and how it was made."""

    @property
    def report(self) -> Carried: ...

    @property
    def told(self) -> str: ...


@dataclass(frozen=True)
class Reports(Generic[Report]):
    """`found`: None before it was run here with the models as they are. `shipped`: None where what comes with the
    project answers something else. `running`: a job, or the `last` that is over."""

    found: Report | None
    shipped: Ships[Report] | None
    running: Job | None
    last: Job | None

    @property
    def shown(self) -> Report | None:
        """What was found here, else what comes with the project."""
        return self.found or (self.shipped.report if self.shipped else None)

    @property
    def made(self) -> str:
        """When and with what the shipped report was made, where it is the one that is shown."""
        return self.shipped.told if self.shipped and not self.found else ""


class Tried(NamedTuple):
    """The jobs that were asked the same."""

    running: Job | None
    last: Job | None
    ended: Ended


def tried(kind: str, is_same: Callable[[Job], bool]) -> Tried:
    """Those of that kind. Errors: those of the list of jobs."""
    own = [job for job in jobs.list_jobs() if job.kind == kind and is_same(job)]
    over = [job for job in own if job.over]
    running = next((job for job in own if not job.over), None)
    return Tried(running, over[0] if over else None, tuple((job.id, job.done, job.finished) for job in over))
