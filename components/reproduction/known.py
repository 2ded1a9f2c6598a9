"""What is known of a reproduction without running a model: its jobs, and the report that one of them left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import streamlit as st

from components.browse.results import count_losses
from components.reproduction.reports import Ended, Reports, tried
from engine.home import home
from engine.jobs import Job
from engine.jobs.reproducing import asked_of
from engine.models.catalog import embedded_models
from engine.reproduction.asked import Asked
from engine.reproduction.outcome import Reproduction
from engine.reproduction.shipped import changed, shipped_for


@dataclass(frozen=True)
class Known(Reports[Reproduction]):
    """`changed`: models that the shipped report was made with and that are others now. `absent`: models that are needed
    and not here. `time`: how long a run takes."""

    changed: tuple[str, ...]
    absent: tuple[str, ...]
    time: str


def known(asked: Asked) -> Known:
    """What there is. Errors: those of the list of jobs."""
    running, last, ended = tried("reproduce", lambda job: _same(job, asked))
    here = _held(asked.command(), ended, tuple(embedded_models()), count_losses(), str(home()), asked)
    return Known(here.found, shipped_for(asked), running, last, here.changed, here.absent, here.time)


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
    ended: Ended,
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
