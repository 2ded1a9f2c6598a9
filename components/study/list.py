"""All studies with how far they are, and the ways to begin a new one."""

from __future__ import annotations

from datetime import tzinfo

import streamlit as st

from components.library_html import facts_html
from components.study.actions import go_to, go_to_new
from components.study.file_area import import_area
from components.study.view import facts, look
from components.trouble import literal
from engine.study.counts import NOBODY, Counts, counts
from engine.study.presets import PRESETS
from engine.study.studies import ARCHIVED, StudyRecord, all_studies

ALL = "study.show_archived"
BLANK = "blank"
EMPTY = (
    "No studies yet. Begin with SMaT's four methods, or with a blank design: you choose a model, a data set and 2 to 6 "
    "methods, open the study, and send its link to the people who take part."
)


def study_list(zone: tzinfo) -> None:
    """The newest first; archived ones on demand."""
    with st.container(horizontal=True, gap="small"):
        for name, preset in PRESETS.items():
            _new(name, f"New study: {preset.title}", "primary")
        _new(BLANK, "New blank study", "secondary")
    import_area()
    studies, counted = all_studies(), counts()
    if not studies:
        st.info(EMPTY)
    put_away = [one for one in studies if one.state == ARCHIVED]
    for one in studies:
        if one.state != ARCHIVED:
            _card(one, counted.get(one.id, NOBODY), zone)
    if put_away and st.toggle(f"Show archived studies ({len(put_away):,})", key=ALL, persist_state="session"):
        for one in put_away:
            _card(one, counted.get(one.id, NOBODY), zone)


def _new(name: str, label: str, kind: str) -> None:
    st.button(label, key=f"study.new.{name}", type=kind, icon=":material/add:", on_click=go_to_new, args=(name,))  # type: ignore[arg-type]


def _card(record: StudyRecord, counted: Counts, zone: tzinfo) -> None:
    word, colour, icon = look(record)
    with st.container(border=True, key=f"study-{record.id}", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.badge(word, color=colour, icon=icon)
            st.caption(f"#{record.id}")
        st.subheader(literal(record.design.title), anchor=False)
        st.html(facts_html(facts(record, counted, zone)))
        st.button(
            "Go to this study", key=f"study.go.{record.id}", icon=":material/arrow_forward:",
            on_click=go_to, args=(record.id,),
        )  # fmt: skip
