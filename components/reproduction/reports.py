"""What is there of a topic without running a model: the report of this computer, the one that ships, the jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import streamlit as st

from components.browse.results import count_losses
from engine import jobs
from engine.home import home
from engine.jobs import Job
from engine.jobs.reproducing import query_of
from engine.models.catalog import embedded_image_models, embedded_models
from engine.reproduction.query import ReproductionQuery
from engine.reproduction.report import Reproduction
from engine.reproduction.run import cached_report
from engine.reproduction.shipped import ShippedReport, changed_models, shipped_for
from engine.reproduction.smat import SmatQuery
from engine.reproduction.thesis import ThesisQuery
from engine.reproduction.words import time_text

EndedJobs = tuple[tuple[int, int, float | None], ...]
"""Of each job that is over: its number, how much it had done, and when it ended."""


class LocalReport(NamedTuple):
    """`report`: None before it was run here with the models as they are. `changed`: models that the shipped report was
    made with and that are others now. `absent`: what is needed and not here, as a sentence. `time`: of a run."""

    report: Reproduction | None
    changed: tuple[str, ...] = ()
    absent: str = ""
    time: str = ""


@dataclass(frozen=True)
class TopicStatus:
    """`shipped`: None where what comes with the project answers something else. `running`: a job, or the `last` that is
    over."""

    local: LocalReport
    shipped: ShippedReport | None
    running: Job | None
    last: Job | None

    @property
    def report(self) -> Reproduction | None:
        """The report of this computer, else the one that comes with the project."""
        return self.local.report or (self.shipped.report if self.shipped else None)

    @property
    def provenance(self) -> str:
        """When and with what the shipped report was made, where it is the one that is shown."""
        return self.shipped.provenance if self.shipped and not self.local.report else ""


def topic_status(query: ReproductionQuery) -> TopicStatus:
    """What there is. Errors: those of the list of jobs."""
    own = [job for job in jobs.list_jobs() if job.kind == query.job and _is_same(job, query)]
    over = [job for job in own if job.over]
    running = next((job for job in own if not job.over), None)
    ended = tuple((job.id, job.done, job.finished) for job in over)
    models = (*embedded_models(), *embedded_image_models())
    local = _local_report(query.command(), ended, models, count_losses(), str(home()), query)
    return TopicStatus(local, shipped_for(query), running, over[0] if over else None)


def _is_same(job: Job, query: ReproductionQuery) -> bool:
    other = query_of(job.kind, job.spec)
    return bool((other.command(), other.places) == (query.command(), query.places))


@st.cache_resource(max_entries=8, show_spinner="Looking for a report …")
def _local_report(
    command: str, ended: EndedJobs, models: tuple[str, ...], losses: int, home: str, _query: ReproductionQuery
) -> LocalReport:
    report = cached_report(_query)
    if isinstance(_query, SmatQuery):
        return LocalReport(report, absent=" ".join(why for why in _query.tasks.values() if isinstance(why, str)))
    assert isinstance(_query, ThesisQuery)
    roles = [role for experiment in _query.experiments() for role in experiment.roles]
    absent = dict.fromkeys(role.name for role in roles if not role.available)
    shipped = shipped_for(_query)
    changed = changed_models(shipped.report, {role.name: role.revision for role in roles}) if shipped else ()
    return LocalReport(report, changed, f"{', '.join(absent)}." if absent else "", time_text(_query))
