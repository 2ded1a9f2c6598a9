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

SAID, FAILED = "library_cache_said", "library_cache_failed"


def cache_area() -> None:
    """Its size against its bound, its state, and what can be done with it."""
    try:
        found = result_store().stats()
    except Exception as error:
        st.html(trouble_html(sentence(error)))
        return
    st.progress(min(1.0, found.bytes / found.max_bytes) if found.max_bytes else 1.0, filling(found))
    facts = cache_facts(found)
    if not is_organizer():
        del facts["folder"]
    st.html(facts_html(facts))
    if found.status:
        st.html(trouble_html(found.status))
    if is_organizer():
        _actions(found)
    if said := st.session_state.pop(SAID, ""):
        st.info(said)
    if failed := st.session_state.pop(FAILED, ""):
        st.html(trouble_html(failed))


def _actions(found: Stats) -> None:
    with st.container(horizontal=True, gap="small"):
        st.button(
            "Check every entry", on_click=_check, help="Damaged entries are dropped and computed anew when asked."
        )
        if st.button("Clear …", disabled=not found.entries, help="Asks first."):
            _confirm(found)


def filling(found: Stats) -> str:
    """How full it is, in words."""
    return f"{count(found.entries, 'result')}, {size_text(found.bytes)} of at most {size_text(found.max_bytes)}"


def cache_facts(found: Stats) -> dict[str, object]:
    """Where it is and how it is doing."""
    return {
        "state": "see below" if found.status else "works",
        "folder": found.folder,
        "file": size_text(found.file_bytes),
        "asked since the server started": f"{count(found.hits, 'hit')}, {found.misses:,} not there",
        "when it is full": "the results that were used least recently go; EXEGESIS_CACHE_BYTES sets the bound",
    }


def checked(report: CheckReport) -> str:
    """What a check found, in words."""
    dropped = f"{report.dropped:,} damaged ones dropped" if report.dropped else "all sound"
    return f"{report.checked:,} entries read, {dropped}. {report.status}".strip()


def _check() -> None:
    try:
        st.session_state[SAID] = checked(result_store().check())
    except Exception as error:
        st.session_state[FAILED] = sentence(error)


@st.dialog("Clear the cache?")
def _confirm(found: Stats) -> None:
    st.markdown(
        f"{count(found.entries, 'result')} ({size_text(found.bytes)}) will be computed again when they are asked for. "
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
        st.session_state[FAILED if store.status else SAID] = store.status or f"{count(dropped, 'result')} dropped."
    except Exception as error:
        st.session_state[FAILED] = sentence(error)
