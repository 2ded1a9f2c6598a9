"""The patches of a picture that survive a test against those of other pictures, on request."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import streamlit as st

from components.compute import run_cached
from components.controls import PERSIST
from components.errors import show_note
from components.export import command_line, file_button, how_to_repeat, input_arguments, input_button
from components.images.state import SIGNIFICANCE, PatchTestView, PictureState, key
from components.numbers import count, plain, points
from components.progress import run_with_progress
from components.tables import draw_table
from components.widgets.patch_map import PatchMap, layers_html, legend_html, picture_style, place, sentence
from engine.false_discovery import survives
from engine.lazy import LazyModule, pandas
from engine.progress import CancelToken, cancellable
from engine.request import Picture
from engine.table_io import to_csv
from engine.vision.picture import read_view

if TYPE_CHECKING:
    import pandas as pd

    from engine import picture_significance
    from engine.picture_significance import PictureSignificance, PictureSignificanceQuery
else:  # it loads torch, which most visits do without
    picture_significance = LazyModule("engine.picture_significance")

SCOPE = "xg-significance"
ALTERNATIVES = {"greater": "For the class", "two-sided": "For or against"}
RATE_HELP = "At a rate of 10%, at most 10% of the patches that survive are expected to be there by chance."
CAUTION = (
    "The patches of another picture do not fit their neighbors here. So a patch can survive because it continues its "
    "surroundings, not because of what it shows."
)
ASSUMPTION = (
    "Interpretability randomization test (Burns et al., 2020, Interpreting black box models via hypothesis testing). "
    "Benjamini and Hochberg’s procedure keeps the rate if unimportant patches are distributed as those at the same "
    "place in the other pictures, the class is chosen beforehand, and the tests are independent or positively "
    "dependent. The predicted class is not chosen beforehand: in a simulation, at a rate of 10%, 11 to 14% of the "
    "pictures without important patches had one that survives; with a chosen class, 6 to 11%."
)


def draw_significance(state: PictureState) -> None:
    """Draw the switch and, once it is on, the patches that survive."""
    if state.picture is None:
        return
    st.subheader("Test the patches", anchor=False)
    if not st.toggle(
        "Patches that are statistically significant", key=key("open.significance"), persist_state=PERSIST,
        help="Replaces each patch by those of 255 other pictures: thousands of evaluations, on request.",
    ):  # fmt: skip
        return
    _draw_controls()
    view, query = state.significance, query_of(state, state.picture)

    def compute(token: CancelToken) -> PictureSignificance:
        with cancellable(token):
            return picture_significance.picture_significance(query)

    found = run_with_progress(
        st.empty(), lambda: query.key, "Replacing patches", "Stopped before all patches were replaced.",
        lambda tick: run_cached(query.key, compute, tick),
    )  # fmt: skip
    if found is None:
        return
    pixels = read_view(state.model).transform(state.picture.pixels)
    alive = survivors(found, view)
    left, right = st.columns([2, 3], gap="medium")
    left.html(picture_style(pixels, alive, f".{SCOPE}") + map_html(found, view))
    with right:
        st.html(answer_html(found, view))
        if shortage := found.shortage(view.rate / 100):
            show_note(f"{shortage} {found.remedy(query.draws)}")
        st.caption(CAUTION)
    with st.expander("Numbers of all patches"):
        draw_table(patches_table(found, view), "significance")
        st.caption(ASSUMPTION)
    _export(state, found)


def _draw_controls() -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.segmented_control(
            "False discovery rate", (5, 10, 20), key=key(f"{SIGNIFICANCE}rate"), required=True, persist_state=PERSIST,
            format_func=lambda rate: f"{rate}%", help=RATE_HELP,
        )  # fmt: skip
        st.segmented_control(
            "Patches", list(ALTERNATIVES), key=key(f"{SIGNIFICANCE}alternative"), required=True,
            persist_state=PERSIST, format_func=ALTERNATIVES.__getitem__,
            help="For the class: its probability is higher with the patch than with most replacements. For or against: "
            "it is farther from their mean.",
        )  # fmt: skip


def query_of(state: PictureState, picture: Picture) -> PictureSignificanceQuery:
    """The engine's query: the replacements are patches of the open data set."""
    return picture_significance.PictureSignificanceQuery(
        state.model, picture, state.focus.data, state.focus.split or None, state.target, seed=state.seed
    )


def survivors(found: PictureSignificance, view: PatchTestView) -> np.ndarray:
    """Whether each patch is significant, on the grid."""
    alive: np.ndarray = survives(found.adjusted(view.alternative), view.rate / 100).reshape(found.grid)
    return alive


def map_html(found: PictureSignificance, view: PatchTestView) -> str:
    """The picture with the changes of the patches that survive. Every text is escaped."""
    scores = np.where(survivors(found, view), found.changes.reshape(found.grid), 0.0)
    drawn = PatchMap(scores, True, found.label)
    label = f"Patches that are significant for {found.label}. {sentence(drawn)}"
    return (
        f'<div class="xg xg-card {SCOPE}"><div class="xg-patches xg-alone" role="img" aria-label="{escape(label)}">'
        f'{layers_html(drawn)}</div><div class="xg-small">{legend_html(drawn)}</div></div>'
    )


def answer_html(found: PictureSignificance, view: PatchTestView) -> str:
    """How many patches survive, and the strongest of them. Every text is escaped."""
    alive, changes = survivors(found, view).ravel(), found.changes
    number, total = int(alive.sum()), count(len(alive), "patch")
    verb = "is" if number <= 1 else "are"
    head = f"{number or 'None'} of {total} {verb} significant at a false discovery rate of {view.rate}%."
    if number:
        strongest = int(np.where(alive, np.abs(changes), -1.0).argmax())
        change = plain(float(changes[strongest])) if found.regression else f"{points(float(changes[strongest]))} points"
        head += f" The largest change, {change}, is at {place(strongest, found.grid[1])}."
    what = "score" if found.regression else f"probability of {found.label}"
    how = (
        f"A patch’s change is the {what}, {plain(found.value)}, minus its mean with the patches at the same place of "
        f"{found.count:,} other pictures of {found.source}. Patches without color do not survive."
    )
    return f'<div class="xg"><p class="xg-answer">{escape(head)}</p><p class="xg-small">{escape(how)}</p></div>'


def sorted_patches(found: PictureSignificance, view: PatchTestView) -> list[dict[str, Any]]:
    """A row for each patch, the smallest p-value first."""
    patches: list[dict[str, Any]] = found.as_json(view.rate / 100, view.alternative)["patches"]
    return sorted(patches, key=lambda one: (one["p_value"], one["row"], one["column"]))


def patches_table(found: PictureSignificance, view: PatchTestView) -> pd.DataFrame:
    """A row for each patch, rounded."""
    return pandas.DataFrame(
        [
            {
                "Row": one["row"], "Column": one["column"], "Change": round(one["change"], 4),
                "p": round(one["p_value"], 4), "Adjusted p": round(one["adjusted_p_value"], 4),
                "Survives": "yes" if one["significant"] else "no",
            }
            for one in sorted_patches(found, view)
        ]
    )  # fmt: skip


def _export(state: PictureState, found: PictureSignificance) -> None:
    view = state.significance
    with st.popover("Export significance"):
        file_button(
            "CSV", "significance.csv", "text/csv", lambda: to_csv(sorted_patches(found, view)), "A row for each patch.",
            key("patches_csv"),
        )  # fmt: skip
        file_button(
            "JSON", "significance.json", "application/json",
            lambda: json.dumps(found.as_json(view.rate / 100, view.alternative), indent=1), "The output of `--json`.",
            key("patches_json"),
        )  # fmt: skip
        input_button(state.focus, key("patches_picture"))
        st.caption(how_to_repeat(state.focus))
        arguments = ["significance", "--model", state.model, *input_arguments(state.focus)]
        arguments += ["--patches-from", state.focus.data] if state.focus.own else []
        arguments += ["--target", str(state.target)] if state.target is not None else []
        arguments += ["--rate", f"{view.rate / 100:g}"]
        arguments += [] if view.alternative == "greater" else ["--alternative", view.alternative]
        arguments += [] if state.seed == 0 else ["--seed", str(state.seed)]
        st.code(command_line(arguments), language="bash", wrap_lines=True)
