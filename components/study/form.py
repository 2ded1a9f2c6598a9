"""The form in which an organiser decides everything about a study before it opens."""

from __future__ import annotations

from datetime import tzinfo

import streamlit as st

from components.safe_markdown import markdown
from components.study.controls import NARROW, key, known_or_other, line, lines, number, one_of, put, row, value
from components.study.fields import Fields, control_names, design_of, fields_of
from components.study.items import items_form
from components.study.methods import fill_methods, held_methods, methods_form
from engine.data.sources import listed_datasets
from engine.models.catalog import list_models
from engine.registry import KINDS
from engine.study.design import PREDICT, RANK, USUAL_TEXTS, Design

FILLED, DRAWN = "study_form_filled", "study_form_drawn"
"""In the session: what the controls were filled from, and what they were drawn with in full."""
CURTAIN = (
    "<style>.st-key-study_form { visibility: hidden; }</style>"
    '<div class="xg"><p class="xg-small" role="status">Drawing the form …</p></div>'
)
MODES = {RANK: "Rank explanations", PREDICT: "Guess the answer"}
KIND_WORDS = {"text": "Texts", "image": "Pictures"}
MODEL_HELP = "An embedded model, a folder of a checkpoint, or a hub id."
DATA_HELP = "A data set of the list, a file or folder of your own, or hub:owner/name."
QUESTION_HELP = "People read it at every item."
MARKDOWN_HELP = "Markdown: headings, lists, emphasis, links. HTML and pictures are left out."


def fill(source: str, design: Design, zone: tzinfo) -> None:
    """Gives the controls what the design says, unless they were filled from the same `source` already."""
    if st.session_state.get(FILLED) == source and key("title") in st.session_state:
        return
    for name, held in fields_of(design, zone).items():
        put(name, held)
    for kind in KINDS:
        _fill_kind(kind, design if design.kind == kind else Design(kind=kind))
    st.session_state[FILLED] = source


def study_form() -> None:
    """Draw the controls, which appear together once all are drawn.

    With each choice the browser sends the values of the controls that it knows, and Streamlit sends it those of the
    others again: a value typed into one of these meanwhile would be lost.
    """
    curtain = st.empty()
    if st.session_state.get(DRAWN) != st.session_state[FILLED]:
        curtain.html(CURTAIN)
    try:
        with st.container(key="study_form"):
            _controls()
    finally:
        curtain.empty()
    st.session_state[DRAWN] = st.session_state[FILLED]


def _controls() -> None:
    with st.container(border=True):
        _subject()
    with st.container(border=True):
        items_form()
    with st.container(border=True):
        _explanations()
    with st.container(border=True):
        _people()
    with st.container(border=True):
        _texts()
    with st.container(border=True):
        _rules()


def held_design(zone: tzinfo) -> Design:
    """The design that the controls hold, not checked as a whole. Errors name what is not allowed in one of them."""
    kind = value("kind")
    fields: Fields = {name: value(name) for name in control_names()}
    model, dataset = ((value(f"{kind}.{name}") or "").strip() for name in ("model", "dataset"))
    return design_of(fields, model, dataset, held_methods(kind), zone)


def _subject() -> None:
    st.subheader("What is judged", anchor=False)
    line("title", "Title", "Participants see it.")
    with st.container(horizontal=True, gap="medium"):
        one_of("mode", "What people do", MODES, _word)
        one_of("kind", "Items", KIND_WORDS)
    line("question", "Question", QUESTION_HELP)
    kind = value("kind")
    left, right = st.columns(2, gap="medium")
    with left:
        known_or_other(f"{kind}.model", "Model", _models(kind), MODEL_HELP)
    with right:
        known_or_other(f"{kind}.dataset", "Data set", _data(kind), DATA_HELP)


def _word() -> None:
    """Texts that nobody has changed go with what people do."""
    for name, usual in USUAL_TEXTS.items():
        if value(name) in usual.values():
            put(name, usual[value("mode")])


def _explanations() -> None:
    st.subheader("Explanations", anchor=False)
    methods_form(value("kind"))
    st.caption("2 to 6 methods. People never learn which method made what; the random one shows what luck looks like.")


def _people() -> None:
    st.subheader("People", anchor=False)
    with row():
        number("items_per_annotator", "Items a person sees")
        number("repeats", "Of these seen twice")
        number("votes_per_item", "Votes wanted an item")
    st.datetime_input(
        "Closes by itself", None, key=key("closes_at"), width=2 * NARROW, format="YYYY-MM-DD", persist_state="page",
        help="In the time zone of your browser. Empty: it stays open until you close it.",
    )  # fmt: skip


def _texts() -> None:
    st.subheader("What people read", anchor=False)
    for name, label in (("consent", "Consent"), ("instructions", "Instructions")):
        left, right = st.columns(2, gap="medium")
        with left:
            lines(name, label, MARKDOWN_HELP, 220)
        with right:
            st.caption(f"{label} as people see it")
            with st.container(border=True):
                markdown(value(name))


def _rules() -> None:
    st.subheader("Which votes the results leave out", anchor=False)
    st.caption("Declared now, fixed when the study opens, and told beside the results. 0 and empty: none.")
    with row():
        number("exclusion.least_seconds", "Made in less seconds")
        number("exclusion.least_votes", "Of people with fewer votes")
        number("exclusion.most_cannot_tell", "Share of “cannot tell” above", 0.05)
        if value("mode") == RANK or value("exclusion.least_consistency") is not None:  # guesses have none
            number("exclusion.least_consistency", "Self-consistency below", 0.05)


def _models(kind: str) -> list[str]:
    return list_models(kind)


def _data(kind: str) -> list[str]:
    return listed_datasets(kind)


def _usual_data(kind: str, model: str | None) -> str | None:
    """The data set after which the model is named, else the first."""
    known = _data(kind)
    return next((name for name in known if (model or "").startswith(name)), next(iter(known), None))


def _fill_kind(kind: str, design: Design) -> None:
    put(f"{kind}.model", design.model or next(iter(_models(kind)), None))
    put(f"{kind}.dataset", design.dataset or _usual_data(kind, value(f"{kind}.model")))
    fill_methods(kind, design.methods)
