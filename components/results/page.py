"""The page of results: which study, what state it is in, the answer, and the rest in sections."""

from __future__ import annotations

import time
from collections.abc import Sequence

import streamlit as st

from components.frame import STUDY
from components.link_choice import whole
from components.results.forward import forward_area
from components.results.live import follow, mark
from components.results.rating import rating_area
from components.results.sections import sections
from components.results.seen import seen_area
from components.results.shown import Shown
from components.results.words import taken
from components.trouble import literal, say_error, sentence
from engine.errors import ExegesisError
from engine.study.following import latest
from engine.study.studies import ARCHIVED, DRAFT, StudyRecord, all_studies

PARAMETER = "study"
WIDGET = "results.study"
MOST_NUMBER = 2**31 - 1


def results_page() -> None:
    """The study that the link names, or the newest that has opened."""
    try:
        known = sorted(all_studies(), key=lambda study: study.state in (DRAFT, ARCHIVED))
    except ExegesisError as error:
        say_error(sentence(error))
        return
    if not known:
        st.info("There is no study yet. Make one, open it, and send its join link.")
        _to_studies("Make a study", {})
        return
    chosen = _choose(known)
    if chosen is not None:
        _study(chosen)


def _choose(known: Sequence[StudyRecord]) -> StudyRecord | None:
    """The address says which; choosing another changes the address. Labels differ: the browser answers with one."""
    named = {study.id: study for study in known}
    asked = st.query_params.get(PARAMETER)
    wanted = known[0].id if asked is None else whole(asked, MOST_NUMBER)
    if wanted not in named:
        say_error(f"study: there is none with the number {asked!r}. Choose one of these.")
    else:
        st.query_params[PARAMETER] = str(wanted)
    st.session_state[WIDGET] = wanted if wanted in named else None
    st.selectbox(
        "Study", list(named), key=WIDGET, index=0 if wanted in named else None, placeholder="Choose a study", width=480,
        on_change=_turn, format_func=lambda id: f"{named[id].design.title} (#{id}, {named[id].state})",
    )  # fmt: skip
    return named.get(wanted) if wanted is not None else None


def _turn() -> None:
    st.query_params.from_dict({PARAMETER: str(st.session_state[WIDGET])})


def _study(record: StudyRecord) -> None:
    if record.state == DRAFT:
        st.info("This study has not opened yet, so nobody has answered.")
        _to_studies("Open it on the page of studies", {PARAMETER: str(record.id)})
        return
    began, drawn = time.monotonic(), mark(record.id)
    try:
        with st.spinner("Computing the results: thousands of orders and resamples of the votes", show_time=True):
            shown = Shown(latest(record.id))
    except Exception as error:
        say_error(sentence(error))
        return
    if "annotator" in st.query_params:
        seen_area(shown, st.query_params.to_dict())
        return
    _results(shown)
    follow(record, drawn, time.monotonic() - began)


def _results(shown: Shown) -> None:
    found = shown.found
    if not found.answers:
        st.info("Nobody has answered yet. Send people the join link; their answers appear here.")
        _to_studies("Copy the join link", {PARAMETER: str(found.study.id)})
        return
    if shown.summary is not None:
        rating_area(shown.summary)
    elif shown.forward is not None:
        forward_area(shown.forward)
    elif found.study.design.mode == "rank":
        st.info("Nothing is ranked yet, so there is no rating.")
    st.caption(literal(taken(found)))
    sections(shown)


def _to_studies(label: str, query: dict[str, str]) -> None:
    st.page_link(STUDY.file, label=label, icon=":material/arrow_forward:", query_params=query)
