"""One study: its state and link, what can be done with it, its design, what happened to it."""

from __future__ import annotations

from datetime import tzinfo

import streamlit as st

from components.engine_room import explainers
from components.frame import RESULTS
from components.library_html import facts_html
from components.safe_markdown import markdown
from components.study.actions import archive, duplicate
from components.study.confirm import confirm_closing, confirm_deleting
from components.study.draft import draft
from components.study.file_area import file_of_study
from components.study.view import design_facts, facts, happened, join_link, leads_here_only, look
from components.trouble import literal, say_note
from engine.study.counts import NOBODY, Counts, counts
from engine.study.studies import CLOSED, DRAFT, OPEN, StudyRecord, log_of

LOCAL_LINK = (
    "This link works on this machine only. For others, start Exegesis with --host 0.0.0.0 --study-only, or put a proxy "
    "before it, and open this page by the address that they use."
)


def one_study(record: StudyRecord, zone: tzinfo) -> None:
    """All of it, by its state."""
    counted = counts().get(record.id, NOBODY)
    _head(record, counted, zone)
    if record.state == OPEN:
        _link(record)
    _actions(record, counted)
    if record.state == DRAFT:
        draft(record, zone)
    else:
        _design(record)
    _log(record, zone)


def _head(record: StudyRecord, counted: Counts, zone: tzinfo) -> None:
    word, colour, icon = look(record)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.badge(word, color=colour, icon=icon)
        st.caption(f"#{record.id}")
    st.header(literal(record.design.title), anchor=False)
    if record.state != DRAFT:
        told = facts(record, counted, zone)
        st.html(facts_html({name: told[name] for name in ("votes", "when")}))


def _link(record: StudyRecord) -> None:
    link = join_link(st.context.url, record.token)
    st.markdown("**Join link** – send it to the people who take part:")
    st.code(link, language=None, wrap_lines=True)
    if leads_here_only(link):
        say_note(LOCAL_LINK)


def _actions(record: StudyRecord, counted: Counts) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if record.state != DRAFT:
            _results(record)
        if record.state == OPEN and _button("Close …", "Takes no more votes. Asks first.", ":material/lock:"):
            confirm_closing(record, counted)
        if record.state == CLOSED:
            st.button(
                "Archive", key="study.archive", help="Puts it away; its votes and results stay.",
                icon=":material/inventory_2:", on_click=archive, args=(record.id,),
            )  # fmt: skip
        st.button(
            "Duplicate", key="study.duplicate", help="A draft of the same design, without its votes.",
            icon=":material/content_copy:", on_click=duplicate, args=(record.id,),
        )  # fmt: skip
        file_of_study(record.id)
        if _button("Delete …", "With its votes. Asks first.", ":material/delete:"):
            confirm_deleting(record, counted)


def _results(record: StudyRecord) -> None:
    if st.button("Results", key="study.results", icon=":material/leaderboard:", type="primary"):
        st.switch_page(RESULTS.path, query_params={"study": str(record.id)})


def _button(label: str, help: str, icon: str) -> bool:
    return st.button(label, key=f"study.{label.split()[0].lower()}", help=help, icon=icon)


def _design(record: StudyRecord) -> None:
    with st.spinner("Starting the engine …"):
        known = explainers(record.design.kind)
    st.subheader("Design", anchor=False)
    st.html(facts_html(design_facts(record.design, known)))
    for label, text in (("Consent", record.design.consent), ("Instructions", record.design.instructions)):
        with st.expander(label):
            markdown(text)


def _log(record: StudyRecord, zone: tzinfo) -> None:
    opened = st.expander("What happened", key="study.log", on_change="rerun")
    if opened.open:
        opened.table(happened(log_of(record.id), zone))
