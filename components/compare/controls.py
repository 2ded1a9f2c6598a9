"""The Compare page's own controls: what is looked at, the class that is explained, how maps stand side by side."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial

import streamlit as st

from components.browse.examples import neighbors
from components.compare.look import LAYOUTS, PERCENTS, SCALES, SHOWN, UNITS
from components.compare.session import LOOK, Opened, key, labels_known
from components.compare.state import CompareState
from components.inputs import picture_choice as picture_focus_controls
from components.inputs import text_choice
from components.inputs.datasets import OpenTexts
from components.kept import KEPT
from components.map_controls import gamma_slider, seed_input
from components.prediction_area import PREDICTED
from components.widgets.patch_map.picker import MOST_OPACITY
from engine.comparison.agreeing import ORDERS

UNIT_TITLES = {"word": "Words", "token": "Tokens"}
LAYOUT_TITLES = {"table": "Table", "text": "Text"}
SHOWN_TITLES = {"scores": "Scores", "difference": "Difference", "moves": "Rank moves"}
ORDER_TITLES = {"size": "By size", "sign": "With sign"}
PINS_FIRST = "Both need a column pinned as the reference: open one above to pin it."


def looking_controls(opened: Opened) -> None:
    """Which text or picture all columns look at, and the way to the one before and after."""
    if not isinstance(opened, OpenTexts):
        picture_focus_controls.draw_example_controls(opened)
        return
    text_choice.draw_example_controls(opened)
    if not opened.error:
        focus = text_choice.read_controls(opened)
        _neighbours(opened, focus.index)
    text_choice.draw_text_fields()


def _neighbours(opened: OpenTexts, index: int | None) -> None:
    """To the examples before and after."""
    before, after = neighbors(range(len(opened.data)), index)
    with st.container(horizontal=True, gap="small"):
        for label, icon, to in (
            ("Previous", ":material/arrow_back:", before), ("Next", ":material/arrow_forward:", after),
        ):  # fmt: skip
            st.button(
                label, key=key("text", f"step.{label}"), icon=icon, disabled=to is None,
                on_click=text_choice.show, args=(opened, to),
            )  # fmt: skip


def look_controls(state: CompareState) -> None:
    """What is explained and how maps are shown."""
    kind = state.kind
    _class_control(state, labels_known(kind))
    if kind == "text":
        _choice(kind, "Unit", "unit", UNITS, UNIT_TITLES, _UNIT_HELP)
    _choice(kind, "Show", "shown", SHOWN, SHOWN_TITLES, _SHOWN_HELP)
    seed_input(partial(key, kind), 110)
    with st.popover("View", key=key(kind, "view")):
        _view_controls(kind)


def _class_control(state: CompareState, labels: Collection[str]) -> None:
    """Which class is explained: each model's own, or one for all by its label."""
    options = dict.fromkeys([PREDICTED, *labels, state.target or PREDICTED])
    st.selectbox(
        "Explained class",
        list(options),
        key=key(state.kind, "target"),
        persist_state=KEPT,
        format_func=lambda label: label or "As each model predicts",
        width=230,
        help="Signed maps speak for or against this class. A model that has no such class says so in its column.",
    )


def _view_controls(kind: str) -> None:
    if kind == "text":
        _choice(kind, "Layout", "layout", LAYOUTS, LAYOUT_TITLES, "Table: a row a word. Text: each map is the text.")
    _choice(kind, "Scale", "scale", SCALES, {name: name.capitalize() for name in SCALES}, _SCALE_HELP)
    gamma_slider(lambda name: key(kind, f"{LOOK}{name}"), "words" if kind == "text" else "patches")
    if kind == "image":
        st.slider(
            "Opacity", 0, MOST_OPACITY, key=key(kind, f"{LOOK}opacity"), step=5, format="%d %%", persist_state=KEPT,
            help="How much of the picture a map hides where its score is largest.",
        )  # fmt: skip
    _choice(kind, "Order", "order", ORDERS, ORDER_TITLES, _ORDER_HELP)
    st.selectbox(
        "Top", PERCENTS, key=key(kind, f"{LOOK}percent"), format_func=lambda percent: f"{percent} %",
        persist_state=KEPT, help="The share of all parts that counts as the top of a map; at least one part.",
    )  # fmt: skip


_UNIT_HELP = (
    "Words: the scores of a word's tokens are summed. Tokens: where tokenizers cut otherwise, what overlaps is one "
    "part."
)
_SHOWN_HELP = (
    "Difference: how much larger (+) or smaller (−) each part's share of the map is than in the reference. Rank moves: "
    f"how many ranks it stands higher (↑) or lower (↓). {PINS_FIRST}"
)
_SCALE_HELP = (
    "Own: each map's largest score has the full colour. Common: scores are shares of the sum of all sizes in their "
    "map, so that one scale fits methods of different units."
)
_ORDER_HELP = (
    "By what parts are ranked when maps are compared. With sign, as on Evaluate: a part that speaks strongly against "
    "the class ranks last; maps without sign rank as they are. By size: it ranks high."
)


def _choice(kind: str, label: str, name: str, options: Sequence[str], titles: Mapping[str, str], help: str) -> None:
    st.segmented_control(
        label, options, key=key(kind, f"{LOOK}{name}"), required=True, format_func=titles.__getitem__, help=help,
        persist_state=KEPT,
    )  # fmt: skip
