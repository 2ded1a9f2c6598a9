"""What is known of a randomization without running a model: its jobs, and what they left in the cache."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.picture.open_pictures import stamp
from engine import jobs
from engine.errors import ExegesisError
from engine.home import home
from engine.jobs import Job

if TYPE_CHECKING:
    from engine.evaluation.sample import Sample
    from engine.randomization.plan import RandomizationPlan
    from engine.randomization.result import ModelRandomization
    from engine.randomization.stage_maps import StageMaps

Randomized = tuple[Job, "RandomizationPlan"]
"""A job that randomizes, and what it was asked."""
Ended = tuple[tuple[int, float | None], ...]
"""Number of each job that is over, and when it ended."""
MOST_HELD = 12
MOST_SHOWN = 24
MOST_RECENT = 30


@dataclass(frozen=True)
class Held:
    """What the cache holds of a plan: what was `found` on those of its models that are finished."""

    plan: RandomizationPlan
    sample: Sample
    found: tuple[ModelRandomization, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """Models of which there is nothing yet."""
        there = {one.model for one in self.found}
        return tuple(model for model in self.plan.models if model not in there)

    @property
    def lacking(self) -> tuple[str, ...]:
        """Models on which some maps failed, so that they can be tried again."""
        return tuple(one.model for one in self.found if not one.complete)


@dataclass(frozen=True)
class Known:
    """What there is of a plan, and the jobs about it: `running`, or the `last` one that is over.

    `before`: the jobs of all plans.
    """

    held: Held
    running: Job | None = None
    last: Job | None = None
    before: Sequence[Randomized] = ()


def known(plan: RandomizationPlan) -> Known:
    """What there is of this plan. Errors: those of reading the data set and the models' files."""
    before = randomizations()
    own = [job for job, of in before if of == plan]
    running = next((job for job in own if not job.over), None)
    last = next((job for job in own if job.over), None)
    return Known(held(plan, ended_of(plan, before)), running, last, before)


def held(plan: RandomizationPlan, ended: Ended = ()) -> Held:
    """What the cache holds of it, whoever made that. `ended`: when jobs about it did; it is read again after each."""
    from engine.experiments.run import key_of
    from engine.store import result_store

    sample = _sample(_written(plan), stamp(plan.dataset), str(home()), plan)
    there = tuple(result_store().contains(key_of(plan, model, sample)) for model in plan.models)
    return _held(_written(plan), stamp(plan.dataset), there, ended, str(home()), plan, sample)


def shown_of(held: Held, model: str, index: int, seed: int, ended: Ended) -> list[StageMaps]:
    """One example's maps at all stages, as far as they are in the cache. No model is loaded."""
    return _shown(_written(held.plan), model, index, seed, ended, str(home()), held)


def randomizations() -> list[Randomized]:
    """The jobs that randomize, the newest first, each with what it was asked."""
    from engine.randomization.plan import RANDOMIZE

    found: list[Randomized] = []
    for job in jobs.list_jobs():
        if job.kind == "randomize":
            try:
                found.append((job, RANDOMIZE.plan_of(job.spec)))
            except ExegesisError:  # made by another version
                continue
    return found[:MOST_RECENT]


def spec_of(plan: RandomizationPlan) -> dict[str, Any]:
    """What a randomize job needs: plain JSON."""
    plain: dict[str, Any] = json.loads(_written(plan))
    return plain


def trouble_of(plan: RandomizationPlan) -> str:
    """Why the plan cannot be carried out; empty where it can. The hub is asked for what is not on this machine."""
    from components.trouble import sentence
    from engine.experiments.run import check

    try:
        check(plan)
    except Exception as error:
        return sentence(error)
    return ""


def ended_of(plan: RandomizationPlan, before: Sequence[Randomized]) -> Ended:
    """When each job about this plan ended: what it has left is read again then."""
    return tuple((job.id, job.finished) for job, of in before if of == plan and job.over)


def _written(plan: RandomizationPlan) -> str:
    return json.dumps(plan.as_plain(), sort_keys=True)


@st.cache_resource(max_entries=MOST_HELD, show_spinner="Reading the data set …")
def _sample(written: str, data: tuple[int, ...], home: str, _plan: RandomizationPlan) -> Sample:
    # Here and not above: it imports what reads data sets.
    from engine.experiments.run import sample_of

    return sample_of(_plan)


@st.cache_resource(max_entries=MOST_HELD, show_spinner="Reading the results …")
def _held(
    written: str,
    data: tuple[int, ...],
    there: tuple[bool, ...],
    ended: Ended,
    home: str,
    _plan: RandomizationPlan,
    _sample: Sample,
) -> Held:
    from engine.experiments.run import find

    each = (find(_plan, model, _sample) for model in _plan.models)
    return Held(_plan, _sample, tuple(one for one in each if one is not None))


@st.cache_resource(max_entries=MOST_SHOWN, show_spinner="Reading the maps …")
def _shown(written: str, model: str, index: int, seed: int, ended: Ended, home: str, _held: Held) -> list[StageMaps]:
    from engine.randomization.stage_maps import stage_maps

    return stage_maps(_held.plan, model, _held.sample, index, seed)
