"""What a running job has come to: the student at hand, pass by pass, drawn anew every two seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from components.numbers import count, fixed
from components.scaffold.known import Known, finished_of, learning
from components.scaffold.words import SETTING_TITLES
from components.theme import shown_theme

if TYPE_CHECKING:
    from engine.scaffold.plan import Pupil
    from engine.scaffold.result import Pass

REFRESH_SECONDS = 2.0
DECIMALS = 3


def live_area(seen: Known) -> None:
    """Follows the student that is being taught; when one more is finished, the whole page is drawn again."""
    st.fragment(_live, run_every=REFRESH_SECONDS)(seen)


def now_words(pupil: Pupil, passes: tuple[Pass, ...]) -> str:
    """How far a student is."""
    last = passes[-1]
    scored = "not defined" if last.validation is None else fixed(last.validation, DECIMALS, False)
    return (
        f"Being taught: {SETTING_TITLES[pupil.setting]}, {count(pupil.train_size, 'example')}, seed {pupil.seed}; "
        f"{count(len(passes), 'pass').replace('passs', 'passes')} done, simulability on validation {scored}."
    )


def _live(seen: Known) -> None:
    from components.scaffold.curves import curves_chart, lines_of

    if finished_of(seen.keys) != finished_of_page(seen):
        st.rerun()  # the whole page, which has one more student now
    begun = learning(seen.keys)
    if not begun:
        st.caption("The first pass of the next student is not over yet; its curve begins then.")
        return
    pupil, passes = list(begun.items())[-1]
    st.caption(now_words(pupil, passes))
    lines = lines_of(seen.found, pupil.setting, pupil.train_size, "validation", begun)
    told = f"Learning curves of {SETTING_TITLES[pupil.setting]}, {pupil.train_size} examples, so far"
    st.altair_chart(curves_chart(lines, "validation", seen.found.metric, shown_theme()), key="scaffold_live", alt=told)


def finished_of_page(seen: Known) -> tuple[bool, ...]:
    """Which students were finished when the page was drawn."""
    missing = set(seen.missing)
    return tuple(pupil not in missing for pupil in seen.found.plan.pupils)
