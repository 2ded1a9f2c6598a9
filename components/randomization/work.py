"""The work of a randomization: the button with what it costs, the job's progress, and what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from components.evaluate.pace import seconds_of, timed_here
from components.job_panel import FINDS, JobPanel
from components.library_html import duration
from components.numbers import count
from components.randomization.known import Known, Randomized, spec_of
from components.randomization.words import EMPTY, FAILED
from components.trouble import say_note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.randomization.plan import RandomizationPlan

AREA = JobPanel("randomization")
AGAIN = "Try the failed ones again"
TIMED = "That takes about {}, by what such work took before on this device."
FOUND = "What is in the cache already is not computed again."


def work_area(plan: RandomizationPlan, seen: Known) -> None:
    """What is still to be done as a button, or the job that does it; the page is drawn again when that is over."""
    AREA.trouble()
    if seen.running is not None:
        AREA.progress(seen.running.id)
    elif seen.held.missing:
        with st.container(border=True, key="randomization_to_do"):
            st.markdown(EMPTY)
            st.caption(cost_words(plan, stages_of_all(plan), len(seen.held.sample.indices), seen.before))
            AREA.start("Randomize", "randomize", spec_of(plan), seen.last)
    elif seen.held.lacking:
        with st.container(border=True, key="randomization_failed"):
            say_note(FAILED.format(", ".join(seen.held.lacking)))
            if not AREA.go_on(seen.last, AGAIN):
                AREA.offer(AGAIN, "again", "randomize", spec_of(plan), help=FINDS)


def stages_of_all(plan: RandomizationPlan) -> int:
    """How many models are explained: each as it is, and at each stage with each seed; what modes share counts once."""
    from engine.models.sizes import block_count
    from engine.randomization.stages import stages_of

    own = (len({stage.parts for stage in stages_of(plan, block_count(model))}) for model in plan.models)
    return sum(1 + stages * plan.seeds for stages in own)


def cost_words(plan: RandomizationPlan, models: int, size: int, before: Sequence[Randomized] = ()) -> str:
    """What is asked for. `models`: how many are explained, random ones counted. `before`: jobs that tell the time."""
    maps = models * size * len(plan.company)
    asked = f"{count(size, 'example')}, {count(len(plan.company), 'method')}, {count(len(plan.models), 'model')}"
    told = f"{asked}: {count(maps, 'map')} of {count(models - len(plan.models), 'random model')} and the trained."
    pace = pace_of(plan, before)
    return " ".join([told, *([] if pace is None else [TIMED.format(duration(maps / pace))]), FOUND])


def pace_of(plan: RandomizationPlan, before: Sequence[Randomized]) -> float | None:
    """Maps a second by the newest job on the same models that ended well on this device; None without one."""
    own = (
        (job, of) for job, of in before if set(of.models) == set(plan.models) and of.dtype == plan.dtype
    )  # fmt: skip
    timed = next(((job, of) for job, of in own if timed_here(job)), None)
    if timed is None:
        return None
    job, of = timed
    return stages_of_all(of) * of.examples * len(of.company) * job.computed / job.total / seconds_of(job)
