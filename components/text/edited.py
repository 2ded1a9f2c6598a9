"""An edited text: the controls that edit it, and how the edit changes the prediction and each map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.ablation import Span, pinned_span, pinned_span_in_edit, substitute, use_question_styles
from components.compute import explain
from components.controls import PERSIST
from components.errors import describe_error, escape_label, show_error, show_note
from components.inputs import text_choice
from components.prediction import PROBE
from components.progress import MethodPlace, fill_places
from components.text.state import TextState, key, put, value
from components.widgets.token_map.edited import edited_map, edited_map_html, how_to_read_html, predictions_html
from engine.registry import Explainer
from engine.request import Example, Request
from engine.result import Explanation

REPLACE = "replace."
MOST_CHARACTERS = 40
"""Characters of the replaced text in a label."""


def draw_edit(
    state: TextState, methods: Mapping[str, Explainer], explanations: Mapping[str, Explanation], probe: Explanation
) -> None:
    """Draw the controls of the edit below the maps, and the edited text beside its parent."""
    child = edited_example(state)
    switch_row = _draw_controls(state, child)
    edited = _explain_edit(state, child, probe)
    with switch_row:
        _draw_replacement(state, child or state.example, probe, edited)
    if edited is None or child is None or child == state.example:
        return
    use_question_styles()
    st.html(predictions_html(probe.prediction, edited.prediction, edited.provenance.target))
    for note in edited.notes:
        if note not in probe.notes:
            show_note(f"The edited text: {note}")
    if explanations:
        _draw_maps(state, child, edited.provenance.target, methods, explanations)


def edited_example(state: TextState) -> Example | None:
    """The edited text, with the parent's second text where that was not edited; None where nothing is edited."""
    if state.edit is None:
        return None
    return Example(state.edit, state.example.text_pair if state.edit_pair is None else state.edit_pair)


def _draw_controls(state: TextState, child: Example | None) -> DeltaGenerator:
    """Draw the switch, and the fields once it is on; return the row of the switch, which has room for more."""
    st.subheader("Edit the text", anchor=False)
    put("editing", state.edit is not None)
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key=key("edit_controls"))
    row.toggle(
        "Edit this text", key=key("editing"), on_change=_take_switch, args=(state.example,), width=220,
        help="Compares the prediction and each map before and after the edit.",
    )  # fmt: skip
    if child is not None:
        _draw_fields(state.example, child)
    return row


def _draw_fields(parent: Example, child: Example) -> None:
    st.text_area("Edited text", key=key("edit"), height=90, persist_state=PERSIST)
    if parent.text_pair is not None:
        st.text_area("Edited second text", key=key("edit_pair"), height=68, persist_state=PERSIST)
    with st.container(horizontal=True, gap="small"):
        st.button(
            "Use as the text", key=key("edit_go_on"), on_click=_take_as_text, args=(child,),
            help="Makes the edited text the text of this page.",
        )  # fmt: skip
        st.button("Discard the edit", key=key("edit_drop"), on_click=_set_edit, args=(None,))


def _explain_edit(state: TextState, child: Example | None, probe: Explanation) -> Explanation | None:
    """The prediction of the edited text, or of the parent where they are the same; None after saying why there is none.

    The class is the one that is explained in the parent.
    """
    if child is None:
        return probe
    if hint := _explain_missing(child, state.example):
        st.info(hint)
        return probe if child == state.example else None
    try:
        target = explain(state.request(PROBE)).provenance.target
        return explain(_edit_request(state, PROBE, child, target))
    except Exception as error:
        show_error(describe_error(error))
        return None


def _draw_replacement(state: TextState, child: Example, probe: Explanation, edited: Explanation | None) -> None:
    """Draw a field that replaces the pinned tokens, in the text as it is edited so far."""
    span = pinned_span(probe.tokens, state.pins)
    if span is None or edited is None:
        return
    edited_span, name = pinned_span_in_edit(edited.tokens, probe.tokens, state.pins), REPLACE + ".".join(map(str, span))
    if edited_span is None:
        st.caption("The pinned tokens are no longer in the edited text.")
        return
    segment, start, end = span
    old = ((state.example.text, state.example.text_pair)[segment] or "")[start:end]
    st.text_input(
        f"Replace “{_shorten(old)}” with", key=key(name), on_change=_replace, args=(child, edited_span, name),
        width=320, help="Press Enter to apply. A single space deletes the pinned text.",
    )  # fmt: skip


def _shorten(text: str) -> str:
    """A short text that a label shows as it is, whatever Markdown would make of it."""
    short = " ".join(text.split())
    return escape_label(short if len(short) <= MOST_CHARACTERS else f"{short[: MOST_CHARACTERS - 1]}…")


def _take_switch(example: Example) -> None:
    _set_edit(example if value("editing") else None)


def _replace(example: Example, span: Span, name: str) -> None:
    if new := value(name):
        _set_edit(substitute(example, span, new))


def _set_edit(edited: Example | None) -> None:
    if edited is None:
        # Else the same word could not be typed again: a field sends only what differs from its value.
        for name in [name for name in st.session_state if str(name).startswith(key(REPLACE))]:
            st.session_state[name] = ""
    put("edit", None if edited is None else edited.text)
    put("edit_pair", None if edited is None else edited.text_pair)


def _take_as_text(edited: Example) -> None:
    own = {"index": None, "text": edited.text, "has_pair": edited.text_pair is not None, "pair": edited.text_pair or ""}
    for name, new in own.items():
        st.session_state[text_choice.key(name)] = new


def _explain_missing(child: Example, parent: Example) -> str:
    """Why there is nothing to compare yet; empty when there is."""
    if not child.text.strip():
        return "The edited text is empty. Type a text, or discard the edit."
    if child.text_pair is not None and not child.text_pair.strip():
        return "The edited second text is empty. Type a text, or discard the edit."
    if child == parent:
        return "Change the text above to see how the prediction and each map change."
    return ""


def _draw_maps(
    state: TextState,
    child: Example,
    target: int,
    methods: Mapping[str, Explainer],
    explanations: Mapping[str, Explanation],
) -> None:
    st.html(how_to_read_html(next(iter(explanations.values())), state.unit))
    progress, rows = st.empty(), st.container(gap=None, key="edited_rows")
    places = [MethodPlace(methods[id], _edit_request(state, id, child, target), rows.empty()) for id in explanations]

    def draw(method: Explainer, after: Explanation) -> str:
        before = explanations[method.id]
        return edited_map_html(edited_map(method, before, after, state.example, child, state.unit, state.view))

    fill_places(places, draw, progress)


def _edit_request(state: TextState, method: str, child: Example, target: int) -> Request:
    """The request for the edited text: the class that is explained in the parent, so that the maps compare."""
    return replace(state.request(method), example=child, target=target)
