"""What is known of SMaT's reproduction without running a model: its jobs, and the report that one of them left."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from components.browse.known import losses
from engine import jobs
from engine.home import home
from engine.jobs import Job
from engine.jobs.reproducing_smat import KIND, asked_of
from engine.models.catalog import embedded_image_models, embedded_models
from engine.reproduction.smat.asked import Asked
from engine.reproduction.smat.report import SmatReport
from engine.reproduction.smat.shipped import ShippedSmat, shipped_for


@dataclass(frozen=True)
class KnownSmat:
    """`found`: None before it was run with the teachers as they are. `shipped`: what comes with the project, None where
    it answers something else. `running`: a job, or the `last` that is over."""

    found: SmatReport | None
    shipped: ShippedSmat | None
    running: Job | None
    last: Job | None

    @property
    def shown(self) -> SmatReport | None:
        """What was found here, else what comes with the project."""
        return self.found or (self.shipped.report if self.shipped else None)

    @property
    def made(self) -> str:
        """When and with what the shipped report was made, where it is the one that is shown."""
        return self.shipped.told if self.shipped and not self.found else ""


def known_smat(asked: Asked) -> KnownSmat:
    """What there is. Errors: those of the list of jobs."""
    own = [job for job in jobs.list_jobs() if job.kind == KIND and asked_of(job.spec) == asked]
    running = next((job for job in own if not job.over), None)
    over = [job for job in own if job.over]
    ended = tuple((job.id, job.done, job.finished) for job in over)
    here = (*embedded_models(), *embedded_image_models())
    found = _held(asked.command(), ended, here, losses(), str(home()), asked)
    return KnownSmat(found, shipped_for(asked), running, over[0] if over else None)


@st.cache_resource(max_entries=4, show_spinner="Looking for a report …")
def _held(
    command: str,
    ended: tuple[tuple[int, int, float | None], ...],
    models: tuple[str, ...],
    losses: int,
    home: str,
    _asked: Asked,
) -> SmatReport | None:
    # Here and not above: it imports what reads data sets.
    from engine.reproduction.smat.run import kept

    return kept(_asked)
