"""The work of a scaffold: the button with what it costs, the job's progress, and what became of it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from components.experiment.results import skip_reasons_html
from components.job_panel import FINDS, JobPanel
from components.library_html import duration
from components.numbers import count
from components.scaffold.known import KIND, Known, short_of, spec_of
from components.scaffold.live import live_area
from components.scaffold.words import EMPTY, PARTLY
from components.trouble import say_error, say_note

if TYPE_CHECKING:
    from engine.jobs import Failure
    from engine.scaffold.plan import Plan, Pupil
    from engine.scaffold.result import Scaffold

AREA = JobPanel("scaffold")
AGAIN = "Try the failed ones again"
TIMED = "That takes about {}, by what finished students of this plan took."
STOPPED = (
    "A student that is stopped goes on from its last pass, and what is finished is found, not taught again."
)  # fmt: skip


def work_area(seen: Known) -> None:
    """What is still to be done as a button, or the job that does it; the page is drawn again when that is over."""
    AREA.trouble()
    if seen.running is not None:
        AREA.progress(seen.running.id)
        live_area(seen)
        return
    if not seen.missing:
        return
    if trouble := short_of(seen):
        say_error(trouble)
        return
    with st.container(border=True, key="scaffold_to_do"):
        st.markdown(PARTLY if seen.found.outcomes else EMPTY)
        st.caption(cost_words(seen.found, seen.missing))
        if seen.failed:
            _failed(seen)
        else:
            AREA.start("Teach", KIND, spec_of(seen.found.plan), seen.last)


def cost_words(found: Scaffold, missing: tuple[Pupil, ...]) -> str:
    """What is asked for, how much of it is there, and how long the rest may take."""
    plan = found.plan
    asked = (
        f"{count(len(plan.pupils), 'student')}: {count(len(plan.settings), 'setting')}, "
        f"{count(len(plan.train_sizes), 'train size')}, {count(len(plan.seeds), 'seed')}; "
        f"{len(missing):,} to teach."
    )
    pace = seconds_of(found, missing)
    return " ".join([asked, *([] if pace is None else [TIMED.format(duration(pace))]), STOPPED])


def seconds_of(found: Scaffold, missing: tuple[Pupil, ...]) -> float | None:
    """About how long teaching takes, in seconds; None where no student of the plan tells.

    Each is taken to need what the finished ones of its setting needed for an example, or those of all settings.
    """
    paces: dict[str, list[float]] = {}
    for one in found.outcomes:
        paces.setdefault(one.pupil.setting, []).append(one.seconds / one.pupil.train_size)
    if not paces:
        return None
    usual = float(np.median([pace for own in paces.values() for pace in own]))
    own = {setting: float(np.median(values)) for setting, values in paces.items()}
    return sum(own.get(pupil.setting, usual) * pupil.train_size for pupil in missing)


def reasons(failures: tuple[Failure, ...]) -> list[tuple[str, str, str]]:
    """Each reason once: the reason, how many students, and which."""
    whose: dict[str, list[str]] = {}
    for one in failures:
        whose.setdefault(one.error, []).append(one.label)
    numbers = Counter(one.error for one in failures)
    return [(why, count(numbers[why], "student"), "; ".join(labels)) for why, labels in whose.items()]


def _failed(seen: Known) -> None:
    plan: Plan = seen.found.plan
    say_note(f"{count(len(seen.failed), 'student')} could not be taught.")
    st.html(skip_reasons_html(reasons(tuple(seen.failed))))
    if not AREA.go_on(seen.last, AGAIN):
        AREA.offer(AGAIN, "again", KIND, spec_of(plan), help=FINDS)
