"""The Attention page's own controls: the score, which map of each head, which heads."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from components.attention.look import BETWEEN, DETAILS, LOOK, ORDERS, SCALES, SCORE_NAMES, UNITS, VIEWS
from components.attention.session import Opened, key
from components.attention.state import AttentionState
from components.inputs import picture_choice as picture_focus_controls
from components.inputs import text_choice
from components.inputs.datasets import OpenTexts
from components.kept import KEPT
from engine.heads.readings import HeadReading
from engine.heads.scores import AGREES, SCORES

SCORE_TITLES = {score.id: score.title for score in (*SCORES.values(), AGREES)}
VIEW_TITLES = {
    "text": {"matrix": "Matrix", "received": "Received", "query": "From one token"},
    "image": {"query": "From one patch", "received": "Received", "matrix": "Matrix"},
}
VIEW_HELP = (
    "Matrix: queries down, keys across. Received: what each {unit} gets, mean over the queries that may attend to it. "
    "From one {unit}: what one query attends to, at first the one that the model reads ({read}); click another in the "
    "detail."
)
ORDER_TITLES = {"place": "By layer", "score": "By score"}
DETAIL_TITLES = {"matrix": "Matrix", "lines": "Lines", "overlay": "Over the picture"}
BETWEEN_TITLES: Mapping[str, str] = {
    "all": "All", "a_to_b": "First to second text", "b_to_a": "Second to first text"
}  # fmt: skip


def looking_controls(models: list[str], opened: Opened) -> None:
    """Which model looks at what: the same controls as on the Text and Images pages."""
    if isinstance(opened, OpenTexts):
        text_choice.draw_focus_controls(models, opened)
        text_choice.draw_text_fields()
    else:
        picture_focus_controls.draw_focus_controls(models, opened)


def board_controls(state: AttentionState, reading: HeadReading) -> None:
    """How the heads are coloured, drawn and picked."""
    kind = state.kind
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key=key(kind, "options")):
        st.selectbox(
            "Colour heads by",
            SCORE_NAMES,
            key=key(kind, f"{LOOK}score"),
            format_func=SCORE_TITLES.__getitem__,
            width=270,
            persist_state=KEPT,
        )
        st.segmented_control(
            "Map of each head", VIEWS[kind], key=key(kind, f"{LOOK}view"), required=True,
            format_func=VIEW_TITLES[kind].__getitem__, help=_view_help(kind, reading), persist_state=KEPT,
        )  # fmt: skip
        st.segmented_control(
            "Detail",
            DETAILS[kind],
            key=key(kind, f"{LOOK}detail"),
            required=True,
            format_func=DETAIL_TITLES.__getitem__,
            persist_state=KEPT,
        )
        with st.popover("View", key=key(kind, "view")):
            _view_controls(state, reading)


def _view_controls(state: AttentionState, reading: HeadReading) -> None:
    kind, (layers, heads) = state.kind, reading.slope.shape
    st.segmented_control(
        "Scale", SCALES, key=key(kind, f"{LOOK}scale"), required=True, format_func=str.capitalize, persist_state=KEPT,
        help="Own: each head's largest attention has the full colour. Shared: the largest of all heads has it.",
    )  # fmt: skip
    st.segmented_control(
        "Order", ORDERS, key=key(kind, f"{LOOK}order"), required=True,
        format_func=ORDER_TITLES.__getitem__, persist_state=KEPT,
    )  # fmt: skip
    if _is_pair(reading):
        st.selectbox(
            "Attention between", BETWEEN, key=key(kind, f"{LOOK}between"), format_func=BETWEEN_TITLES.__getitem__,
            persist_state=KEPT,
        )  # fmt: skip
    st.toggle(
        "Special tokens in matrices", key=key(kind, f"{LOOK}special"), persist_state=KEPT,
        help="Heads often rest on [CLS] and [SEP] when they have nothing to do. Without them the rest is seen better; "
        "its shares stay what they were.",
    )  # fmt: skip
    for name, count in (("layers", layers), ("heads", heads)):
        st.multiselect(
            name.capitalize(), range(count), key=key(kind, f"{LOOK}{name}"), placeholder=f"All {name}",
            persist_state=KEPT,
        )  # fmt: skip


def _view_help(kind: str, reading: HeadReading) -> str:
    # Words with a closed form only: a token's text may hold Markdown.
    read = "their mean" if (reading.reads > 0).sum() > 1 else f"position {reading.reads.argmax()}"
    return VIEW_HELP.format(unit=UNITS[kind], read=read)


def _is_pair(reading: HeadReading) -> bool:
    return len({token.segment for token in reading.of.tokens if not token.special}) > 1
