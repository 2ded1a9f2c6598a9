"""Evaluate: many methods on many examples, measured, and the measures questioned."""

from __future__ import annotations

import streamlit as st

from components.compute import warm_up
from components.errors import show_error
from components.evaluate import session as evaluate_session
from components.evaluate.area import evaluate_area
from components.evaluate.controls import plan_controls
from components.evaluate.recent import recent_area
from components.navigation import EVALUATE, guard, heading
from components.styles import use_styles
from engine.registry import all_explainers

guard()
use_styles()
heading(EVALUATE)

kind = evaluate_session.chosen_kind()
with st.container(horizontal=True, gap="small", vertical_alignment="center"):
    evaluate_session.kind_switch()
    recent_area()
methods = all_explainers(kind)
loaded, said = evaluate_session.load(kind, methods)
for sentence in said:
    show_error(sentence)

places = plan_controls(kind, methods)
state = evaluate_session.from_widgets(loaded, methods)
evaluate_session.save(state, loaded)
evaluate_area(state, methods, places)
warm_up()  # last: see components/compute.py
