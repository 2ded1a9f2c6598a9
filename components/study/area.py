"""What the Study page shows: the list, a new study's form, or one study, as the address says."""

from __future__ import annotations

import streamlit as st

from components.browser_time import zone
from components.link_choice import whole
from components.study.actions import NEW, STUDY, go_to_all, say_outcome
from components.study.draft import new_study
from components.study.list import study_list
from components.study.one import one_study
from components.trouble import say_error, sentence
from engine.errors import ExegesisError, UsageError
from engine.study.database import study_database
from engine.study.studies import find

MOST_STUDY = 10**9


def study_area() -> None:
    """Errors of the database are said in its place."""
    try:
        with st.spinner("Opening the studies …"):
            study_database()
        say_outcome()
        _asked_for()
    except ExegesisError as error:
        say_error(sentence(error))


def _asked_for() -> None:
    asked, start = st.query_params.get(STUDY), st.query_params.get(NEW)
    if not asked and not start:
        study_list(zone())
        return
    st.button("All studies", icon=":material/arrow_back:", type="tertiary", key="study.all", on_click=go_to_all)
    if asked:
        one_study(find(_number(asked)), zone())
    elif start:
        new_study(start, zone())


def _number(asked: str) -> int:
    found = whole(asked, MOST_STUDY)
    if found is None:
        raise UsageError(f"study: must be the number of a study, got {asked[:40]!r}. Go to all studies.")
    return found
