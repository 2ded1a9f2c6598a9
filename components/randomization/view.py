"""How the curves are drawn: by which measure, whose lines, which models and methods, and what stands beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from components.kept import KEPT
from components.randomization.choose import one_of, take
from components.randomization.entries import Entry, words_of
from components.randomization.look import LOOK, MEASURES, measures_of
from components.randomization.session import key, put
from components.randomization.words import BESIDE, BESIDE_HELP, NONE_BESIDE

if TYPE_CHECKING:
    from components.randomization.state import RandomizationState
    from engine.randomization.plan import RandomizationPlan

EVERY = "All models"
METHOD_LINES = "A line a method"
LINES_HELP = "Or one method with a line a model, over each other: to compare sizes, architectures and data sets."


def view_controls(
    state: RandomizationState,
    entries: Sequence[Entry],
    titles: Mapping[str, str],
    offered: Mapping[str, RandomizationPlan],
) -> str:
    """All of them. Returns the method of which each model is to have a line; empty where each method has one."""
    lines = ""
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        st.segmented_control(
            "Measure", measures_of(state.kind), key=key(state.kind, f"{LOOK}measure"), required=True,
            format_func=MEASURES.__getitem__, persist_state=KEPT,
        )  # fmt: skip
        company = company_of(entries)
        if len(entries) > 1:
            known = {"": METHOD_LINES} | {id: f"A line a model: {titles.get(id, id)}" for id in company}
            lines = one_of(state, "Lines", "lines", known, help=LINES_HELP)
            if not lines:
                names = {one.name: one.name for one in entries}
                one_of(state, "Models drawn", "model", {"": EVERY} | names)
        _methods_control(state, company, titles)
        _beside_control(state, offered)
    return lines


def company_of(entries: Sequence[Entry]) -> list[str]:
    """The methods of all that is drawn."""
    return list(dict.fromkeys(method for one in entries for method in one.held.plan.company))


def _methods_control(state: RandomizationState, company: list[str], titles: Mapping[str, str]) -> None:
    widget = key(state.kind, "view.only")
    shown = [method for method in company if method in state.look.only] or company
    st.session_state[widget] = shown
    with st.popover(f"Methods drawn: {len(shown)} of {len(company)}", key=key(state.kind, "methods_drawn")):
        st.pills(
            "Methods drawn", company, selection_mode="multi", key=widget, persist_state=KEPT,
            format_func=lambda id: titles.get(id, id), on_change=_take_methods,
            args=(state.kind, widget, len(company)),
        )  # fmt: skip


def _take_methods(kind: str, widget: str, all: int) -> None:
    """All of them is nothing chosen, so that the link stays short."""
    wanted = list(st.session_state[widget])
    put(kind, f"{LOOK}only", [] if len(wanted) == all else wanted)


def _beside_control(state: RandomizationState, offered: Mapping[str, RandomizationPlan]) -> None:
    widget = key(state.kind, "view.beside")
    st.session_state[widget] = [mark for mark in state.look.beside if mark in offered]
    st.multiselect(
        BESIDE, list(offered), key=widget, width=400, help=BESIDE_HELP, persist_state=KEPT,
        format_func=lambda mark: words_of(offered[mark]), disabled=not offered,
        placeholder="other finished checks" if offered else NONE_BESIDE,
        on_change=partial(take, state.kind, "beside", widget),
    )  # fmt: skip
