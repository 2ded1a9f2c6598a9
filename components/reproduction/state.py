"""The state of the Reproduction page, and the status of a topic: its reports and jobs.

The state consists of plain values. A link sets them, widgets hold them, and they survive a change of page. A topic has
a report of this computer, a report that ships with the project, and jobs; reading them runs no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import NamedTuple

import streamlit as st

from components.browse.results import count_losses
from components.links import Query, read_record, seed_option, write_record
from components.state import PageSession, apart
from engine import jobs
from engine.errors import unknown
from engine.home import home
from engine.jobs import Job
from engine.models.catalog import embedded_image_models, embedded_models
from engine.params import option
from engine.reproduction.claims import ReproductionQuery, declaration, thesis_claims
from engine.reproduction.papers import PAPERS
from engine.reproduction.report import FORMER_NAMES, VERDICTS, Reproduction
from engine.reproduction.run import cached_report, query_of, report_key
from engine.reproduction.shipped import ShippedReport, changed_models, shipped_for
from engine.reproduction.smat import SmatQuery
from engine.reproduction.thesis import FOLDER, ThesisQuery, split_topics
from engine.reproduction.wording import time_text
from engine.store import result_store

SCALE = "embedded"
THESIS, SMAT = PAPERS
REAL = "data"
"""Topic and scale of the thesis's claims on real data, which are shown as a paper of their own."""
SMAT_REAL = "smat-data"
"""Topic of SMaT's claims on real data."""
MOST_EXAMPLES = 1_000
FEWEST_EXAMPLES = 2
SESSION = PageSession("reproduction", apart("reproduction"), ())
OPEN = "open."
FIELDS = ("paper", "examples", "seed", "show")
key = SESSION.key


def section_name(section: str, show: Sequence[str] = ()) -> str:
    """Return the name of a section's control. Each filter by verdict has its own, so that it opens the sections."""
    return ".".join(("section", section, *show))


def claim_ids() -> tuple[str, ...]:
    """Return the ids of the claims of all papers, in the order of the papers."""
    return tuple(sections_by_claim())


def sections_by_claim() -> dict[str, str]:
    """Return the section in which each claim is listed, by its id."""
    claims = (*thesis_claims(), *thesis_claims(REAL), *declaration(SMAT).claims, *declaration(SMAT_REAL).claims)
    return {claim.id: claim.section.partition(",")[0] for claim in claims}


def _choices(name: str, requested: Sequence[str], choices: Sequence[str], errors: list[str]) -> tuple[str, ...]:
    errors += [str(unknown(name, one[:40], choices)) for one in requested if one not in choices]
    return tuple(one for one in choices if one in requested)


def _read_verdicts(given: Sequence[str], errors: list[str]) -> tuple[str, ...]:
    return _choices("show", [FORMER_NAMES.get(one, one) for one in given], VERDICTS, errors)


def _read_claims(given: Sequence[str], errors: list[str]) -> tuple[str, ...]:
    return _choices("claim", given, claim_ids(), errors)


@dataclass(frozen=True, kw_only=True)
class ReproductionState:
    """The state of the page.

    `show`: verdicts whose claims are listed; empty for all. `opened`: claims whose numbers are open. `paper`: the paper
    whose claims are shown, or its topic on real data.
    """

    examples: int = option(MISSING, low=FEWEST_EXAMPLES, high=MOST_EXAMPLES)
    seed: int = seed_option()
    show: tuple[str, ...] = option((), read=_read_verdicts)
    opened: tuple[str, ...] = option((), link="claim", read=_read_claims)
    paper: str = option(THESIS, choices=(THESIS, REAL, SMAT, SMAT_REAL))

    @property
    def queries(self) -> tuple[ReproductionQuery, ...]:
        """The queries of `exegesis reproduce` for the paper, one per topic."""
        folder = str(Path(FOLDER).resolve())
        if self.paper == REAL:
            return (ThesisQuery(REAL, topic=REAL, folder=folder),)
        if self.paper == SMAT_REAL:
            return (SmatQuery(REAL, folder=folder),)
        return (SmatQuery(),) if self.paper == SMAT else self.thesis_queries

    @property
    def thesis_queries(self) -> tuple[ThesisQuery, ...]:
        """The queries of the thesis, regardless of `paper`."""
        declared = declaration().examples[SCALE]
        return split_topics(ThesisQuery(SCALE, None if self.examples == declared else self.examples, self.seed))


def default_state() -> ReproductionState:
    """Return the initial state of the page, with the declared number of examples."""
    return ReproductionState(examples=declaration().examples[SCALE])


def read(query: Query) -> tuple[ReproductionState, list[str]]:
    """Return the state in a link, and an error message for each unknown or invalid value in it."""
    errors: list[str] = []
    return read_record(default_state(), query, errors), errors


def write(state: ReproductionState) -> Query:
    """Return the link that reopens the state, with the values that differ from their defaults."""
    return write_record(state, default_state())


def load() -> tuple[ReproductionState, list[str]]:
    """Fill the widgets that have no value yet. Return the state of the last link and its errors."""
    link, fresh = SESSION.follow()
    state, errors = read(link)
    SESSION.fill({"paper": state.paper, "examples": state.examples, "seed": state.seed, "show": list(state.show)})
    SESSION.fill({f"{OPEN}{id}": True for id in state.opened})
    sections = sections_by_claim()
    SESSION.fill({section_name(sections[id], state.show): True for id in state.opened})
    return state, SESSION.tell(errors, fresh, lambda: write(state), state)


def from_widgets(loaded: ReproductionState) -> ReproductionState:
    """Return the state that the controls show; a control that is not drawn keeps the loaded value."""
    values = {name: getattr(loaded, name) if (one := SESSION.value(name)) is None else one for name in FIELDS}
    is_open = {id: SESSION.value(f"{OPEN}{id}") for id in claim_ids()}
    return ReproductionState(
        paper=values["paper"],
        examples=values["examples"],
        seed=values["seed"],
        show=tuple(values["show"]),
        opened=tuple(id for id, value in is_open.items() if (id in loaded.opened if value is None else value)),
    )


def save(state: ReproductionState, loaded: ReproductionState) -> None:
    """Save the state and write its link to the address if it changed."""
    SESSION.remember(state, loaded, write)


EndedJobs = tuple[tuple[int, int, float | None], ...]
"""Id, number of finished units, and end time of each job that has ended."""


class ReportStamp(NamedTuple):
    """Key under which the report of a topic is memoized: the report is read again if any field changes.

    A report that `exegesis reproduce` writes changes no field, so its existence is checked each time. `losses`: see
    `count_losses`.
    """

    command: str
    ended: EndedJobs
    models: tuple[str, ...]
    losses: int
    home: str


class LocalReport(NamedTuple):
    """The report of this computer, and the conditions for a run.

    `report`: None before a run with the current models. `changed`: models of the shipped report that have changed since
    then. `absent`: missing models or data sets, in a sentence. `time`: duration of a run, in a sentence.
    """

    report: Reproduction | None
    changed: tuple[str, ...] = ()
    absent: str = ""
    time: str = ""


@dataclass(frozen=True)
class TopicStatus:
    """The reports and jobs of a topic.

    `shipped`: None if the shipped report answers another query. `running`: the job that has not ended. `last`: the last
    job that has.
    """

    local: LocalReport
    shipped: ShippedReport | None
    running: Job | None
    last: Job | None

    @property
    def report(self) -> Reproduction | None:
        """The report of this computer if it exists, else the shipped one."""
        return self.local.report or (self.shipped.report if self.shipped else None)

    @property
    def provenance(self) -> str:
        """When and how the shipped report was made; empty if it is not the one that is shown."""
        return self.shipped.provenance if self.shipped and not self.local.report else ""


def topic_status(query: ReproductionQuery) -> TopicStatus:
    """Return the reports and jobs of a topic. Errors: those of listing the jobs."""
    own = [job for job in jobs.list_jobs() if job.kind == query.job and _is_same(job, query)]
    over = [job for job in own if job.is_over]
    running = next((job for job in own if not job.is_over), None)
    ended = tuple((job.id, job.done, job.finished) for job in over)
    models = (*embedded_models(), *embedded_image_models())
    stamp = ReportStamp(query.command(), ended, models, count_losses(), str(home()))
    found = result_store().contains(_report_key(stamp, query))
    local = _local_report(stamp, found, query)
    return TopicStatus(local, shipped_for(query), running, over[0] if over else None)


def _is_same(job: Job, query: ReproductionQuery) -> bool:
    other = query_of(job.kind, job.spec)
    return bool((other.command(), other.places) == (query.command(), query.places))


@st.cache_resource(max_entries=32, show_spinner=False)
def _report_key(stamp: ReportStamp, _query: ReproductionQuery) -> str:
    return report_key(_query)


@st.cache_resource(max_entries=32, show_spinner="Looking for a report …")
def _local_report(stamp: ReportStamp, found: bool, _query: ReproductionQuery) -> LocalReport:
    report = cached_report(_query)
    if isinstance(_query, SmatQuery):
        return LocalReport(report, absent=" ".join(why for why in _query.tasks.values() if isinstance(why, str)))
    assert isinstance(_query, ThesisQuery)
    roles = [role for experiment in _query.experiments() for role in experiment.roles]
    trained = {one.name for one in _query.fine_tunings()}
    absent = dict.fromkeys(role.name for role in roles if not role.available and role.name not in trained)
    shipped = shipped_for(_query)
    changed = changed_models(shipped.report, {role.name: role.revision for role in roles}) if shipped else ()
    changed = tuple(name for name in changed if name not in trained)
    return LocalReport(report, changed, f"{', '.join(absent)}." if absent else "", time_text(_query))
