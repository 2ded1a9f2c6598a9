"""What lists of texts and of pictures are chosen by, and the buttons that walk through what is listed."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence

import streamlit as st

from components.browse_rows import CONFIDENT, UNSURE
from components.browse_table import place, steps

Key = Callable[[str], str]
"""From a control's name to the key of its widget."""

SHOW_NAMES = {
    "all": "All",
    "right": "Right",
    "wrong": "Wrong",
    "confident_wrong": f"Wrong and confident (≥ {CONFIDENT:.0%})",
    "unsure": f"Unsure (confidence < {UNSURE:.0%})",
    "off": "Farthest off (top quarter)",
    "disagree": "Methods disagree (top quarter)",
    "rationale": "With a rationale",
}
SORT_NAMES = {
    "index": "As in the data set",
    "mistakes": "Failure cases first",
    "confident": "Most confident first",
    "doubtful": "Least confident first",
    "error": "Largest error first",
    "disagree": "Most disagreement first",
    "agree": "Least disagreement first",
    "short": "Shortest first",
    "long": "Longest first",
}


def listing_choice(label: str, name: str, names: Mapping[str, str], barred: Collection[str], key: Key) -> None:
    """One choice of what is listed. What is barred is left out, unless a link has already chosen it."""
    held = key(f"browse.{name}")
    options = [option for option in names if option not in barred or option == st.session_state.get(held)]
    st.selectbox(label, options, key=held, format_func=names.__getitem__)


def walk(found: Sequence[int], current: int | None, show: Callable[[int], None], key: Key) -> None:
    """Buttons to the neighbours of the current example in the list, and where it stands there."""
    before, after = steps(found, current)
    others = [index for index in found if index != current]
    chance = random.choice(others) if others else None
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        for label, icon, index in (
            ("Previous", ":material/arrow_back:", before),
            ("Next", ":material/arrow_forward:", after),
            ("Random of these", ":material/shuffle:", chance),
        ):
            held = key(f"browse_{label}")
            st.button(label, key=held, icon=icon, disabled=index is None, on_click=show, args=(index,))
        st.caption(place(found, current))
