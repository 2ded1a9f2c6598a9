"""Actions of an organizer: draft, open, duplicate, close, archive, delete, import and export a study.

Most are callbacks: the next run reports success or failure. Irreversible ones need a confirmation. Opening takes a
while: it continues when its tab is closed, and every organizer sees its progress.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import tzinfo
from functools import partial

import streamlit as st

from cache import key_for
from components.compute import Computation
from components.errors import describe_error, show_error, show_note
from components.export import file_button
from components.study.descriptions import one_line_title, study_progress
from components.study.fields import describe_field_error
from components.study.form import draw_form, fill_form, forget_form, read_design
from engine.errors import ExegesisError
from engine.models.catalog import embedded_models
from engine.progress import CancelToken
from engine.study import studies
from engine.study.design import PRESETS, Design, check_available, check_design, consent_placeholders, find_preset
from engine.study.studies import AnswerCounts, StudyRecord, change, create, has_snapshot, open_study
from engine.study.study_file import export_study, import_study

STUDY, NEW = "study", "new"
"""Query parameters of the address: a study, or the preset of a new one."""
FAILURE_KEY, NOTE_KEY = "study_failed", "study_done"
TYPED_TITLE = "study.delete.typed"
IMPORT_KEY, UPLOAD_KEY = "study.import", "study.import.file"
FILE_HELP = (
    "The design with its stored items and explanations, to run the same study elsewhere. Votes are not "
    "included: download them on the Study results page."
)
REFRESH_SECONDS = 1.0
FROZEN = (
    "This study was imported with its items and explanations. It opens immediately and uses exactly those. To change "
    "the design, duplicate the study."
)


def show_study(study: int) -> None:
    """Open the page of one study."""
    st.query_params.from_dict({STUDY: str(study)})


def show_form(start: str) -> None:
    """Open the form of a new study."""
    st.query_params.from_dict({NEW: start})


def show_list() -> None:
    """Open the list of studies."""
    st.query_params.clear()


def duplicate(study: int) -> None:
    """Create a draft of the same design and open it."""
    _try(
        lambda: show_study(studies.duplicate(study).id), "Study duplicated. The copy is a draft with its own join link."
    )


def close(study: int) -> None:
    _try(lambda: studies.close(study), "The study is closed and accepts no more votes.")


def archive(study: int) -> None:
    _try(lambda: studies.archive(study), "The study is archived. Its votes and results are not affected.")


def delete(study: int, title: str) -> None:
    """Delete the study with all of its data, and open the list."""
    _try(lambda: studies.delete(study), f"Study {study}, {title}, is deleted.")
    if FAILURE_KEY not in st.session_state:
        show_list()


def draw_outcome() -> None:
    """Draw the outcome of the last action, once."""
    if failure := st.session_state.pop(FAILURE_KEY, ""):
        show_error(failure)
    if note := st.session_state.pop(NOTE_KEY, ""):
        show_note(note)


def leave_note(text: str) -> None:
    """Leave a note for the next run."""
    st.session_state[NOTE_KEY] = text


def _try(action: Callable[[], object], note: str) -> None:
    try:
        action()
    except Exception as error:
        st.session_state[FAILURE_KEY] = describe_error(error)
    else:
        leave_note(note)


@st.dialog("Close the study?")
def confirm_closing(record: StudyRecord, counts: AnswerCounts) -> None:
    """Ask for confirmation."""
    st.text(f"So far: {study_progress(record, counts)}")
    st.markdown("A closed study accepts no more votes and cannot be reopened.")
    draw_dialog_buttons("Close the study", "Keep it open", partial(close, record.id))


@st.dialog("Delete the study?")
def confirm_deleting(record: StudyRecord, counts: AnswerCounts) -> None:
    """Ask for the title as confirmation."""
    title = one_line_title(record)
    st.text(f"{title}\n{study_progress(record, counts)}")
    st.markdown("Deletes the study with its items, annotators and votes. This cannot be undone.")
    typed = st.text_input("Type the title to confirm", key=TYPED_TITLE, autocomplete="off")
    is_confirmed = " ".join(typed.split()) == title
    draw_dialog_buttons("Delete the study", "Keep it", partial(delete, record.id, title), disabled=not is_confirmed)


def draw_dialog_buttons(confirm: str, cancel: str, action: Callable[[], object], disabled: bool = False) -> None:
    """Draw the two buttons of a dialog, which both close it; the first one performs the action."""
    with st.container(horizontal=True, gap="small"):
        if st.button(confirm, type="primary", disabled=disabled):
            action()
            st.rerun()
        if st.button(cancel):
            st.rerun()


def draw_study_file_button(study: int) -> None:
    """Draw the download button of the study file."""
    name = f"study-{study}-design.json"
    file_button("Study file", name, "application/json", lambda: export_study(study), FILE_HELP, "study.file")


def draw_import() -> None:
    """Draw the section that imports a study file; it runs only while open."""
    section = st.expander("Import a study", icon=":material/upload_file:", key=IMPORT_KEY, on_change="rerun")
    if not section.open:
        return
    with section:
        file = st.file_uploader(
            "Study file",
            "json",
            key=UPLOAD_KEY,
            help="A file with votes becomes a closed study; a file without votes becomes a draft.",
        )
        if file is not None and st.button("Import the study", type="primary", key="study.import.go"):
            _import(file.getvalue())


def _import(data: bytes) -> None:
    try:
        with st.spinner("Reading the study …"):
            record = import_study(data)
    except Exception as error:
        show_error(describe_error(error))
        return
    leave_note("Study imported. It has its own join link.")
    show_study(record.id)
    st.rerun()


class Opening:
    """The opening of one study, in progress or failed."""

    def __init__(self, study: int) -> None:
        self.study = study
        self._units = (0, 0, "")
        self._work: Computation[StudyRecord] = Computation(f"opening of study {study}", self._open)
        self._work.token.join()  # never left: the work continues when no page watches it

    def start(self) -> None:
        self._work.start()

    def stop(self) -> None:
        """Stop before the next pass through the model; finished parts stay in the cache."""
        self._work.token.cancel()

    @property
    def is_over(self) -> bool:
        return self._work.finished.is_set()

    def wait(self, seconds: int | float) -> bool:
        """Wait at most this number of seconds. Return whether the opening is over."""
        return self._work.finished.wait(seconds)

    @property
    def progress(self) -> tuple[float, str]:
        """The finished share, from 0 to 1, and its description."""
        done, total, doing = self._units
        words = f"{done:,} of {total:,} {doing}".strip() if total else "loading the data set and the model"
        return (done / total if total else 0.0), f"{words} · {self._work.words()}"

    def failure(self) -> Exception | None:
        """Return the error that ended the opening, or None if the study is open."""
        try:
            self._work.result()
        except Exception as error:
            return error
        return None

    def _open(self, token: CancelToken) -> StudyRecord:
        return open_study(self.study, self._report, token)

    def _report(self, done: int, total: int, doing: str) -> None:
        """Record the progress. Predictions count examples; explanations are named by their method."""
        self._units = done, total, doing if doing in ("", "examples") else f"explanations ({doing})"


def start_opening(study: int) -> Opening:
    """Start opening the study, unless this is already in progress."""
    with _lock:
        opening = _openings.get(study)
        if opening is None or opening.is_over:
            opening = _openings[study] = Opening(study)
            opening.start()
        return opening


def current_opening(study: int) -> Opening | None:
    """Return the latest opening of that study until its end is acknowledged, else None."""
    with _lock:
        return _openings.get(study)


def forget_opening(study: int) -> None:
    """Acknowledge the end of an opening."""
    with _lock:
        if study in _openings and _openings[study].is_over:
            del _openings[study]


_lock = threading.Lock()
_openings: dict[int, Opening] = {}


def draw_new_study(start: str, zone: tzinfo) -> None:
    """Draw the form of a new study. `start`: name of a preset; any other string stands for a blank design."""
    model = next(iter(embedded_models()), "")
    if start in PRESETS:
        st.header(f"New study: {PRESETS[start].title}", anchor=False)
        show_note(PRESETS[start].note(model, "text"))
    else:
        st.header("New study", anchor=False)
    with st.spinner("Loading …"):
        design = find_preset(start).design(model, "reviews", "text") if start in PRESETS else Design(model=model)
        fill_form(f"new {start}", design, zone)
    draw_form()
    if st.button("Save draft", type="primary", key="study.save"):
        _create(zone)


def draw_draft(record: StudyRecord, zone: tzinfo) -> None:
    """Draw the form, or the progress of opening."""
    opening = current_opening(record.id)
    if opening is not None and not opening.is_over:
        forget_form()
        st.fragment(_draw_opening, run_every=REFRESH_SECONDS)(opening)
        return
    if opening is not None and (error := opening.failure()):
        show_error(describe_field_error(error))
    if has_snapshot(record.id):
        show_note(FROZEN)
        _draw_open_button(record, True)
        return
    with st.spinner("Loading …"):
        fill_form(f"{record.id} {key_for(record.design.to_json())}", record.design, zone)
    draw_form()
    _draw_save(record, zone)


def _draw_opening(opening: Opening) -> None:
    if opening.is_over:
        if opening.failure() is None:
            forget_opening(opening.study)
            leave_note("The study is open. Send its link to the participants.")
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        share, words = opening.progress
        st.progress(min(1.0, share), f"Opening: {words}")
        st.button(
            "Stop",
            key="study.stop",
            on_click=opening.stop,
            help="Finished explanations stay in the cache, so the next attempt is faster.",
        )


def _draw_save(record: StudyRecord, zone: tzinfo) -> None:
    try:
        design = check_design(read_design(zone))
        check_available(design)
        failure = ""
    except ExegesisError as error:
        design, failure = None, describe_field_error(error)
    is_saved = design == record.design
    if failure:
        show_error(failure)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        disabled = is_saved or design is None
        if st.button("Save draft", key="study.save", disabled=disabled) and design is not None:
            _save(record, design)
        _draw_open_button(record, is_saved)


def _draw_open_button(record: StudyRecord, is_saved: bool) -> None:
    if st.button(
        "Open study …", type="primary", key="study.open", disabled=not is_saved,
        help="Computes all explanations. You will be asked to confirm." if is_saved else "Save the draft first.",
    ):  # fmt: skip
        confirm_opening(record)


@st.dialog("Open the study?")
def confirm_opening(record: StudyRecord) -> None:
    """Ask for confirmation, and say what can no longer be changed afterwards."""
    design = record.design
    items, methods = design.item_count + design.practice, len(design.ballot_methods)
    st.text(f"{items:,} items with {methods} explanations each: {items * methods:,} explanations")
    st.markdown(
        "The explanations are computed now and stored with the study, so later changes to the model or the data do not "
        "alter what participants see. The design and the exclusion rules cannot be changed afterwards. The computation "
        "continues if you close this page."
    )
    if unfilled := consent_placeholders(design.consent):
        show_note(f"The consent text still contains placeholders: {', '.join(unfilled)}.")
    draw_dialog_buttons("Open study", "Cancel", partial(start_opening, record.id))


def _save(record: StudyRecord, design: Design) -> None:
    try:
        change(record.id, design)
    except ExegesisError as error:
        show_error(describe_field_error(error))
        return
    forget_opening(record.id)
    leave_note("Draft saved.")
    st.rerun()


def _create(zone: tzinfo) -> None:
    try:
        record = create(read_design(zone))
    except ExegesisError as error:
        show_error(describe_field_error(error))
        return
    leave_note("Draft saved. Open it when you are ready.")
    show_study(record.id)
    st.rerun()
