"""What is known of a scaffold without running a model: its jobs, and the students that are finished or under way."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.inputs.datasets import file_stamp
from components.trouble import sentence
from engine import jobs
from engine.errors import ExegesisError
from engine.home import home
from engine.jobs import Failure, Job

if TYPE_CHECKING:
    from engine.scaffold.keeping import Kept
    from engine.scaffold.plan import Plan, Pupil
    from engine.scaffold.result import Pass, Scaffold

Taught = tuple[Job, "Plan"]
"""A job that teaches, and what it was asked."""
KIND = "scaffold"
MOST_HELD = 8
MOST_RECENT = 30
STATE = "state.json"
"""As `engine.training.checkpoint` calls it, which imports what runs models."""


@dataclass(frozen=True)
class Keys:
    """The key of each student of a plan. `kept`: where they are found; `count`: examples of the data set."""

    kept: Kept
    keys: Mapping[Pupil, str]
    count: int


@dataclass(frozen=True)
class Known:
    """What there is of a plan, and the jobs about it: `running`, or the `last` one that is over.

    `failed`: what the last job could not do. `before`: the jobs of all plans.
    """

    found: Scaffold
    keys: Keys
    running: Job | None = None
    last: Job | None = None
    failed: Sequence[Failure] = ()
    before: Sequence[Taught] = field(default=())

    @property
    def missing(self) -> tuple[Pupil, ...]:
        """Students that are not finished."""
        there = {one.pupil for one in self.found.outcomes}
        return tuple(pupil for pupil in self.found.plan.pupils if pupil not in there)


def known(plan: Plan) -> Known:
    """What there is of this plan. Errors: those of the plan, of reading the data set and the models' files."""
    before = scaffolds()
    own = [job for job, of in before if of == plan]
    running = next((job for job in own if not job.over), None)
    last = next((job for job in own if job.over), None)
    keys = keys_of(plan)
    failed = tuple(jobs.failures(last.id)) if last is not None and last.failed else ()
    return Known(
        _finished(_written(plan), finished_of(keys), str(home()), plan, keys), keys, running, last, failed, before
    )


def keys_of(plan: Plan) -> Keys:
    """Where each student of the plan is kept. Errors: as `known`."""
    from engine.models import catalog
    from engine.scaffold.keeping import base_revision
    from engine.scaffold.plan import base_named

    base = base_named(plan)
    files = (catalog.revision(plan.teacher), base, base_revision(base))
    return _keys(_written(plan), file_stamp(plan.dataset), files, str(home()), plan)


def finished_of(keys: Keys) -> tuple[bool, ...]:
    """Of each student in the order of the plan, whether it is finished."""
    from engine.store import result_store

    return tuple(result_store().contains(key) for key in keys.keys.values())


def learning(keys: Keys) -> dict[Pupil, tuple[Pass, ...]]:
    """The passes so far of students that have begun and are not finished."""
    from engine.scaffold.run import under_way

    kept = keys.kept
    begun = [pupil for pupil in keys.keys if (home() / KIND / keys.keys[pupil] / STATE).is_file()]
    passes = {pupil: under_way(kept.plan, pupil, kept) for pupil in begun}
    return {pupil: own for pupil, own in passes.items() if own}


def scaffolds() -> list[Taught]:
    """The jobs that teach, the newest first, each with what it was asked."""
    from engine.scaffold.plan import plan_of

    found: list[Taught] = []
    for job in jobs.list_jobs():
        if job.kind == KIND:
            try:
                found.append((job, plan_of(job.spec)))
            except ExegesisError:  # made by another version
                continue
    return found[:MOST_RECENT]


def spec_of(plan: Plan) -> dict[str, Any]:
    """What a job that teaches needs: plain JSON."""
    plain: dict[str, Any] = json.loads(_written(plan))
    return plain


def trouble_of(plan: Plan) -> str:
    """Why the plan cannot be carried out; empty where it can. The hub is asked for what is not on this machine."""
    from engine.scaffold.plan import base_named, check

    for look in (check, base_named):
        try:
            look(plan)
        except Exception as error:
            return sentence(error)
    return ""


def short_of(seen: Known) -> str:
    """Why the data set is too small for the plan; empty where it is not."""
    from engine.scaffold.splits import splits_of

    try:
        splits_of(seen.keys.count, seen.found.plan)
    except ExegesisError as error:
        return sentence(error)
    return ""


def _written(plan: Plan) -> str:
    return json.dumps(plan.as_plain(), sort_keys=True)


@st.cache_resource(max_entries=MOST_HELD, show_spinner="Reading the data set …")
def _keys(written: str, data: tuple[int, ...], files: tuple[str, ...], home: str, _plan: Plan) -> Keys:
    # Here and not above: it imports what reads data sets.
    from engine.scaffold.keeping import Kept

    kept = Kept(_plan)
    return Keys(kept, {pupil: kept.key(pupil) for pupil in _plan.pupils}, kept.source.count)


@st.cache_resource(max_entries=MOST_HELD, show_spinner="Reading the results …")
def _finished(written: str, there: tuple[bool, ...], home: str, _plan: Plan, _keys: Keys) -> Scaffold:
    from engine.scaffold.run import finished

    return finished(_plan, _keys.kept)
