"""Text: one text, its prediction, and how many methods explain it, side by side."""

from __future__ import annotations

from functools import partial

import streamlit as st

from components.compute import warm_up
from components.errors import show_error, show_note
from components.inputs.text_choice import draw_focus_controls, draw_text_fields
from components.navigation import TEXT, guard, heading
from components.styles import use_styles
from components.text.browse import draw_browse
from components.text.edited import draw_edit
from components.text.export import draw_export
from components.text.results import draw_ablation, draw_methods, draw_prediction, draw_questions, draw_summary
from components.text.state import (
    draw_method_controls,
    draw_options,
    draw_pins,
    load_state,
    read_controls,
    save_state,
    widen_pins,
)
from components.widgets.token_map.rows import describe_mismatch, rationale_rows
from engine.input_kinds import list_models
from engine.registry import all_explainers

guard()
use_styles()
heading(TEXT)

methods, models = all_explainers(), list_models("text")
loaded, opened, notes = load_state(models, methods)
for note in notes:
    show_error(note)

draw_focus_controls(models, opened, partial(draw_options, methods, opened))
draw_browse(opened)
draw_text_fields(with_switch=False)
draw_method_controls(methods)
state = read_controls(loaded, methods, opened)
save_state(state, loaded)

probe = draw_prediction(state)
if probe is not None:
    summary = st.empty()
    draw_pins(state, probe)
    if state.focus.index is not None and (mismatch := describe_mismatch(opened.data, probe.prediction)):
        show_note(mismatch)
    above = rationale_rows(opened.data, state.focus.index, probe, state.unit, state.view)
    explanations = draw_methods(state, methods, probe, above)
    with summary:
        draw_summary(state, methods, explanations, probe)
    widened = widen_pins(state, probe)
    draw_ablation(widened, methods, explanations, probe)
    draw_edit(widened, methods, explanations, probe)
    draw_questions(state, methods, explanations, probe)
    draw_export(state, methods, explanations, above)
warm_up()  # last: see components/compute.py
