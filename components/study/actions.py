"""What an organiser does to a study, as callbacks: what failed, or was done, is said on the next run."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from components.trouble import say_error, say_note, sentence
from engine.study import studies

STUDY, NEW = "study", "new"
"""What the address says: which study, or what a new one begins with."""
FAILED, DONE = "study_failed", "study_done"


def go_to(study: int) -> None:
    """Shows one study."""
    st.query_params.from_dict({STUDY: str(study)})


def go_to_new(start: str) -> None:
    """Shows the form of a new study."""
    st.query_params.from_dict({NEW: start})


def go_to_all() -> None:
    """Shows the list."""
    st.query_params.clear()


def duplicate(study: int) -> None:
    """Makes a draft of the same design and shows it."""
    _try(lambda: go_to(studies.duplicate(study).id), "This is the copy: a draft with a link of its own.")


def close(study: int) -> None:
    _try(lambda: studies.close(study), "The study is closed: it takes no more votes.")


def archive(study: int) -> None:
    _try(lambda: studies.archive(study), "The study is archived: its votes and results stay.")


def delete(study: int, title: str) -> None:
    """Takes it away with all that belongs to it, and shows the list."""
    _try(lambda: studies.delete(study), f"Study {study}, {title}, is deleted.")
    if FAILED not in st.session_state:
        go_to_all()


def say_outcome() -> None:
    """Draws what the last action came to, once."""
    if failed := st.session_state.pop(FAILED, ""):
        say_error(failed)
    if done := st.session_state.pop(DONE, ""):
        say_note(done)


def note(done: str) -> None:
    """To be said on the next run."""
    st.session_state[DONE] = done


def _try(action: Callable[[], object], done: str) -> None:
    try:
        action()
    except Exception as error:
        st.session_state[FAILED] = sentence(error)
    else:
        note(done)
