"""A text edited: the controls that edit it, and what the edit did to the prediction and to each map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.engine_room import explain
from components.filling import Place, fill
from components.inputs import text_choice
from components.kept import KEPT
from components.prediction_area import PROBE
from components.question_styles import use_question_styles
from components.replacing import Span, replaceable, replaceable_in, with_replaced
from components.text.results import request_for
from components.text.session import key, put, value
from components.text.state import TextState
from components.trouble import literal, say_error, say_note, sentence
from components.widgets.token_map.edited import edited_map, edited_map_html, how_to_read_html, predictions_html
from engine.registry import Explainer
from engine.request import Example, Request
from engine.result import Explanation

REPLACE = "replace."
NAMED_CHARACTERS = 40
Made = Mapping[str, Explanation]


def edited_area(state: TextState, methods: Mapping[str, Explainer], made: Made, probe: Explanation) -> None:
    """Below the maps: the text can be edited, and the edited one stands beside its parent."""
    child = edited_example(state)
    beside = _controls(state, child)
    edited = _read(state, child, probe)
    with beside:
        _replace_control(state, child or state.example, probe, edited)
    if edited is None or child is None or child == state.example:
        return
    use_question_styles()
    _predictions(probe, edited)
    if made:
        _maps(state, child, edited.provenance.target, methods, made)


def edited_example(state: TextState) -> Example | None:
    """The edited text, with the parent's second text where that was not edited; None where nothing is edited."""
    if state.edit is None:
        return None
    return Example(state.edit, state.example.text_pair if state.edit_pair is None else state.edit_pair)


def _controls(state: TextState, child: Example | None) -> DeltaGenerator:
    """The switch, and what is edited once it is on; where more fits beside the switch."""
    st.subheader("Edit the text", anchor=False)
    put("editing", state.edit is not None)
    beside = st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key=key("edit_controls"))
    beside.toggle(
        "Edit this text", key=key("editing"), on_change=_switch, args=(state.example,), width=220,
        help="The edited text stands beside this one: what becomes of the prediction and of each map?",
    )  # fmt: skip
    if child is not None:
        _fields(state.example, child)
    return beside


def _fields(parent: Example, child: Example) -> None:
    st.text_area("Edited text", key=key("edit"), height=90, persist_state=KEPT)
    if parent.text_pair is not None:
        st.text_area("Edited second text", key=key("edit_pair"), height=68, persist_state=KEPT)
    with st.container(horizontal=True, gap="small"):
        st.button(
            "Go on from here", key=key("edit_go_on"), on_click=_go_on, args=(child,),
            help="The edited text becomes the text of the page.",
        )  # fmt: skip
        st.button("Drop the edit", key=key("edit_drop"), on_click=_take, args=(None,))


def _read(state: TextState, child: Example | None, probe: Explanation) -> Explanation | None:
    """How the model reads the edited text, or the parent where they are the same; None after saying why it does not.

    The class is the one that is explained in the parent.
    """
    if child is None:
        return probe
    if trouble := _unfit(child, state.example):
        st.info(trouble)
        return probe if child == state.example else None
    try:
        target = explain(request_for(state, PROBE)).provenance.target
        return explain(_request(state, PROBE, child, target))
    except Exception as error:
        say_error(sentence(error))
        return None


def _replace_control(state: TextState, child: Example, probe: Explanation, edited: Explanation | None) -> None:
    """Offers to replace what is pinned, in the text as it is edited so far."""
    span = replaceable(probe.tokens, state.pins)
    if span is None or edited is None:
        return
    now, name = replaceable_in(edited.tokens, probe.tokens, state.pins), REPLACE + ".".join(map(str, span))
    if now is None:
        st.caption("What is pinned no longer stands in the edited text.")
        return
    segment, start, end = span
    old = ((state.example.text, state.example.text_pair)[segment] or "")[start:end]
    st.text_input(
        f"Replace «{_named(old)}» with", key=key(name), on_change=_replace, args=(child, now, name), width=320,
        help="Press Enter to see the edited text beside this one. A space alone deletes.",
    )  # fmt: skip


def _named(text: str) -> str:
    """A short text that a label shows as it is, whatever Markdown would make of it."""
    short = " ".join(text.split())
    short = short if len(short) <= NAMED_CHARACTERS else f"{short[: NAMED_CHARACTERS - 1]}…"
    return literal(short)


def _switch(example: Example) -> None:
    _take(example if value("editing") else None)


def _replace(example: Example, span: Span, name: str) -> None:
    new = value(name)
    if new:
        _take(with_replaced(example, span, new))


def _take(edited: Example | None) -> None:
    if edited is None:
        # Else the same word could not be typed again: a field tells only what differs from what it holds.
        for name in [name for name in st.session_state if str(name).startswith(key(REPLACE))]:
            st.session_state[name] = ""
    put("edit", None if edited is None else edited.text)
    put("edit_pair", None if edited is None else edited.text_pair)


def _go_on(edited: Example) -> None:
    own = {"index": None, "text": edited.text, "has_pair": edited.text_pair is not None, "pair": edited.text_pair or ""}
    for name, new in own.items():
        st.session_state[text_choice.key(name)] = new


def _unfit(child: Example, parent: Example) -> str:
    """Why there is nothing to compare yet; empty when there is."""
    if not child.text.strip():
        return "The edited text is empty. Type what the model should read instead, or drop the edit."
    if child.text_pair is not None and not child.text_pair.strip():
        return "The edited second text is empty. Type what the model should read instead, or drop the edit."
    if child == parent:
        return "Change the text above to see what becomes of the prediction and of each map."
    return ""


def _predictions(probe: Explanation, edited: Explanation) -> None:
    st.html(predictions_html(probe.prediction, edited.prediction, edited.provenance.target))
    for note in edited.notes:
        if note not in probe.notes:
            say_note(f"The edited text: {note}")


def _maps(state: TextState, child: Example, target: int, methods: Mapping[str, Explainer], made: Made) -> None:
    st.html(how_to_read_html(next(iter(made.values())), state.unit))
    progress, stack = st.empty(), st.container(gap=None, key="edited_rows")
    places = [Place(methods[id], _request(state, id, child, target), stack.empty()) for id in made]

    def draw(method: Explainer, after: Explanation) -> str:
        before = made[method.id]
        return edited_map_html(edited_map(method, before, after, state.example, child, state.unit, state.look))

    fill(places, draw, progress)


def _request(state: TextState, method: str, child: Example, target: int) -> Request:
    """What is asked of the edited text: the class that is explained in the parent, so that the maps compare."""
    return replace(request_for(state, method), example=child, target=target)
