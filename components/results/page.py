"""The Results page: the choice of a study, its state, the answer, and the rest in sections.

The page follows new votes: it polls with cheap queries and is only redrawn after a change.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import streamlit as st

from components.errors import describe_error, show_error
from components.links import whole_number
from components.navigation import STUDY
from components.results.descriptions import TitledResults
from engine.errors import ExegesisError
from engine.lazy import LazyModule
from engine.study.results import Results, VotesVersion, latest_results, latest_version, rating_progress
from engine.study.studies import ARCHIVED, DRAFT, StudyRecord, find, list_studies

if TYPE_CHECKING:
    from components.results import sections
else:  # charts and tables take long to import, and the list of studies needs neither of them
    sections = LazyModule("components.results.sections")

PARAMETER = "study"
WIDGET = "results.study"
MOST_NUMBER = 2**31 - 1
EMPTY = (
    "No studies yet. Create a study, open it, and send its join link to participants. This page then shows which "
    "explanations people prefer or which help them predict the model or decide, with intervals, agreement, and how "
    "many more votes are needed."
)
LOOK_SECONDS, PROGRESS_SECONDS = 5.0, 1.0
PAUSE_RATIO = 4
"""Pause after drawing the page, as a multiple of the drawing time."""

Mark = tuple[VotesVersion, bool] | None
"""The version of the votes on the page, and whether more may come; None: the study is deleted."""


def draw_results_page() -> None:
    """Draw the study in the link, or the newest one that has opened."""
    try:
        studies = sorted(list_studies(), key=lambda study: study.state in (DRAFT, ARCHIVED))
    except ExegesisError as error:
        show_error(describe_error(error))
        return
    if not studies:
        st.info(EMPTY)
        _link_to_studies("Create a study", {})
        return
    chosen = _choose_study(studies)
    if chosen is not None:
        _draw_study(chosen)


def _choose_study(studies: Sequence[StudyRecord]) -> StudyRecord | None:
    """Draw the choice, which is stored in the address. Labels must be unique, since the browser returns a label."""
    by_id = {study.id: study for study in studies}
    text = st.query_params.get(PARAMETER)
    number = studies[0].id if text is None else whole_number(text, MOST_NUMBER)
    chosen = None if number is None else by_id.get(number)
    if chosen is None:
        show_error(f"study: there is no study {text!r}. Choose one below.")
    else:
        st.query_params[PARAMETER] = str(chosen.id)
    st.session_state[WIDGET] = None if chosen is None else chosen.id
    st.selectbox(
        "Study", list(by_id), key=WIDGET, index=None if chosen is None else 0, placeholder="Choose a study", width=480,
        on_change=_set_address, format_func=lambda id: f"{by_id[id].design.title} (#{id}, {by_id[id].state})",
    )  # fmt: skip
    return chosen


def _set_address() -> None:
    st.query_params.from_dict({PARAMETER: str(st.session_state[WIDGET])})


def _draw_study(record: StudyRecord) -> None:
    if record.state == DRAFT:
        st.info("This study is a draft. Open it and send its join link to participants; the results then appear here.")
        _link_to_studies("Go to this study", {PARAMETER: str(record.id)})
        return
    began = time.monotonic()
    try:
        with st.spinner("Computing ratings and intervals …", show_time=True):
            mark = _mark(record.id)
            results = TitledResults(latest_results(record.id))
    except Exception as error:
        show_error(describe_error(error))
        return
    if "annotator" in st.query_params:
        sections.draw_replay(results, st.query_params.to_dict())
        return
    if results.untitled.sample is not None:
        st.fragment(_draw_progress, run_every=PROGRESS_SECONDS)(results.untitled)
    if results.untitled.answers:
        sections.draw_sections(results)
    else:
        st.info("No answers yet. Send the join link to participants; the results appear here as they answer.")
        _link_to_studies("Get the join link", {PARAMETER: str(record.id)})
    _follow(results.untitled, mark, time.monotonic() - began)


def _link_to_studies(label: str, query: dict[str, str]) -> None:
    st.page_link(STUDY.path, label=label, icon=":material/arrow_forward:", query_params=query)


def _mark(study: int) -> Mark:
    """Read the state that the page depends on, by two small queries."""
    try:
        return latest_version(study), find(study).takes_votes
    except ExegesisError:
        return None


def _draw_progress(results: Results) -> None:
    """Draw the progress of the ratings, and say which votes the page shows until then."""
    share, votes = rating_progress(results.study.id), len(results.votes)
    sample = f" Shown until then: a random sample of {results.sample:,}." if results.sample else ""
    st.progress(min(1.0, share), f"Rating all {votes:,} votes.{sample}")


def _follow(results: Results, mark: Mark, duration: float) -> None:
    """Redraw the page once its mark differs from `mark`. `duration`: seconds that this drawing took."""
    is_first, study = results.sample is not None, results.study
    pause = PROGRESS_SECONDS if is_first else max(LOOK_SECONDS, PAUSE_RATIO * duration)
    run_every = pause if is_first or study.takes_votes else None
    st.fragment(_poll, run_every=run_every)(study.id, mark, time.monotonic() + pause / 2)


def _poll(study: int, mark: Mark, due: float) -> None:
    """Compare the marks, but not before the time `due`: the fragment also runs as part of the page."""
    if time.monotonic() >= due and _mark(study) != mark:
        st.rerun()
    is_live = mark is not None and mark[1]
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Refresh", key="results.look", icon=":material/refresh:", type="tertiary"):
            st.rerun()
        st.caption(
            "The study is open. This page updates automatically." if is_live else "The study does not accept votes."
        )
