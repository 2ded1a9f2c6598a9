"""Heads switched off or scaled by hand, and what that does to the prediction and to any attribution."""

from __future__ import annotations

import streamlit as st

from components.attention.head_changes import Change, changes, in_words, is_off, of_layer, scale_of, with_scale
from components.attention.look import Head, head_name
from components.attention.scores import HeadMap
from components.attention.session import key, lock, switch
from components.attention.shown_head import shown_head
from components.attention.state import AttentionState
from components.attention.with_and_without import with_and_without
from components.kept import KEPT
from engine.heads.readings import HeadReading
from engine.heads.scales import LARGEST, OFF, PLAIN, HeadScales

STEP = 0.1


def switch_area(state: AttentionState, reading: HeadReading, scores: HeadMap | None = None) -> None:
    """The section: which heads are changed and, once one is, the model with and without the changes."""
    st.subheader("Switch heads", anchor=False)
    opened = st.toggle(
        "Switch heads off, or scale them", key=key(state.kind, "open.switch"), persist_state=KEPT,
        help="What a head writes is multiplied by its scale. Everything on this page then is of the changed model; "
        "the model's files stay as they are.",
    )  # fmt: skip
    if not opened:
        return
    head, size = shown_head(state.look, scores, reading), reading.slope.shape
    _head_controls(state, head, size[1])
    if not state.switched:
        st.caption("Nothing is changed yet. Switch a head off, or move its slider, to see what becomes of the model.")
        return
    _list(state, size[1])
    if is_off(state.switched, [head for layer in range(size[0]) for head in of_layer(layer, size[1])]):
        st.caption("All heads of all layers are off: what the model knows of a place comes from that place alone.")
    with_and_without(state)


def _head_controls(state: AttentionState, head: Head, count: int) -> None:
    """The scale of the shown head, as a slider and as a switch, and the switch of its layer."""
    name, layer = key(state.kind, f"scale.{head_name(head)}"), of_layer(head[0], count)
    st.session_state[name] = scale_of(state.switched, head)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key=key(state.kind, "switching")):
        st.slider(
            f"Scale of head {head_name(head)}", OFF, LARGEST, key=name, step=STEP, width=320,
            on_change=_slid, args=(state, head, name),
            help="0 switches the head off, 1 is the model as it is, 2 doubles what the head writes. The head is the "
            "one that is shown above: click another there.",
        )  # fmt: skip
        _switch_button(state, head, (head,), f"head {head_name(head)}", "head")
        if count > 1:
            _switch_button(state, head, layer, f"all of layer {head[0]}", "layer")


def _switch_button(state: AttentionState, shown: Head, heads: tuple[Head, ...], what: str, name: str) -> None:
    off = is_off(state.switched, heads)
    now = with_scale(state.switched, heads, 1.0 if off else OFF)
    st.button(
        f"Switch {'on' if off else 'off'} {what}", key=key(state.kind, f"switch.{name}"),
        on_click=_change, args=(state, shown, now),
    )  # fmt: skip


def _slid(state: AttentionState, head: Head, name: str) -> None:
    _change(state, head, with_scale(state.switched, [head], round(st.session_state[name], 2)))


def _change(state: AttentionState, shown: Head, scales: HeadScales) -> None:
    """The shown head stays the shown one, also where the change makes another the strongest."""
    switch(state.kind, scales)
    lock(state.kind, shown, alone=state.look.alone and state.look.head == shown)


def restore_button(state: AttentionState) -> None:
    """Takes every change back: also where a link changes heads that the model does not have."""
    if state.switched:
        st.button("Restore all heads", key=key(state.kind, "restore"), on_click=switch, args=(state.kind, PLAIN))


def _list(state: AttentionState, count: int) -> None:
    """Everything that is changed, each to be taken back, and all of it at once."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=key(state.kind, "changed")):
        st.caption("Changed, to be taken back by a click:", width="content")
        for change in changes(state.switched, count):
            _back_button(state, change)
        restore_button(state)


def _back_button(state: AttentionState, change: Change) -> None:
    st.button(
        in_words(change), key=key(state.kind, f"back.{change.name}"), icon=":material/close:", width="content",
        on_click=switch, args=(state.kind, with_scale(state.switched, change.heads, 1.0)),
        help=f"Takes the change of {change.name} back.",
    )  # fmt: skip
