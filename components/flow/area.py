"""The Flow section of the Attention page: how what the prediction reads runs back through the layers to the input."""

from __future__ import annotations

import dataclasses
from functools import partial

import numpy as np
import streamlit as st

from components.attention.look import FLOW, FlowLook
from components.attention.session import key
from components.attention.state import AttentionState
from components.flow.export import flow_csv, flow_svg
from components.flow.graph import flow_graph
from components.flow.maps import FlowMap, maps_html, maps_of
from components.flow.told import STEPS, FlowGraph, carried_words, flow_graph_of, share_words, special_words
from components.keeping import file_button
from components.kept import KEPT
from components.png_button import png_button
from components.prediction_area import PROBE
from components.trouble import literal, say_error, sentence
from components.widgets.patch_map.picture import use_picture_styles
from engine.heads.flow import FLOW_KINDS, attention_flow
from engine.heads.readings import HeadReading, reading_key

TITLES = {"rollout": "Rollout", "gradient": "Gradient-weighted"}
KIND_HELP = (
    "Rollout follows all attention, whatever the class. Gradient-weighted follows only attention of which more would "
    "make the class likelier (Chefer et al., 2021)."
)
RESIDUAL_HELP = (
    "How much of a position passes a layer unchanged. 0: attention alone, as in the thesis. 0.5: as Abnar and Zuidema "
    "(2020). Gradient-weighted flow has a fixed rule of its own."
)
START_HELP = (
    "Layers below it pass what they get unchanged. Early layers mix most and overpower rollout: leave them out."
)
STEP_HELP = "Steps that carry a smaller share of the prediction are not drawn."
CAUTION = (
    "A flow says along which attention the prediction could read the input, not what it made of it: values, "
    "feed-forward layers and signs are left out (Abnar and Zuidema, 2020; Jain and Wallace, 2019)."
)
SCALED = "Heads count by their scales: one that is off carries nothing."
COMPARED = "What the input has of the prediction, and what the residual share and the first layer change:"
FILE = "exegesis-flow"
SVG_HELP = "The steps that are drawn, with the most important path; light."
CSV_HELP = "A row for each step that is drawn: its layer, both ends, weight and flow in full."
PNG_HELP = "The same picture in pixels, drawn by this browser."
ROWS = (
    "These maps are read {read}. The method “Attention rollout” on the Text and Images pages takes the mean over all "
    "positions at the top instead."
)
SAME_ROWS = "The model reads the mean over all positions at the top, as the method “Attention rollout” does."


def flow_area(state: AttentionState, reading: HeadReading) -> None:
    """The section, behind its switch."""
    st.subheader("Flow", anchor=False)
    if not st.toggle("Flow from the input to the prediction", key=key(state.kind, "open.flow"), persist_state=KEPT):
        return
    try:
        _section(state, reading)
    except Exception as error:
        say_error(sentence(error))


def _section(state: AttentionState, reading: HeadReading) -> None:
    look, known = state.flow, reading_key(state.request(PROBE))
    usual = _graph(known, dataclasses.replace(look, threshold=None), reading)
    _controls(state, len(reading.weighted), usual.threshold if look.threshold is None else look.threshold)
    graph = usual if look.threshold is None else _graph(known, look, reading)
    st.caption(" ".join(filter(None, (carried_words(graph), special_words(graph), SCALED * bool(state.switched)))))
    if state.kind == "image":
        use_picture_styles()
    flow_graph(graph, key(state.kind, "flow_graph"))
    st.caption(CAUTION)
    _keep(state.kind, graph, reading, look)
    if state.input is not None:
        st.caption(COMPARED)
        st.html(maps_html(_maps(known, look, reading), reading, state.input))
        st.caption(rows_words(reading))


def _keep(kind: str, graph: FlowGraph, reading: HeadReading, look: FlowLook) -> None:
    def svg() -> str:
        return flow_svg(graph, reading.of, settings_words(look))

    files = (("SVG", "image/svg+xml", svg, SVG_HELP), ("CSV", "text/csv", partial(flow_csv, graph), CSV_HELP))
    with st.container(horizontal=True, gap="small"):
        for label, form, build, help in files:
            file_button(label, f"{FILE}.{label.lower()}", form, build, help, key(kind, f"{FLOW}{label}"))
        png_button("PNG", f"{FILE}.png", svg, PNG_HELP, key(kind, f"{FLOW}PNG"))


def settings_words(look: FlowLook) -> str:
    """How the flow was made, behind its name."""
    mixed = f", residual {look.residual:g}" if look.kind == "rollout" else ""
    return f"{mixed}, from layer {look.start_layer}"


def rows_words(reading: HeadReading) -> str:
    """Where the maps are read, and where the method of the other pages is."""
    read = np.flatnonzero(reading.reads)
    if len(read) > 1:
        return SAME_ROWS
    where = literal(reading.of.tokens[read[0]].text)
    return ROWS.format(read=f"where the prediction reads, at {where}")


def _controls(state: AttentionState, layers: int, threshold: float) -> None:
    def name(field: str) -> str:
        return key(state.kind, f"{FLOW}{field}")

    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.segmented_control(
            "Follow", FLOW_KINDS, key=name("kind"), required=True, format_func=TITLES.__getitem__, help=KIND_HELP,
            persist_state=KEPT,
        )  # fmt: skip
        st.slider(
            "Residual share", 0.0, 1.0, step=0.05, key=name("residual"), help=RESIDUAL_HELP,
            disabled=state.flow.kind == "gradient", width=170, persist_state=KEPT,
        )  # fmt: skip
        st.selectbox(
            "First layer", range(layers), key=name("start_layer"), help=START_HELP, width=110, persist_state=KEPT
        )  # fmt: skip
        _step_slider(name("step"), name("threshold"), threshold)


def _step_slider(shown: str, kept: str, threshold: float) -> None:
    """A slider that stands where the drawing is, chosen or usual; only what is chosen is kept."""
    st.session_state[shown] = threshold

    def choose() -> None:
        st.session_state[kept] = st.session_state[shown]

    st.select_slider(
        "Draw steps of at least", sorted({*STEPS, threshold}, reverse=True), key=shown,
        format_func=share_words, help=STEP_HELP, on_change=choose, width=300,
    )  # fmt: skip


@st.cache_resource(max_entries=16, show_spinner="Following the flow …")
def _graph(known: str, look: FlowLook, _reading: HeadReading) -> FlowGraph:
    """What is drawn of the reading with that key: small, and the same for every session."""
    flow = attention_flow(_reading, look.kind, look.residual, look.start_layer)
    return flow_graph_of(_reading, flow, look.start_layer, look.threshold)


@st.cache_resource(max_entries=16, show_spinner="Following the flow …")
def _maps(known: str, look: FlowLook, _reading: HeadReading) -> tuple[FlowMap, ...]:
    return maps_of(_reading, look)
