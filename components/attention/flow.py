"""The Flow section: attention traced back from the prediction through the layers to the input.

A graph of the strongest steps, then each token's or patch's share of the prediction for several settings of the flow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from html import escape

import numpy as np
import streamlit as st
from jaxtyping import Float

from components.attention.state import FLOW_KEYS, AttentionState, FlowOptions, key
from components.controls import PERSIST
from components.errors import describe_error, escape_label, show_error
from components.export import file_button, png_button
from components.method_row import explained_name
from components.prediction import PROBE
from components.widgets.flow_graph import (
    THRESHOLDS,
    FlowGraph,
    build_flow_graph,
    describe_carried_share,
    describe_special_share,
    flow_csv,
    flow_graph,
    flow_svg,
    format_share,
)
from components.widgets.patch_map import PatchMap, layers_html, use_picture_styles
from components.widgets.patch_map import legend_html as patch_legend
from components.widgets.patch_map import sentence as patch_sentence
from components.widgets.token_map import TokenMap, legend_html, token_map_html
from engine.heads.flow import FLOW_KINDS, attention_flow, flow_of_mean, gradient_flow, mean_over_heads
from engine.heads.readings import HeadReading, reading_key
from engine.request import Example, Input
from engine.word_units import units

TITLES = {"rollout": "Rollout", "gradient": "Gradient-weighted"}
KIND_HELP = (
    "Rollout uses all attention and does not depend on the class. Gradient-weighted uses only attention that raises "
    "the class (Chefer et al., 2021)."
)
RESIDUAL_HELP = (
    "The share of a position that passes each layer unchanged. 0: attention alone, as in the thesis. 0.5: as in Abnar "
    "and Zuidema (2020). Gradient-weighted flow uses a fixed rule instead."
)
START_HELP = "Layers below this one are skipped. Early layers mix positions most and dominate rollout."
STEP_HELP = "Hides steps that carry a smaller share of the prediction."
CAUTION = (
    "A flow shows where in the input the prediction could read from, not how it used that: values, feed-forward layers "
    "and signs are ignored (Abnar and Zuidema, 2020; Jain and Wallace, 2019)."
)
SCALED = "Heads are weighted by their scale: a head that is off carries nothing."
COMPARED = "Each position's share of the prediction, with other residual shares and first layers:"
FILE = "exegesis-flow"
SVG_HELP = "The steps shown and the most important path, in the light theme."
CSV_HELP = "One row per step shown: layer, both ends, weight and flow, unrounded."
PNG_HELP = "The SVG as a PNG image, rendered by your browser."
ROWS = (
    "These maps start {read}. On the Text and Images pages, “Attention rollout” starts at the mean over all positions "
    "of the last layer instead."
)
SAME_ROWS = "The maps start at the mean over all positions of the last layer, as “Attention rollout” does."


THESIS, HALF = 0.0, 0.5
"""The residual shares of the thesis and of Abnar and Zuidema (2020)."""
NAMES = {THESIS: "Residual 0, as in the thesis", HALF: "Residual 0.5, as in Abnar and Zuidema"}
ABOUT = {
    THESIS: "Attention alone. After a few layers all positions are mixed, so the first layers determine the map and "
    "the last ones hardly matter.",
    HALF: "Half of each position passes every layer unchanged, as with skip connections. Positions mix less, and the "
    "position that the prediction reads retains a share.",
}
LATER = "Early layers mix positions most; without them, the effect of late layers is visible."
GRADIENT = (
    "Only attention in favor of the class counts; everything else passes each layer unchanged. The map depends on the "
    "class."
)
MAX_GRAPHS = 16


@dataclass(frozen=True)
class RolloutSetting:
    """Parameters of rollout, with the same meaning as for the method `attention_rollout`."""

    residual: float
    start_layer: int = 0


@dataclass(frozen=True, eq=False)
class FlowMap:
    """Each input position's share of the prediction, and a sentence on how it was computed."""

    title: str
    about: str
    shares: Float[np.ndarray, "position"]


def flow_section(state: AttentionState, reading: HeadReading) -> None:
    """Draw the section, if its switch is on."""
    st.subheader("Flow", anchor=False)
    if not st.toggle("Flow from the input to the prediction", key=key(state.kind, "open.flow"), persist_state=PERSIST):
        return
    try:
        _flow_panel(state, reading)
    except Exception as error:
        show_error(describe_error(error))


def _flow_panel(state: AttentionState, reading: HeadReading) -> None:
    options, name = state.flow, reading_key(state.request(PROBE))
    readable = _graph(name, replace(options, threshold=None), reading)
    _controls(state, len(reading.weighted), readable.threshold if options.threshold is None else options.threshold)
    graph = readable if options.threshold is None else _graph(name, options, reading)
    words = (describe_carried_share(graph), describe_special_share(graph), SCALED * bool(state.switched))
    st.caption(" ".join(filter(None, words)))
    if state.kind == "image":
        use_picture_styles()
    flow_graph(graph, key(state.kind, "flow_graph"))
    st.caption(CAUTION)
    _file_buttons(state.kind, graph, reading, options)
    if state.input is not None:
        st.caption(COMPARED)
        st.html(flow_maps_html(_maps(name, options, reading), reading, state.input))
        st.caption(describe_rows(reading))


@st.cache_resource(max_entries=MAX_GRAPHS, show_spinner="Following the flow …")
def _graph(name: str, options: FlowOptions, _reading: HeadReading) -> FlowGraph:
    """Return the graph of the reading with key `name`. It is small, and the same for every session."""
    flow = attention_flow(_reading, options.kind, options.residual, options.start_layer)
    return build_flow_graph(_reading.explanation, flow, options.start_layer, options.threshold)


@st.cache_resource(max_entries=MAX_GRAPHS, show_spinner="Following the flow …")
def _maps(name: str, options: FlowOptions, _reading: HeadReading) -> tuple[FlowMap, ...]:
    return compare_flow_maps(_reading, options)


def _controls(state: AttentionState, layers: int, threshold: float) -> None:
    def name(field: str) -> str:
        return key(state.kind, f"{FLOW_KEYS}{field}")

    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.segmented_control(
            "Method", FLOW_KINDS, key=name("kind"), required=True, format_func=TITLES.__getitem__, help=KIND_HELP,
            persist_state=PERSIST,
        )  # fmt: skip
        st.slider(
            "Residual share", 0.0, 1.0, step=0.05, key=name("residual"), help=RESIDUAL_HELP,
            disabled=state.flow.kind == "gradient", width=170, persist_state=PERSIST,
        )  # fmt: skip
        st.selectbox(
            "First layer", range(layers), key=name("start_layer"), help=START_HELP, width=110, persist_state=PERSIST
        )  # fmt: skip
        _threshold_slider(name("step"), name("threshold"), threshold)


def _threshold_slider(slider: str, chosen: str, threshold: float) -> None:
    """Draw a slider at the current threshold, chosen or default. Only a chosen threshold is remembered."""
    st.session_state[slider] = threshold

    def choose() -> None:
        st.session_state[chosen] = st.session_state[slider]

    st.select_slider(
        "Draw steps of at least", sorted({*THRESHOLDS, threshold}, reverse=True), key=slider,
        format_func=format_share, help=STEP_HELP, on_change=choose, width=300,
    )  # fmt: skip


def _file_buttons(kind: str, graph: FlowGraph, reading: HeadReading, options: FlowOptions) -> None:
    def svg() -> str:
        return flow_svg(graph, reading.explanation, describe_settings(options))

    files = (("SVG", "image/svg+xml", svg, SVG_HELP), ("CSV", "text/csv", partial(flow_csv, graph), CSV_HELP))
    with st.container(horizontal=True, gap="small"):
        for label, form, build, help in files:
            file_button(label, f"{FILE}.{label.lower()}", form, build, help, key(kind, f"{FLOW_KEYS}{label}"))
        png_button("PNG", f"{FILE}.png", svg, PNG_HELP, key(kind, f"{FLOW_KEYS}PNG"))


def describe_settings(options: FlowOptions) -> str:
    """Describe the flow's parameters, as a suffix of its name."""
    residual = f", residual {options.residual:g}" if options.kind == "rollout" else ""
    return f"{residual}, from layer {options.start_layer}"


def describe_rows(reading: HeadReading) -> str:
    """Describe the positions where the maps start, and how the method on the other pages differs."""
    read = np.flatnonzero(reading.reads)
    if len(read) > 1:
        return SAME_ROWS
    token = escape_label(reading.explanation.tokens[read[0]].text)
    return ROWS.format(read=f"at {token}, which the prediction reads")


def compare_flow_maps(reading: HeadReading, options: FlowOptions) -> tuple[FlowMap, ...]:
    """Return the maps of rollout with both papers' settings, then of the chosen flow.

    If the chosen flow is one of the papers', the last map starts at a later layer instead.
    """
    mean, layers = mean_over_heads(reading.attention, reading.scales), len(reading.attention)
    chosen = RolloutSetting(options.residual, options.start_layer) if options.kind == "rollout" else None
    rollouts = [
        FlowMap(
            setting_title(one, one == chosen),
            describe_setting(one, layers),
            flow_of_mean(mean, reading.reads, one.residual, one.start_layer).nodes[0],
        )
        for one in compared_settings(chosen, layers)
    ]
    return (*rollouts, *([] if chosen else [_gradient_map(reading, options.start_layer)]))


def compared_settings(chosen: RolloutSetting | None, layers: int) -> tuple[RolloutSetting, ...]:
    """Return the settings of both papers and one to compare. `chosen`: None if the flow is not rollout."""
    papers = (RolloutSetting(THESIS), RolloutSetting(HALF))
    if chosen is None:
        return papers
    if chosen not in papers:
        return (*papers, chosen)
    return (*papers, RolloutSetting(chosen.residual, layers // 2)) if layers > 1 else papers


def setting_title(setting: RolloutSetting, chosen: bool) -> str:
    """The title of a map."""
    paper = NAMES.get(setting.residual) if setting.start_layer == 0 else None
    name = paper or f"Residual {setting.residual:g}, from layer {setting.start_layer}"
    return f"{name} (chosen)" if chosen else name


def describe_setting(setting: RolloutSetting, layers: int) -> str:
    """Describe the effect of a setting in a sentence or two."""
    if setting.start_layer:
        return f"Only {describe_layers(setting.start_layer, layers)}. {LATER}"
    share = f"{100 * setting.residual:.0f}%"
    return ABOUT.get(
        setting.residual, f"{share} of each position passes every layer unchanged; attention gives the rest."
    )


def describe_layers(start_layer: int, layers: int) -> str:
    """Describe the layers that count, such as “layers 3 to 5 count” or “layer 5 counts”."""
    last = layers - 1
    return f"layer {last} counts" if start_layer == last else f"layers {start_layer} to {last} count"


def _gradient_map(reading: HeadReading, start_layer: int) -> FlowMap:
    layer = f", from layer {start_layer}" if start_layer else ""
    flow = gradient_flow(reading.weighted, reading.reads, start_layer)
    return FlowMap(f"Gradient-weighted{layer} (chosen)", GRADIENT, flow.nodes[0])


def flow_maps_html(maps: tuple[FlowMap, ...], reading: HeadReading, example: Input) -> str:
    """HTML of the maps side by side. All names are escaped."""
    return f'<div class="xg xg-flow-maps">{"".join(_map_card(one, reading, example) for one in maps)}</div>'


def _map_card(flow_map: FlowMap, reading: HeadReading, example: Input) -> str:
    if isinstance(example, Example):
        drawing, legend = _token_map(flow_map, reading, example)
    else:
        drawing, legend = _patch_map(flow_map, reading)
    return (
        f'<div class="xg-flow-card"><p class="xg-title">{escape(flow_map.title)}</p>{drawing}'
        f'<div class="xg-small">{legend}<p>{escape(flow_map.about)}</p></div></div>'
    )


def _token_map(flow_map: FlowMap, reading: HeadReading, example: Example) -> tuple[str, str]:
    explanation = reading.explanation
    tokens = units(explanation.tokens, flow_map.shares, example)
    view = TokenMap(tokens, example.texts, False, explained_name(explanation, example), explanation.truncated)
    return f'<div class="xg-flow-text">{token_map_html(view)}</div>', legend_html(view)


def _patch_map(flow_map: FlowMap, reading: HeadReading) -> tuple[str, str]:
    explanation = reading.explanation
    shares = flow_map.shares[explanation.features].reshape(explanation.grid or (1, -1))
    view = PatchMap(shares, False, explanation.provenance.target_label)
    label = escape(f"{flow_map.title}. {patch_sentence(view)}")
    return f'<div class="xg-patches" role="img" aria-label="{label}">{layers_html(view)}</div>', patch_legend(view)
