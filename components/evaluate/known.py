"""What is known of an evaluation without running a model: its jobs, and what they left in the cache."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.inputs.datasets import file_stamp
from engine import jobs
from engine.errors import ExegesisError
from engine.home import home
from engine.jobs import Job

if TYPE_CHECKING:
    from engine.data.sources import ExampleSource
    from engine.evaluation.leaderboard import Standing
    from engine.evaluation.plan import Plan
    from engine.evaluation.result import Evaluation
    from engine.evaluation.sample import Sample

    Evaluated = tuple[Job, Plan]
    """A job that evaluates, and what it was asked."""

Ended = tuple[tuple[int, float | None], ...]
"""Number of each job that is over, and when it ended."""
MOST_HELD = 12
MOST_RECENT = 30


@dataclass(frozen=True)
class Held:
    """What the cache holds of a plan: `found`, None unless all of it is there. `size`: how many examples it takes.

    `failed_on`: the models on which some of the examples failed.
    """

    found: Evaluation | None
    source: ExampleSource
    size: int
    failed_on: tuple[str, ...] = ()

    @cached_property
    def standings(self) -> list[Standing]:
        """The leaderboard's: of metrics that give each method one number. Differences are resampled once."""
        from engine.evaluation.leaderboard import leaderboard
        from engine.evaluation.views.points import metrics_of

        if self.found is None:
            return []
        wanted = set(metrics_of(self.found))
        rows = tuple(row for row in self.found.rows if row.of.metric in wanted)
        skips = tuple(skip for skip in self.found.skips if skip.of.metric in wanted)
        return leaderboard(dataclasses.replace(self.found, rows=rows, skips=skips))


@dataclass(frozen=True)
class Known:
    """What there is of a plan, and the jobs about it: `running`, or the `last` one that is over.

    `before`: the jobs of all plans, from which may be told how long one takes.
    """

    held: Held
    running: Job | None = None
    last: Job | None = None
    before: Sequence[Evaluated] = ()


def known(plan: Plan) -> Known:
    """What there is of this plan. Errors: those of reading the data set and the models' files."""
    before = evaluations()
    own = [job for job, of in before if of == plan]
    running = next((job for job in own if not job.over), None)
    over = [job for job in own if job.over]
    ended = tuple((job.id, job.finished) for job in over)
    return Known(held(plan, ended), running, over[0] if over else None, before)


def held(plan: Plan, ended: Ended = ()) -> Held:
    """What the cache holds of it, whoever made that. `ended`: when jobs about it did; it is read again after each.

    Errors: those of reading the data set and the models' files.
    """
    from engine.evaluation.keeping import entries

    written = json.dumps(plan.as_plain(), sort_keys=True)
    full, sample = _sample(written, file_stamp(plan.dataset), str(home()), plan)
    keys = entries(full, sample)
    return _held(keys, ended, str(home()), full, sample) if keys else Held(None, sample.source, len(sample.indices))


def evaluations() -> list[Evaluated]:
    """The jobs that evaluate, the newest first, each with what it was asked."""
    from engine.jobs.evaluating import plan_of

    found: list[Evaluated] = []
    for job in jobs.list_jobs():
        if job.kind == "evaluate":
            try:
                found.append((job, plan_of(job.spec)))
            except ExegesisError:  # made by another version
                continue
    return found[:MOST_RECENT]


def spec_of(plan: Plan) -> dict[str, Any]:
    """What an evaluate job needs: plain JSON."""
    plain: dict[str, Any] = json.loads(json.dumps(plan.as_plain()))
    return plain


def trouble_of(plan: Plan) -> str:
    """Why the plan cannot be carried out; empty where it can. The hub is asked for what is not on this machine."""
    from components.errors import describe_error
    from engine.evaluation.plan import check

    try:
        check(plan)
    except Exception as error:
        return describe_error(error)
    return ""


@st.cache_resource(max_entries=MOST_HELD, show_spinner="Reading the data set …")
def _sample(written: str, data: tuple[int, ...], home: str, _plan: Plan) -> tuple[Plan, Sample]:
    """The plan with its metrics, and the examples that it takes."""
    # Here and not above: it imports what reads data sets.
    from engine.evaluation.sample import sample_of, with_metrics

    sample = sample_of(_plan)
    return with_metrics(_plan, sample), sample


@st.cache_resource(max_entries=MOST_HELD, show_spinner="Reading the results …")
def _held(keys: tuple[str, ...], ended: Ended, home: str, _plan: Plan, _sample: Sample) -> Held:
    from engine.evaluation.keeping import failed_on, finished

    found, failed = finished(_plan, _sample), failed_on(_plan, keys, _sample)
    return Held(found, _sample.source, len(_sample.indices), failed)
