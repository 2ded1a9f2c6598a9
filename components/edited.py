"""A text edited: the controls that edit it, and what the edit did to the prediction and to each map."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import streamlit as st

from components import focus_controls
from components.edited_view import edited_map, edited_map_html, how_to_read_html, predictions_html
from components.engine_room import explain
from components.filling import Place, fill
from components.question_styles import use_question_styles
from components.text_results import PROBE, request_for
from components.text_session import key, put, value
from components.text_state import TextState
from components.trouble import sentence
from components.without import pinned
from engine.registry import Explainer
from engine.request import Example, Request
from engine.result import Explanation, Token

REPLACE = "replace."
NAMED_CHARACTERS = 40
MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!~|$:<>&])")
Made = Mapping[str, Explanation]


def edited_area(state: TextState, methods: Mapping[str, Explainer], made: Made, probe: Explanation) -> None:
    """Below the maps: the text can be edited, and the edited one stands beside its parent."""
    _controls(state, probe)
    child = edited_example(state)
    if child is None:
        return
    trouble = _unfit(child, state.example)
    if trouble:
        st.info(trouble)
        return
    use_question_styles()
    target = _predictions(state, child, probe)
    if target is not None and made:
        _maps(state, child, target, methods, made)


def edited_example(state: TextState) -> Example | None:
    """The edited text, with the parent's second text where that was not edited; None where nothing is edited."""
    if state.edit is None:
        return None
    return Example(state.edit, state.example.text_pair if state.edit_pair is None else state.edit_pair)


def replaceable(tokens: Sequence[Token], pins: Sequence[int]) -> tuple[int, int, int] | None:
    """Which of the texts and which of its characters the pins span; None where they are not neighbours of one text."""
    chosen = pinned(pins, tokens)
    if not chosen or len(chosen) != chosen[-1] - chosen[0] + 1:
        return None
    spanned = [tokens[i] for i in chosen]
    if len({token.segment for token in spanned}) > 1:
        return None
    return spanned[0].segment, min(token.start for token in spanned), max(token.end for token in spanned)


def with_replaced(example: Example, span: tuple[int, int, int], new: str) -> Example:
    """The example with other characters in the span."""
    segment, start, end = span
    texts = [example.text, example.text_pair]
    old = texts[segment] or ""
    texts[segment] = f"{old[:start]}{new}{old[end:]}"
    return Example(texts[0] or "", texts[1])


def _controls(state: TextState, probe: Explanation) -> None:
    st.subheader("Edit the text", anchor=False)
    put("editing", state.edit is not None)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key=key("edit_controls")):
        st.toggle(
            "Edit this text", key=key("editing"), on_change=_switch, args=(state.example,), width=220,
            help="The edited text stands beside this one: what becomes of the prediction and of each map?",
        )  # fmt: skip
        _replace_control(state.example, replaceable(probe.tokens, state.pins))
    if state.edit is None:
        return
    st.text_area("Edited text", key=key("edit"), height=90)
    if state.example.text_pair is not None:
        st.text_area("Edited second text", key=key("edit_pair"), height=68)
    with st.container(horizontal=True, gap="small"):
        child = edited_example(state)
        st.button(
            "Go on from here", key=key("edit_go_on"), on_click=_go_on, args=(child,),
            help="The edited text becomes the text of the page.",
        )  # fmt: skip
        st.button("Drop the edit", key=key("edit_drop"), on_click=_take, args=(None,))


def _replace_control(example: Example, span: tuple[int, int, int] | None) -> None:
    if span is None:
        return
    segment, start, end = span
    old = ((example.text, example.text_pair)[segment] or "")[start:end]
    name = REPLACE + ".".join(map(str, span))
    st.text_input(
        f"Replace «{_named(old)}» with", key=key(name), on_change=_replace, args=(example, span, name), width=320,
        help="Press Enter to see the edited text beside this one.",
    )  # fmt: skip


def _named(text: str) -> str:
    """A short text that a label shows as it is, whatever Markdown would make of it."""
    short = " ".join(text.split())
    short = short if len(short) <= NAMED_CHARACTERS else f"{short[: NAMED_CHARACTERS - 1]}…"
    return MARKDOWN.sub(r"\\\1", short)


def _switch(example: Example) -> None:
    _take(example if value("editing") else None)


def _replace(example: Example, span: tuple[int, int, int], name: str) -> None:
    new = value(name)
    _take(with_replaced(example, span, new) if new.strip() else None)


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
        st.session_state[focus_controls.key(name)] = new


def _unfit(child: Example, parent: Example) -> str:
    """Why there is nothing to compare yet; empty when there is."""
    if not child.text.strip():
        return "The edited text is empty. Type what the model should read instead, or drop the edit."
    if child.text_pair is not None and not child.text_pair.strip():
        return "The edited second text is empty. Type what the model should read instead, or drop the edit."
    if child == parent:
        return "Change the text above to see what becomes of the prediction and of each map."
    return ""


def _predictions(state: TextState, child: Example, probe: Explanation) -> int | None:
    """Draws both predictions; the explained class, or None after saying why the edited text has no prediction."""
    try:
        target = explain(request_for(state, PROBE)).provenance.target
        edited = explain(_request(state, PROBE, child, target))
    except Exception as error:
        st.error(sentence(error))
        return None
    st.html(predictions_html(probe.prediction, edited.prediction, target))
    for note in edited.notes:
        if note not in probe.notes:
            st.warning(f"The edited text: {note}")
    return target


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
