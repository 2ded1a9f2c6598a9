"""What is known of SMaT's reproduction without running a model: its jobs, and the report that one of them left."""

from __future__ import annotations

import streamlit as st

from components.browse.results import count_losses
from components.reproduction.reports import Ended, Reports, tried
from engine.home import home
from engine.jobs.reproducing_smat import KIND, asked_of
from engine.models.catalog import embedded_image_models, embedded_models
from engine.reproduction.smat.asked import Asked
from engine.reproduction.smat.report import SmatReport
from engine.reproduction.smat.shipped import shipped_for

KnownSmat = Reports[SmatReport]


def known_smat(asked: Asked) -> KnownSmat:
    """What there is. Errors: those of the list of jobs."""
    running, last, ended = tried(KIND, lambda job: asked_of(job.spec) == asked)
    here = (*embedded_models(), *embedded_image_models())
    found = _held(asked.command(), ended, here, count_losses(), str(home()), asked)
    return KnownSmat(found, shipped_for(asked), running, last)


@st.cache_resource(max_entries=4, show_spinner="Looking for a report …")
def _held(
    command: str,
    ended: Ended,
    models: tuple[str, ...],
    losses: int,
    home: str,
    _asked: Asked,
) -> SmatReport | None:
    # Here and not above: it imports what reads data sets.
    from engine.reproduction.smat.run import kept

    return kept(_asked)
