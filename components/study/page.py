"""The Study page: the list of studies, the form of a new study, or one study, depending on the address."""

from __future__ import annotations

from datetime import tzinfo

import streamlit as st

from components.errors import describe_error, escape_label, show_error, show_note
from components.links import whole_number
from components.navigation import RESULTS
from components.numbers import browser_zone
from components.safe_markdown import markdown
from components.study.actions import (
    NEW,
    STUDY,
    archive,
    confirm_closing,
    confirm_deleting,
    draw_draft,
    draw_import,
    draw_new_study,
    draw_outcome,
    draw_study_file_button,
    duplicate,
    show_form,
    show_list,
    show_study,
)
from components.study.descriptions import (
    design_facts,
    event_rows,
    is_local_link,
    join_link,
    state_badge,
    study_facts,
    study_history,
    study_progress,
)
from components.study.form import forget_form
from components.tables import facts_html
from engine.errors import ExegesisError, UsageError
from engine.registry import all_explainers
from engine.study.database import study_database
from engine.study.design import PRESETS
from engine.study.studies import (
    ARCHIVED,
    CLOSED,
    DRAFT,
    NO_ANSWERS,
    OPEN,
    AnswerCounts,
    StudyRecord,
    count_answers,
    find,
    list_studies,
    study_log,
)

MOST_STUDY = 10**9
SHOW_ARCHIVED = "study.show_archived"
BLANK = "blank"
EMPTY = (
    "No studies yet. Create one above: choose a model, a data set and 2 to 6 methods, open the study, and send its "
    "link to participants. They see explanations without method names, and rank them or choose an answer. "
    "Study results then shows which methods are rated above others, and how certain that is."
)
LOCAL_LINK = (
    "This link works only on this machine. To let others take part, start Exegesis with --host 0.0.0.0 --study-only or "
    "put a proxy in front of it, and open this page at its public address."
)


def draw_study_page() -> None:
    """Draw the view in the address, or the error of the database."""
    try:
        with st.spinner("Loading studies …"):
            study_database()
        with st.container():  # a container, so that nothing below moves when it empties
            draw_outcome()
        number, start = st.query_params.get(STUDY), st.query_params.get(NEW)
        if not number and not start:
            _draw_list(browser_zone())
            return
        st.button("All studies", icon=":material/arrow_back:", type="tertiary", key="study.all", on_click=show_list)
        if number:
            _draw_study(find(_parse_number(number)), browser_zone())
        elif start:
            draw_new_study(start, browser_zone())
    except ExegesisError as error:
        show_error(describe_error(error))


def _parse_number(text: str) -> int:
    number = whole_number(text, MOST_STUDY)
    if number is None:
        raise UsageError(f"study: must be the number of a study, got {text[:40]!r}. Go to all studies.")
    return number


def _draw_list(zone: tzinfo) -> None:
    """Draw all studies, the newest first, and the buttons for a new one; archived studies on demand."""
    forget_form()
    with st.container(horizontal=True, gap="small"):
        for name, preset in PRESETS.items():
            _draw_new_button(name, f"New study: {preset.title}", "primary")
        _draw_new_button(BLANK, "New blank study", "secondary")
    draw_import()
    studies, by_study = list_studies(), count_answers()
    if not studies:
        st.info(EMPTY)
    archived = [study for study in studies if study.state == ARCHIVED]
    for study in studies:
        if study.state != ARCHIVED:
            _draw_card(study, by_study.get(study.id, NO_ANSWERS), zone)
    if archived and st.toggle(f"Show archived studies ({len(archived):,})", key=SHOW_ARCHIVED, persist_state="session"):
        for study in archived:
            _draw_card(study, by_study.get(study.id, NO_ANSWERS), zone)


def _draw_new_button(name: str, label: str, kind: str) -> None:
    st.button(label, key=f"study.new.{name}", type=kind, icon=":material/add:", on_click=show_form, args=(name,))  # type: ignore[arg-type]


def _draw_card(record: StudyRecord, counts: AnswerCounts, zone: tzinfo) -> None:
    with st.container(border=True, key=f"study-{record.id}", gap="xsmall"):
        _draw_badge(record)
        st.subheader(escape_label(record.design.title), anchor=False)
        st.html(facts_html(study_facts(record, counts, zone, all_explainers(record.design.kind))))
        st.button(
            "Go to this study", key=f"study.go.{record.id}", icon=":material/arrow_forward:",
            on_click=show_study, args=(record.id,),
        )  # fmt: skip


def _draw_badge(record: StudyRecord) -> None:
    word, color, icon = state_badge(record)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.badge(word, color=color, icon=icon)
        st.caption(f"#{record.id}")


def _draw_study(record: StudyRecord, zone: tzinfo) -> None:
    """Draw one study: its state and link, its actions, its design, and its log."""
    record_counts = count_answers().get(record.id, NO_ANSWERS)
    _draw_badge(record)
    st.header(escape_label(record.design.title), anchor=False)
    if record.state != DRAFT:
        st.html(facts_html({"progress": study_progress(record, record_counts), "dates": study_history(record, zone)}))
    if record.state == OPEN:
        _draw_link(record)
    _draw_actions(record, record_counts)
    if record.state == DRAFT:
        draw_draft(record, zone)
    else:
        _draw_design(record)
    log = st.expander("Log", key="study.log", on_change="rerun")
    if log.open:
        log.table(event_rows(study_log(record.id), zone))


def _draw_link(record: StudyRecord) -> None:
    link = join_link(st.context.url, record.token)
    st.markdown("**Join link** – send it to participants:")
    st.code(link, language=None, wrap_lines=True)
    if is_local_link(link):
        show_note(LOCAL_LINK)


def _draw_actions(record: StudyRecord, counts: AnswerCounts) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if record.state != DRAFT:
            icon = ":material/leaderboard:"
            if st.button("Results", key="study.results", icon=icon, type="primary"):
                st.switch_page(RESULTS.path, query_params={"study": str(record.id)})
        if record.state == OPEN:
            help = "The study then accepts no more votes. You will be asked to confirm."
            if st.button("Close …", key="study.close", help=help, icon=":material/lock:"):
                confirm_closing(record, counts)
        if record.state == CLOSED:
            st.button(
                "Archive", key="study.archive", help="Hides the study from the list. Its votes and results stay.",
                icon=":material/inventory_2:", on_click=archive, args=(record.id,),
            )  # fmt: skip
        st.button(
            "Duplicate", key="study.duplicate", help="Creates a draft with the same design and no votes.",
            icon=":material/content_copy:", on_click=duplicate, args=(record.id,),
        )  # fmt: skip
        draw_study_file_button(record.id)
        if st.button(
            "Delete …",
            key="study.delete",
            help="Deletes the study and all of its votes. You will be asked to confirm.",
            icon=":material/delete:",
        ):
            confirm_deleting(record, counts)


def _draw_design(record: StudyRecord) -> None:
    with st.spinner("Starting the engine …"):
        methods = all_explainers(record.design.kind)
    st.subheader("Design", anchor=False)
    st.html(facts_html(design_facts(record.design, methods)))
    for label, text in (("Consent", record.design.consent), ("Instructions", record.design.instructions)):
        with st.expander(label):
            markdown(text)
