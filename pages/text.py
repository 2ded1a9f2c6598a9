"""Text: one text, its prediction, and the explanations of several methods side by side."""

from __future__ import annotations

import streamlit as st

from components.browse.lists import draw_browse_button, draw_text_list
from components.compute import warm_up
from components.errors import show_error, show_note
from components.inputs.text_choice import draw_focus_controls, draw_text_fields, fits_dataset, write_text_focus
from components.method_picker import chosen_methods
from components.method_row import describe_mismatch, rationale_rows
from components.navigation import TEXT, heading
from components.prediction import heads_link
from components.styles import use_styles
from components.text.counterfactuals import draw_counterfactuals
from components.text.export import draw_export
from components.text.generation import draw_generation, offer_continuation
from components.text.results import (
    draw_ablation,
    draw_edit,
    draw_gallery_note,
    draw_methods,
    draw_prediction,
    draw_questions,
    draw_summary,
)
from components.text.significance import draw_significance
from components.text.similarity import draw_similarity
from components.text.state import (
    SESSION,
    WIDGETS,
    draw_options,
    draw_pins,
    key,
    load_state,
    offered_methods,
    read_controls,
    widen_pins,
    write_state,
)
from engine.input_kinds import list_models
from engine.models.label_prompts import split_prompts
from engine.models.summary import chance_note
from engine.registry import all_explainers

use_styles()
heading(TEXT)

methods, models = all_explainers(), list_models("text")
loaded, opened, notes = load_state(models, methods)
for note in notes:
    show_error(note)

with st.container(gap="xsmall"):
    row = draw_focus_controls(models, opened)
    draw_browse_button(row, opened.data.title or opened.name, "a table", key)
    offered = offered_methods(methods, opened)
    class_place = draw_options(offered, row)
    draw_text_list(opened, key)
    draw_text_fields()
    chosen_methods(offered, WIDGETS, labeled=False)
    state = read_controls(loaded, methods, opened)
    SESSION.remember(state, loaded, write_state)
    probe = draw_prediction(state, class_place)
    summary = st.empty()
    if probe is None:
        offer_continuation(state)
    else:
        draw_gallery_note(state)

if probe is not None:
    maps, below = st.container(), st.container()
    with below:
        draw_pins(state, probe)
    with maps:
        fits = fits_dataset(state.model, opened)
        if fits and state.focus.index is not None:
            about = (describe_mismatch(opened.data, probe.prediction), chance_note(state.model, opened.name))
            for line in filter(None, about):
                show_note(line)
        above = rationale_rows(opened.data, state.focus.index if fits else None, probe, state.unit, state.view)
        explanations = draw_methods(state, methods, probe, above)
    with summary:
        draw_summary(state, methods, explanations, probe)
    if split_prompts(state.model)[1] is None:  # otherwise each label has its own forward pass and heads
        heads_link("text", write_text_focus(state.focus), state.target, key("heads"))
    widened = widen_pins(state, probe)
    draw_ablation(widened, methods, explanations, probe)
    draw_counterfactuals(state, probe)
    draw_edit(widened, methods, explanations, probe)
    draw_questions(state, methods, explanations, probe)
    draw_similarity(state)
    draw_significance(state)
    draw_generation(state, methods)
    draw_export(state, methods, explanations, above)
warm_up()  # last: see components/compute.py
