"""What is known of a reproduction without running a model: its jobs, and the report that one of them left."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from components.browse.known import losses
from engine import jobs
from engine.home import home
from engine.jobs import Job
from engine.jobs.reproducing import asked_of
from engine.models.catalog import embedded_models
from engine.reproduction.asked import Asked
from engine.reproduction.outcome import Reproduction


@dataclass(frozen=True)
class Known:
    """`found`: None before it was run on the models as they are. `running`: a job, or the `last` that is over.

    `absent`: models that are needed and not here.
    """

    found: Reproduction | None
    absent: tuple[str, ...]
    running: Job | None
    last: Job | None


def known(asked: Asked) -> Known:
    """What there is. Errors: those of the list of jobs."""
    own = [job for job in jobs.list_jobs() if job.kind == "reproduce" and _same(job, asked)]
    running = next((job for job in own if not job.over), None)
    over = [job for job in own if job.over]
    ended = tuple((job.id, job.done, job.finished) for job in over)
    found, absent = _held(asked.command(), ended, tuple(embedded_models()), losses(), str(home()), asked)
    return Known(found, absent, running, over[0] if over else None)


def _same(job: Job, asked: Asked) -> bool:
    given = asked_of(job.spec)
    return (given.command(), given.places) == (asked.command(), asked.places)


@st.cache_resource(max_entries=4, show_spinner="Looking for a report …")
def _held(
    command: str,
    ended: tuple[tuple[int, int, float | None], ...],
    models: tuple[str, ...],
    losses: int,
    home: str,
    _asked: Asked,
) -> tuple[Reproduction | None, tuple[str, ...]]:
    # Here and not above: it imports what reads data sets.
    from engine.reproduction.asked import experiments
    from engine.reproduction.run import kept

    players = (player for experiment in experiments(_asked) for player in experiment.players)
    return kept(_asked), tuple(dict.fromkeys(player.name for player in players if not player.there))
