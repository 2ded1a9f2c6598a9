"""The Library page: the choice of a section, and the sections of the cache and the device.

The section is part of the link and survives a change to another page.
"""

from __future__ import annotations

import os
import sys

import streamlit as st

from cache import CheckReport, Stats
from components.errors import describe_error, error_html, show_error
from components.library.cards import draw_datasets, draw_fetchable_models, draw_model_check, draw_models
from components.library.jobs import draw_job_form, draw_jobs
from components.library.maps import draw_maps
from components.library.previews import draw_previews
from components.numbers import count
from components.organizer import is_organizer
from components.tables import checks_html, facts_html
from engine import health, runtime
from engine.errors import unknown
from engine.format import size_text
from engine.request import DTYPES
from engine.store import result_store

SECTIONS = {
    "jobs": "Jobs",
    "models": "Models",
    "data": "Data",
    "previews": "Previews",
    "maps": "Imported maps",
    "cache": "Cache",
    "device": "Device",
}
PARAMETER = "section"
WIDGET = "library.section"
CHOSEN_KEY, ADDRESS_KEY = "library_kept_section", "library_seen_section"
"""Session keys: the section chosen last, and the section in the address at the last run."""
MESSAGE_KEY, FAILURE_KEY = "library_cache_said", "library_cache_failed"
FINDINGS_KEY = "library_findings"


def draw_library() -> None:
    """Draw the choice of a section, and the chosen section."""
    section = _choose_section()
    with st.container(width="stretch" if section == "models" else 960):  # the table of models has many columns
        if section == "jobs":
            draw_job_form()
            draw_jobs()
        elif section == "models":
            draw_models()
            draw_fetchable_models()
            draw_model_check()
        elif section == "data":
            draw_datasets()
        elif section == "previews":
            draw_previews()
        elif section == "maps":
            draw_maps()
        elif section == "cache":
            draw_cache()
        else:
            draw_device()


def _choose_section() -> str:
    """Draw the choice of a section and return it; for an unknown one in a link, an error and the first section."""
    first = next(iter(SECTIONS))
    address = st.query_params.get(PARAMETER)
    if address != st.session_state.get(ADDRESS_KEY) and (address or WIDGET in st.session_state):
        st.session_state[WIDGET] = address if address in SECTIONS else first
    st.session_state.setdefault(WIDGET, st.session_state.get(CHOSEN_KEY, first))
    chosen = st.segmented_control(
        "Section", list(SECTIONS), key=WIDGET, required=True, format_func=SECTIONS.__getitem__,
        label_visibility="collapsed", on_change=_ignore_address,
    )  # fmt: skip
    chosen = chosen or first
    if address and address not in SECTIONS and chosen == first:
        show_error(str(unknown(PARAMETER, address[:40], SECTIONS)))
    elif chosen != (address or first):
        st.query_params[PARAMETER] = address = chosen
    st.session_state[CHOSEN_KEY], st.session_state[ADDRESS_KEY] = chosen, address
    return chosen


def _ignore_address() -> None:
    """Prefer the new choice over the address, which may still contain the previous choice."""
    st.session_state[ADDRESS_KEY] = st.query_params.get(PARAMETER)


def draw_cache() -> None:
    """Draw the size and the state of the cache, and its actions."""
    try:
        stats = result_store().stats()
    except Exception as error:
        st.html(error_html(describe_error(error)))
        return
    st.progress(min(1.0, stats.bytes / stats.max_bytes) if stats.max_bytes else 1.0, describe_size(stats))
    facts = cache_facts(stats)
    if not is_organizer():
        del facts["folder"]
    st.html(facts_html(facts))
    if stats.status:
        st.html(error_html(stats.status))
    if is_organizer():
        _draw_cache_actions(stats)
    if message := st.session_state.pop(MESSAGE_KEY, ""):
        st.info(message)
    if failure := st.session_state.pop(FAILURE_KEY, ""):
        st.html(error_html(failure))


def _draw_cache_actions(stats: Stats) -> None:
    with st.container(horizontal=True, gap="small"):
        st.button(
            "Check every entry",
            on_click=_check_cache,
            help="Removes damaged entries. They are computed again when needed.",
        )
        if st.button("Clear …", disabled=not stats.entries, help="You will be asked to confirm."):
            _confirm_clearing(stats)


def describe_size(stats: Stats) -> str:
    """Describe the size of the cache and its limit."""
    return f"{count(stats.entries, 'result')}, {size_text(stats.bytes)} of at most {size_text(stats.max_bytes)}"


def cache_facts(stats: Stats) -> dict[str, object]:
    """Return the facts of the cache: location, size and lookups."""
    return {
        "state": "see below" if stats.status else "works",
        "folder": stats.folder,
        "file": size_text(stats.file_bytes),
        "lookups since start": f"hits: {stats.hits:,}, misses: {stats.misses:,}",
        "when full": "the least recently used results are removed; EXEGESIS_CACHE_BYTES sets the limit",
    }


def describe_check(report: CheckReport) -> str:
    """Describe the outcome of a check."""
    damaged = "entry" if report.dropped == 1 else "entries"
    dropped = f"{report.dropped:,} damaged {damaged} removed" if report.dropped else "no damage found"
    return (
        f"{report.checked:,} {'entry' if report.checked == 1 else 'entries'} read, {dropped}. {report.status}".strip()
    )


def _check_cache() -> None:
    try:
        st.session_state[MESSAGE_KEY] = describe_check(result_store().check())
    except Exception as error:
        st.session_state[FAILURE_KEY] = describe_error(error)


@st.dialog("Clear the cache?")
def _confirm_clearing(stats: Stats) -> None:
    st.markdown(
        f"{count(stats.entries, 'result')} ({size_text(stats.bytes)}) will be deleted and computed again when needed. "
        "Finished parts of interrupted jobs and long texts behind links are deleted, too."
    )
    with st.container(horizontal=True, gap="small"):
        if st.button("Clear the cache", type="primary", on_click=_clear_cache):
            st.rerun()
        if st.button("Cancel"):
            st.rerun()


def _clear_cache() -> None:
    store = result_store()
    try:
        dropped = store.clear()
        st.session_state[FAILURE_KEY if store.status else MESSAGE_KEY] = (
            store.status or f"{count(dropped, 'result')} deleted."
        )
    except Exception as error:
        st.session_state[FAILURE_KEY] = describe_error(error)


def draw_device() -> None:
    """Draw the settings of the device, and a button that examines the installation, which takes seconds."""
    st.html(facts_html(device_facts()))
    if st.button("Check this installation"):
        _examine()
    elif FINDINGS_KEY in st.session_state:
        st.html(checks_html(st.session_state[FINDINGS_KEY]))
    _draw_plugins()


def _draw_plugins() -> None:
    """Draw the packages that add methods, metrics, model families or data sets, if any."""
    if findings := health.plugin_findings():
        st.subheader("Plugins", anchor=False)
        st.html(checks_html([(one.status, one.name, one.detail, one.advice) for one in findings]))
        st.caption("Packages installed beside Exegesis. Their code runs with the rights of the server.")


def device_facts() -> dict[str, object]:
    """Return the configured device and precision; the actual device once the engine has started."""
    chosen = os.environ.get("EXEGESIS_DEVICE")
    how = f"{chosen}, set by EXEGESIS_DEVICE" if chosen else "GPU if available, else CPU"
    return {
        "device": _device_in_use() or how,
        "chosen by": "EXEGESIS_DEVICE" if chosen else "automatic; set EXEGESIS_DEVICE=cpu or cuda:0 to override",
        "precision": f"{DTYPES[0]}; jobs and commands can also use {', '.join(DTYPES[1:])}",
    }


def _device_in_use() -> str:
    """Return the device in use; empty before its first use, because choosing one imports torch."""
    if "torch" not in sys.modules:
        return ""
    try:
        return str(runtime.device())
    except Exception as error:
        return f"none: {error}"


def _examine() -> None:
    place, findings = st.empty(), []
    with st.spinner("Checking …"):
        for finding in health.examine():
            findings.append((finding.status, finding.name, finding.detail, finding.advice))
            place.html(checks_html(findings))
    st.session_state[FINDINGS_KEY] = findings
