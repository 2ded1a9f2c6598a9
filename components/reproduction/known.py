"""What is known of a reproduction without running a model: its jobs, and the report that one of them left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import streamlit as st

from components.browse.known import losses
from engine import jobs
from engine.home import home
from engine.jobs import Job
from engine.jobs.reproducing import asked_of
from engine.models.catalog import embedded_models
from engine.reproduction.asked import Asked
from engine.reproduction.outcome import Reproduction
from engine.reproduction.shipped import Shipped, changed, shipped_for


@dataclass(frozen=True)
class Known:
    """`found`: None before it was run on the models as they are. `shipped`: what comes with the project, None where it
    answers something else. `changed`: models that it was made with and that are others now. `running`: a job, or the
    `last` that is over. `absent`: models that are needed and not here. `time`: how long a run takes.
    """

    found: Reproduction | None
    shipped: Shipped | None
    changed: tuple[str, ...]
    absent: tuple[str, ...]
    time: str
    running: Job | None
    last: Job | None

    @property
    def shown(self) -> Reproduction | None:
        """What was found here, else what comes with the project."""
        return self.found or (self.shipped.report if self.shipped else None)

    @property
    def made(self) -> str:
        """When and with what the shipped report was made, where it is the one that is shown."""
        return self.shipped.told if self.shipped and not self.found else ""


def known(asked: Asked) -> Known:
    """What there is. Errors: those of the list of jobs."""
    own = [job for job in jobs.list_jobs() if job.kind == "reproduce" and _same(job, asked)]
    running = next((job for job in own if not job.over), None)
    over = [job for job in own if job.over]
    ended = tuple((job.id, job.done, job.finished) for job in over)
    here = _held(asked.command(), ended, tuple(embedded_models()), losses(), str(home()), asked)
    last = over[0] if over else None
    return Known(here.found, shipped_for(asked), here.changed, here.absent, here.time, running, last)


def _same(job: Job, asked: Asked) -> bool:
    given = asked_of(job.spec)
    return (given.command(), given.places) == (asked.command(), asked.places)


class _Here(NamedTuple):
    found: Reproduction | None
    changed: tuple[str, ...]
    absent: tuple[str, ...]
    time: str


@st.cache_resource(max_entries=8, show_spinner="Looking for a report …")
def _held(
    command: str,
    ended: tuple[tuple[int, int, float | None], ...],
    models: tuple[str, ...],
    losses: int,
    home: str,
    _asked: Asked,
) -> _Here:
    # Here and not above: it imports what reads data sets.
    from engine.reproduction.asked import experiments
    from engine.reproduction.run import kept
    from engine.reproduction.timing import time_told

    players = [player for experiment in experiments(_asked) for player in experiment.players]
    absent = tuple(dict.fromkeys(player.name for player in players if not player.there))
    ours = shipped_for(_asked)
    others = changed(ours.report, {player.name: player.revision for player in players}) if ours else ()
    return _Here(kept(_asked), others, absent, time_told(_asked))
