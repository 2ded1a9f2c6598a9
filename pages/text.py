"""Text: one text, its prediction, and how many methods explain it, side by side."""

from __future__ import annotations

import streamlit as st

from components import text_session
from components.engine_room import explainers, warm_up
from components.frame import TEXT, guard, heading
from components.rationale import rationale_rows
from components.styles import use_styles
from components.text_controls import method_controls, text_controls
from components.text_keep import keep_area
from components.text_questions import question_area
from components.text_results import method_rows, prediction_area
from components.text_state import DATA
from engine.data.datasets import load
from engine.models.catalog import embedded_models

guard()
warm_up()
use_styles()
heading(TEXT)

with st.spinner("Starting the engine …"):
    methods = explainers()
models, data = embedded_models(), load(DATA)
loaded, said = text_session.load(models, methods, data)
for sentence in said:
    st.error(sentence)

text_controls(models, data)
method_controls(methods)
state = text_session.from_widgets(methods, data)
text_session.save(state, loaded, data)

probe = prediction_area(state)
if probe is not None:
    above = rationale_rows(data, state.index, probe, state.unit, state.look)
    made = method_rows(state, methods, probe, above)
    question_area(state, methods, probe)
    keep_area(state, methods, made, above)
