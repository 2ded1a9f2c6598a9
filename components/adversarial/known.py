"""What is known of attacks on many examples without running a model: their jobs, and what they left in the cache."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.inputs.datasets import file_stamp
from components.trouble import sentence
from engine import jobs
from engine.errors import ExegesisError
from engine.home import home
from engine.jobs import Job

if TYPE_CHECKING:
    from engine.attacks.findings import Findings
    from engine.attacks.plan import AttackPlan
    from engine.evaluation.sample import Sample

MOST_HELD = 12


@dataclass(frozen=True)
class Known:
    """What was `found` on a plan, None before the end, and the jobs about it: `running`, or the `last` that is over."""

    sample: Sample
    found: Findings | None
    running: Job | None = None
    last: Job | None = None

    @property
    def size(self) -> int:
        """How many examples are drawn."""
        return len(self.sample.indices)

    @property
    def failed(self) -> bool:
        """Whether something failed, so that it can be tried again."""
        from engine.attacks.keeping import complete

        return self.found is not None and not complete(self.found)


def known(plan: AttackPlan) -> Known:
    """What there is of this plan. Errors: those of reading the data set and the models' files."""
    from engine.attacks.keeping import key_of
    from engine.store import result_store

    own = [job for job in jobs.list_jobs() if job.kind == "attack" and _is_of(job, plan)]
    over = [job for job in own if job.over]
    sample = _sample(_written(plan), file_stamp(plan.dataset), str(home()), plan)
    there = result_store().contains(key_of(plan, sample))
    ended = tuple((job.id, job.finished) for job in over)
    found = _found(_written(plan), file_stamp(plan.dataset), ended, str(home()), plan, sample) if there else None
    return Known(sample, found, next((job for job in own if not job.over), None), over[0] if over else None)


def spec_of(plan: AttackPlan) -> dict[str, Any]:
    """What an attack job needs: plain JSON."""
    plain: dict[str, Any] = json.loads(_written(plan))
    return plain


def trouble_of(plan: AttackPlan) -> str:
    """Why the plan cannot be carried out; empty where it can. The hub is asked for what is not on this machine."""
    from engine.attacks.plan import check

    try:
        check(plan)
    except Exception as error:
        return sentence(error)
    return ""


def _is_of(job: Job, plan: AttackPlan) -> bool:
    from engine.jobs.attacking import plan_of

    try:
        return plan_of(job.spec) == plan
    except ExegesisError:  # made by another version
        return False


def _written(plan: AttackPlan) -> str:
    return json.dumps(plan.as_plain(), sort_keys=True)


@st.cache_resource(max_entries=MOST_HELD, show_spinner="Reading the data set …")
def _sample(written: str, data: tuple[int, ...], home: str, _plan: AttackPlan) -> Sample:
    # Here and not above: it imports what reads data sets.
    from engine.evaluation.sample import sample_of

    return sample_of(_plan.sampled)


@st.cache_resource(max_entries=MOST_HELD, show_spinner="Reading the results …")
def _found(
    written: str, data: tuple[int, ...], ended: tuple[tuple[int, float | None], ...], home: str, _plan: AttackPlan,
    _sample: Sample,
) -> Findings | None:  # fmt: skip
    from engine.attacks.keeping import finished

    return finished(_plan, _sample)
