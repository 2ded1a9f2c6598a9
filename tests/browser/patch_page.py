"""A page of maps of one picture and the strip that pins their patches; it writes what Python holds.

In its address: `large` for 18 maps of 14 x 14 patches, `truth` for the outline, `pins` and `opacity` to begin with,
`asks` where Python wants to know the opacity.
"""

from __future__ import annotations

import time

import numpy as np
import streamlit as st

from components.method_row import Placeholder
from components.styles import use_styles
from components.widgets.base import Pins, draw_pin_hint
from components.widgets.patch_map import (
    OPACITY,
    PatchCard,
    PatchMap,
    draw_patch_picker,
    patch_card_html,
    picture_card_html,
    picture_style,
    quiet_card_html,
    use_picture_styles,
)
from engine.result import Check

LARGE = "large" in st.query_params
SIDE, PATCH = (224, 16) if LARGE else (64, 8)
GRID = (SIDE // PATCH, SIDE // PATCH)
CAUTION = "Attention says where a model looks, not what it makes of it (Jain and Wallace, 2019)."


def seen() -> np.ndarray:
    """A picture of a sun over a sea."""
    rows = np.mgrid[:SIDE, :SIDE][0] / SIDE
    sky = np.stack([0.75 - 0.5 * rows, 0.8 - 0.4 * rows, 0.95 - 0.2 * rows], axis=2)
    sky[rows > 0.7] = (0.05, 0.35, 0.4)
    sky[sun()] = (0.98, 0.75, 0.2)
    return (255 * sky).astype(np.uint8)


def sun() -> np.ndarray:
    rows, columns = np.mgrid[:SIDE, :SIDE] / SIDE
    return (rows - 0.4) ** 2 + (columns - 0.6) ** 2 < 0.05


def scores(number: int) -> np.ndarray:
    rows, columns = np.mgrid[: GRID[0], : GRID[1]] / GRID[0]
    near = np.exp(-12 * ((rows - 0.35) ** 2 + (columns - 0.55) ** 2))
    return near + 0.15 * np.random.default_rng(number).normal(size=GRID)


def card(number: int, signed: bool) -> PatchCard:
    found = scores(number) if signed else np.abs(scores(number))
    check = Check("completeness gap", 0.003, 0.01) if signed else None
    title = f"{'Signed' if signed else 'Unsigned'} map {number}"
    facts = (("method", "a method, version 3"), ("parameters", "steps = 50, baseline = mean"))
    cost = "50 evaluations · 2.1 s"
    return PatchCard(title, PatchMap(found, signed, "sun"), check, cost, (), CAUTION, facts, ("Overlap 0.72",))


def keep(pins: Pins) -> None:
    st.session_state.pins = pins


def fade(opacity: int) -> None:
    st.session_state.opacity = opacity


if "wide" in st.query_params:
    st.set_page_config(layout="wide")
use_styles()
use_picture_styles()
asked = st.query_params.get("pins", "")
kept: Pins = st.session_state.setdefault("pins", tuple(map(int, asked.split(","))) if asked else ())
st.session_state.runs = st.session_state.get("runs", 0) + 1
again, forget, slowly = st.columns(3)
again.button("Run again")
forget.button("Pin the fourth patch", on_click=keep, args=((3,),))
wait = slowly.button("Run slowly")
st.html(picture_style(seen(), sun() if "truth" in st.query_params else None))
opacity = st.session_state.setdefault("opacity", int(st.query_params.get("opacity", OPACITY)))
draw_patch_picker(GRID, kept, "pick", keep, opacity, fade if "asks" in st.query_params else None)
with st.container(gap=None, key="picture_cards"):
    st.empty().html(picture_card_html("Picture", (f"{SIDE} × {SIDE}, as the model sees it",)))
    for number in range(18 if LARGE else 4):
        st.empty().html(patch_card_html(card(number, signed=number % 2 == 0)))
    st.empty().html(quiet_card_html(Placeholder("Kernel SHAP", "being computed …")))
    st.empty().html(quiet_card_html(Placeholder("Exact Shapley", "Needs at most 14 patches, got 64.", failed=True)))
draw_pin_hint("patch")
if wait:
    st.text("Still running")
    progress = st.progress(0.0)
    for step in range(100):  # as often as pages that compute
        time.sleep(0.2)
        progress.progress(step / 100)
st.text(f"Opacity {opacity}")
st.text(f"Python holds {','.join(map(str, kept)) or 'nothing'} after {st.session_state.runs} runs")
