"""Images: one picture as a model sees it, its prediction, and how many methods explain it, side by side."""

from __future__ import annotations

from functools import partial

import streamlit as st

from components.compute import warm_up
from components.errors import show_error
from components.images.browse import draw_browse
from components.images.export import draw_export
from components.images.results import (
    describe_picture,
    draw_ablation,
    draw_methods,
    draw_prediction,
    draw_questions,
    draw_summary,
    draw_truth,
    true_patches,
)
from components.images.state import (
    WIDGETS,
    draw_method_controls,
    draw_options,
    draw_pins,
    load_state,
    read_controls,
    save_state,
)
from components.inputs.picture_choice import draw_focus_controls
from components.navigation import IMAGES, guard, heading
from components.styles import use_styles
from components.widgets.patch_map.html import use_picture_styles
from engine.input_kinds import list_models
from engine.registry import all_explainers

guard()
use_styles()
use_picture_styles()
heading(IMAGES)

methods, models = all_explainers("image"), list_models("image")
loaded, opened, notes = load_state(models, methods)
for note in notes:
    show_error(note)

left, answer = st.columns([3, 2], gap="large")
with left:
    draw_focus_controls(models, opened, partial(draw_options, methods, opened))
    draw_method_controls(methods)
draw_browse(opened, WIDGETS)
state = read_controls(loaded, methods, opened)
save_state(state, loaded)

with answer:
    probe = draw_prediction(state)
if probe is not None:
    truth = true_patches(state.model, state.focus.mask)
    summary = st.empty()
    draw_pins(state, probe)
    explanations = draw_methods(state, methods, probe, truth, describe_picture(state.focus, opened))
    with summary:
        draw_summary(state, methods, explanations, probe)
    draw_truth(methods, explanations, truth, state.seed)
    draw_ablation(state, methods, explanations, probe)
    draw_questions(state, methods, explanations, probe)
    draw_export(state, methods, explanations, truth)
warm_up()  # last: see components/compute.py
