"""Images: one picture as a model sees it, its prediction, and the explanations of several methods side by side."""

from __future__ import annotations

import streamlit as st

from components.browse.lists import draw_browse_button, draw_picture_list
from components.compute import warm_up
from components.errors import show_error
from components.images.counterfactuals import draw_counterfactuals
from components.images.export import draw_export
from components.images.label_tokens import draw_label_tokens
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
from components.images.significance import draw_significance
from components.images.sliding import draw_sliding
from components.images.state import (
    SESSION,
    WIDGETS,
    draw_options,
    draw_pins,
    key,
    load_state,
    offered_methods,
    read_controls,
    write_state,
)
from components.inputs.picture_choice import draw_focus_controls, fits_dataset, write_picture_focus
from components.method_picker import chosen_methods
from components.navigation import IMAGES, heading
from components.prediction import heads_link
from components.styles import use_styles
from components.widgets.base import draw_pin_hint
from components.widgets.patch_map import use_picture_styles
from engine.input_kinds import list_models
from engine.registry import all_explainers
from engine.vision.picture import read_view

use_styles()
use_picture_styles()
heading(IMAGES)

methods, models = all_explainers("image"), list_models("image")
loaded, opened, notes = load_state(models, methods)
for note in notes:
    show_error(note)

with st.container(gap="xsmall"):
    row = draw_focus_controls(models, opened)
    draw_browse_button(row, opened.data.title or opened.name, "pictures", key)
    offered = offered_methods(methods, opened)
    class_place = draw_options(offered, opened, row)
    draw_picture_list(opened, key)
    left, answer = st.columns([3, 2])
    with left:
        chosen_methods(offered, WIDGETS, labeled=False)
    state = read_controls(loaded, methods, opened)
    SESSION.remember(state, loaded, write_state)
    with answer:
        probe = draw_prediction(state, class_place)
    summary = st.empty()

if probe is not None:
    truth = true_patches(state.model, state.focus.mask if fits_dataset(state.model, opened) else None)
    draw_pins(state, probe)
    explanations = draw_methods(state, methods, probe, truth, describe_picture(state.focus, opened))
    with summary:
        draw_summary(state, methods, explanations, probe)
    if explanations:
        draw_pin_hint("patch")
    if not read_view(state.model).windows:
        heads_link("image", write_picture_focus(state.focus), state.target, key("heads"))
    draw_truth(methods, explanations, truth, state.seed)
    draw_label_tokens(state, probe)
    draw_sliding(state, probe)
    draw_ablation(state, methods, explanations, probe)
    draw_significance(state)
    draw_counterfactuals(state)
    draw_questions(state, methods, explanations, probe)
    draw_export(state, methods, explanations, truth)
warm_up()  # last: see components/compute.py
