"""What a join link leads to when there is nothing to answer: no study, one that is not open, or the end."""

from __future__ import annotations

import streamlit as st

from components.annotate.ballot import draw_leave, draw_way_back
from components.annotate.session import Seat
from components.frame import ANNOTATE, heading
from components.trouble import literal, say_error
from engine.study.studies import DRAFT, StudyRecord

NO_LINK = "To take part you need the link of a study. Ask who runs it to send you one."
UNKNOWN = "This link leads to no study. Ask who sent it to you for another."
NOT_YET = "This study has not opened yet. Come back later, by the same link."
OVER = "This study is over. What you had confirmed is kept. Thank you."


def draw_no_study(asked: str) -> None:
    """The page without a link, or with one that leads nowhere."""
    heading(ANNOTATE)
    if asked:
        say_error(UNKNOWN)
    else:
        st.info(NO_LINK)


def draw_shut(study: StudyRecord) -> None:
    """A study that takes no votes."""
    st.title(literal(study.design.title), anchor=False)
    st.info(NOT_YET if study.state == DRAFT else OVER)


def draw_thanks(seat: Seat) -> None:
    """The end: all is saved, and under which name."""
    st.title("Thank you", anchor=False)
    st.text(
        "There is nothing left to answer. All of your answers are saved, and you may close this page.\n"
        f"They are kept under the name {seat.pseudonym}: tell it to the organiser if you want them deleted."
    )
    draw_way_back(seat, "thanks")
    draw_leave()
