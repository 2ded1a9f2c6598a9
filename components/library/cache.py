"""The cache: what it holds, whether it is sound, and emptying it after a question."""

from __future__ import annotations

import streamlit as st

from cache import CheckReport, Stats
from components.library_html import facts_html, trouble_html
from components.numbers import count
from components.organizer import is_organizer
from components.trouble import sentence
from engine.format import size_text
from engine.store import result_store

MESSAGE_KEY, FAILURE_KEY = "library_cache_said", "library_cache_failed"


def draw_cache() -> None:
    """Draw its size against its bound, its state, and what can be done with it."""
    try:
        stats = result_store().stats()
    except Exception as error:
        st.html(trouble_html(sentence(error)))
        return
    st.progress(min(1.0, stats.bytes / stats.max_bytes) if stats.max_bytes else 1.0, describe_size(stats))
    facts = cache_facts(stats)
    if not is_organizer():
        del facts["folder"]
    st.html(facts_html(facts))
    if stats.status:
        st.html(trouble_html(stats.status))
    if is_organizer():
        _draw_actions(stats)
    if message := st.session_state.pop(MESSAGE_KEY, ""):
        st.info(message)
    if failure := st.session_state.pop(FAILURE_KEY, ""):
        st.html(trouble_html(failure))


def _draw_actions(stats: Stats) -> None:
    with st.container(horizontal=True, gap="small"):
        st.button(
            "Check every entry", on_click=_check, help="Damaged entries are dropped and computed anew when asked."
        )
        if st.button("Clear …", disabled=not stats.entries, help="Asks first."):
            _confirm_clearing(stats)


def describe_size(stats: Stats) -> str:
    """How full it is, in words."""
    return f"{count(stats.entries, 'result')}, {size_text(stats.bytes)} of at most {size_text(stats.max_bytes)}"


def cache_facts(stats: Stats) -> dict[str, object]:
    """Where it is and how it is doing."""
    return {
        "state": "see below" if stats.status else "works",
        "folder": stats.folder,
        "file": size_text(stats.file_bytes),
        "asked since the server started": f"{count(stats.hits, 'hit')}, {stats.misses:,} not there",
        "when it is full": "the results that were used least recently go; EXEGESIS_CACHE_BYTES sets the bound",
    }


def describe_check(report: CheckReport) -> str:
    """The outcome of a check, in words."""
    dropped = f"{report.dropped:,} damaged ones dropped" if report.dropped else "all sound"
    return f"{report.checked:,} entries read, {dropped}. {report.status}".strip()


def _check() -> None:
    try:
        st.session_state[MESSAGE_KEY] = describe_check(result_store().check())
    except Exception as error:
        st.session_state[FAILURE_KEY] = sentence(error)


@st.dialog("Clear the cache?")
def _confirm_clearing(stats: Stats) -> None:
    st.markdown(
        f"{count(stats.entries, 'result')} ({size_text(stats.bytes)}) will be computed again when they are asked for. "
        "Finished parts of interrupted jobs are lost too, and so are long texts that links name by their hash."
    )
    with st.container(horizontal=True, gap="small"):
        if st.button("Clear the cache", type="primary", on_click=_clear):
            st.rerun()
        if st.button("Keep it"):
            st.rerun()


def _clear() -> None:
    store = result_store()
    try:
        dropped = store.clear()
        st.session_state[FAILURE_KEY if store.status else MESSAGE_KEY] = (
            store.status or f"{count(dropped, 'result')} dropped."
        )
    except Exception as error:
        st.session_state[FAILURE_KEY] = sentence(error)
