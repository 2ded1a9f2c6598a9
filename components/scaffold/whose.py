"""Whose explainer the sections show: that of the median student of a train size."""

from __future__ import annotations

import streamlit as st

from components.numbers import count, fixed
from components.scaffold.section_words import NO_STUDENT, WHOSE
from components.trouble import say_note
from engine.scaffold.result import Outcome, Scaffold

DECIMALS = 3


def median_of(found: Scaffold, train_size: int) -> Outcome | None:
    """The student whose explainer is shown, after saying which; None after saying that there is none."""
    outcome = found.median_outcome(train_size)
    if outcome is None or outcome.phi is None:
        say_note(NO_STUDENT.format(count(train_size, "example")))
        return None
    st.caption(whose_words(outcome))
    return outcome


def whose_words(outcome: Outcome) -> str:
    """Which student, in one sentence."""
    scored = "not defined" if outcome.simulability is None else fixed(outcome.simulability, DECIMALS, False)
    return WHOSE.format(count(outcome.pupil.train_size, "example"), outcome.pupil.seed, scored)
