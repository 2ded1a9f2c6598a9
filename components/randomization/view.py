"""How a randomization is looked at: which measure, whose lines, whose maps of which example at which stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import streamlit as st

from components.controls import PERSIST
from components.experiment.controls import Value, view_pills, view_select
from components.experiment.state import VIEW, ExperimentSession, ExperimentState
from components.links import MOST_PLACE
from engine.experiments.options import options_of
from engine.params import option
from engine.randomization.plan import MODES, RANDOMIZE

MEASURES = {
    "spearman": "Rank correlation",
    "spearman_abs": "Rank correlation of sizes",
    "top_k": "Shared top 15%",
    "ssim": "Structural similarity",
}
MEASURES_OF = {"text": tuple(one for one in MEASURES if one != "ssim"), "image": tuple(MEASURES)}
"""By the kind of input."""
SIGNS = {"spearman": "ρ", "spearman_abs": "ρ of sizes", "top_k": "top shared", "ssim": "SSIM"}
"""What stands before the number beside a map."""
ORDERS = {"index": "As in the data set", "most": "Most changed first", "least": "Least changed first"}
SCALES = {"own": "Each its own", "shared": "One a method"}
MOST_STAGE = 9_999

ORIGINAL = "original"
NO_VERDICT = "A verdict needs the cascading mode. Choose it above."
COMPARE_WITH = "Compare with"
COMPARE_HELP = (
    "Other data sets, sizes or settings: every check that was finished here, by this page or as a job of the command, "
    "can be drawn with this one. To compare data sets, randomize on each in turn."
)
NONE_TO_COMPARE = "no other finished check yet"
EVERY = "All models"
METHOD_LINES = "A line a method"
LINES_HELP = "Or one method with a line a model, over each other: to compare sizes, architectures and data sets."
WIDTH, WIDE, LONG = 210, 330, 26
"""Pixels: five controls in a row; one of long names, which have more letters than this."""


@dataclass(frozen=True)
class RandomizationView:
    """`model`: the one drawn, empty for all. `only`: the methods drawn, none for all. `beside`: other checks, by their
    marks. `lines`: the method of which each model has a line; empty where each method has one.

    The maps: `of` which model, empty for the first; in which mode, its `way`; at which `stage` of it, 0 for all; of
    which `example`, its place in the data set, empty for the first of the `order`, which is `by` a method; by which
    randomization, `draw`, from 1; and on which `scale` their colors are.
    """

    measure: str = option("spearman", choices=tuple(MEASURES), by_kind=MEASURES_OF.get)
    model: str = option("", link="drawn")
    only: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    lines: str = ""
    of: str = ""
    way: str = option(MODES[0], choices=MODES)
    stage: int = option(0, low=0, high=MOST_STAGE)
    example: str = option(
        "", high=MOST_PLACE, allowed="a place in the data set", fallback="The first one is shown."
    )  # fmt: skip
    order: str = option("index", choices=tuple(ORDERS))
    by: str = ""
    draw: int = option(1, low=1, high=MOST_STAGE)
    scale: str = option("own", choices=tuple(SCALES))


SESSION = ExperimentSession(RANDOMIZE, "randomization", RandomizationView)


def view_controls(
    state: ExperimentState, names: Sequence[str], company: Sequence[str], titles: Mapping[str, str],
    offered: Mapping[str, str],
) -> str:  # fmt: skip
    """All controls of the curves. Returns the method of which each model is to have a line; empty where each method
    has one. `names`: of the models that are there; `company`: the methods; `offered`: other checks, by their marks.
    """
    lines, kind = "", state.kind
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        st.segmented_control(
            "Measure", options_of(RandomizationView)["measure"].choices(kind), required=True,
            key=SESSION.key(kind, f"{VIEW}measure"), format_func=MEASURES.__getitem__, persist_state=PERSIST,
        )  # fmt: skip
        if len(names) > 1:
            known = {"": METHOD_LINES} | {id: f"A line a model: {titles.get(id, id)}" for id in company}
            lines = choose(state, "Lines", "lines", known, help=LINES_HELP)
            if not lines:
                choose(state, "Models drawn", "model", {"": EVERY} | {name: name for name in names})
        view_pills(SESSION, state, "Methods drawn", "only", {id: titles.get(id, id) for id in company})
        _compare_control(state, offered)
    return lines


def choose(
    state: ExperimentState, label: str, name: str, known: Mapping[Value, str], width: int | None = None,
    help: str | None = None,
) -> Value:  # fmt: skip
    """A choice of one of these; long names have more room."""
    wide = max(map(len, known.values())) > LONG
    return view_select(SESSION, state, label, name, known, width or (WIDE if wide else WIDTH), help)


def _compare_control(state: ExperimentState, offered: Mapping[str, str]) -> None:
    widget = SESSION.key(state.kind, "view.beside")
    st.session_state[widget] = [mark for mark in state.view.beside if mark in offered]
    st.multiselect(
        COMPARE_WITH, list(offered), key=widget, width=400, help=COMPARE_HELP, persist_state=PERSIST,
        format_func=offered.__getitem__, disabled=not offered,
        placeholder="other finished checks" if offered else NONE_TO_COMPARE,
        on_change=lambda: SESSION.put_view(state.kind, "beside", st.session_state[widget]),
    )  # fmt: skip
