"""How lists of texts and of pictures are opened and what they are chosen by, and the buttons that walk through them."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence

import streamlit as st

from components.browse.known import Known
from components.browse.rows import CONFIDENT, UNSURE
from components.browse.table import place, steps
from components.kept import KEPT
from components.library_html import trouble_html
from components.trouble import literal, sentence

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


def browse_switch(title: str, shown_as: str, key: Key) -> bool:
    """Whether the list of the data set of that title is open. `shown_as`: what the list looks like."""
    return st.toggle(
        f"Browse {literal(title)}", key=key("open.browse"), help=f"The data set as {shown_as}.", persist_state=KEPT
    )  # fmt: skip


def list_area(frame: str, known: Callable[[], Known], drawn: Callable[[Known], None]) -> None:
    """The list in a frame with that key, or why there is none."""
    with st.container(border=True, key=frame):
        try:
            held = known()
        except Exception as error:
            st.html(trouble_html(sentence(error)))
            return
        drawn(held)


def listing_choice(label: str, name: str, names: Mapping[str, str], barred: Collection[str], key: Key) -> None:
    """One choice of what is listed. What is barred is left out, unless a link has already chosen it."""
    held = key(f"browse.{name}")
    options = [option for option in names if option not in barred or option == st.session_state.get(held)]
    st.selectbox(label, options, key=held, format_func=names.__getitem__, persist_state=KEPT)


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
