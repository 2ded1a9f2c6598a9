"""A page of one flow. In its address: `patches` for a picture, `long` for 512 tokens, `start` and `threshold`."""

from __future__ import annotations

import streamlit as st

from components.styles import use_styles
from components.widgets.flow_graph import build_flow_graph, flow_graph
from components.widgets.patch_map import picture_style, use_picture_styles
from engine.heads.flow import attention_flow
from tests.unit.components.flow_readings import TEXT, picture, picture_reading, text_reading

LONG = " ".join([TEXT.rstrip(".")] * 56)
PATCHES = "patches" in st.query_params
START = int(st.query_params.get("start", 0))

if "wide" in st.query_params:
    st.set_page_config(layout="wide")
use_styles()
if PATCHES:
    use_picture_styles()
    st.html(picture_style(picture()))
reading = picture_reading() if PATCHES else text_reading(LONG) if "long" in st.query_params else text_reading()
threshold = st.query_params.get("threshold")
if st.button("Show the strongest steps alone"):
    threshold = "0.1"
graph = build_flow_graph(
    reading.explanation, attention_flow(reading, start_layer=START), START, float(threshold) if threshold else None
)
flow_graph(graph, "flow")
st.text(f"{len(graph.edges)} steps are drawn")
