"""The list of jobs: it follows the work while there is any, and each job can be stopped, resumed, taken off."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from components.library.job_view import JobView, counts_html, failures_html, job_view, title_html
from components.library.links import first_example
from components.library_html import trouble_html
from components.organizer import is_organizer
from components.trouble import sentence
from engine import jobs
from engine.errors import ExegesisError
from engine.jobs import Job

REFRESH_SECONDS = 1.0
SHOWN = 20
ALL, SAID = "library_all_jobs", "library_jobs_said"
EMPTY = (
    "No jobs yet. Open **New job** above to explain many examples at once: the work goes on while you are on other "
    "pages, survives a restart of the server, and what it computes opens at once on its page."
)


def job_list() -> None:
    """All jobs, the newest first; asks again every second only while one of them is waiting or running."""
    found = _found()
    if found is not None:
        active = _active(found)
        st.fragment(_list, run_every=REFRESH_SECONDS if active else None)(active)


def _list(watching: bool) -> None:
    found = _found()
    if found is None:
        return
    if _active(found) != watching:
        st.rerun()  # the whole page, which starts or stops asking again
    _drawn(found)


def _found() -> list[Job] | None:
    """All jobs; None after saying why they cannot be listed."""
    try:
        return jobs.list_jobs()
    except ExegesisError as error:
        st.html(trouble_html(sentence(error)))
        return None


def _drawn(found: list[Job]) -> None:
    for said in filter(None, (jobs.ledger().trouble, st.session_state.get(SAID))):
        st.html(trouble_html(said))
    if not found:
        st.info(EMPTY)
    shown = found if st.session_state.get(ALL) else found[:SHOWN]
    for job in shown:
        _card(job, job_view(job, jobs.place(job)))
    if len(shown) < len(found):
        st.button(f"Show all {len(found):,} jobs", key="library.all_jobs", on_click=_show_all)


def _active(found: list[Job]) -> bool:
    return any(not job.over for job in found)


def _card(job: Job, view: JobView) -> None:
    word, colour, icon = view.look
    with st.container(border=True, key=f"job-{view.id}", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.badge(word, color=colour, icon=icon)
            st.caption(f"#{view.id} · {view.when}")
        st.html(title_html(view))
        st.progress(view.share, view.progress)
        if view.counts:
            st.html(counts_html(view))
        for told in filter(None, (view.trouble, view.note)):
            st.html(trouble_html(told))
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            _buttons(job, view)
        if view.failed:
            _failures(view)


def _buttons(job: Job, view: JobView) -> None:
    may_stop = is_organizer()
    if view.can_cancel and may_stop:
        _button("Cancel", view, jobs.cancel, "Stops after the part at hand. What is finished is kept.")
    if view.can_resume:
        _button("Resume", view, jobs.resume, "Goes on; what is finished is found in the cache, not computed again.")
    if job.over and may_stop:
        _button("Remove", view, jobs.forget, "Takes it off this list. Its results stay in the cache.")
    if job.state == "done" and (found := first_example(job)):
        page, link = found
        label = f"First example on the {page.title} page"
        st.page_link(page.file, label=label, query_params=link, icon=":material/open_in_new:")


def _button(name: str, view: JobView, action: Callable[[int], object], help: str) -> None:
    st.button(name, key=f"job.{name.lower()}.{view.id}", help=help, on_click=_do, args=(action, view.id))


def _do(action: Callable[[int], object], id: int) -> None:
    st.session_state.pop(SAID, None)
    try:
        action(id)
    except ExegesisError as error:
        st.session_state[SAID] = sentence(error)


def _show_all() -> None:
    st.session_state[ALL] = True


def _failures(view: JobView) -> None:
    opened = st.expander("What failed", key=f"job.failed.{view.id}", on_change="rerun")
    if opened.open:
        opened.html(failures_html(jobs.failures(view.id)))
