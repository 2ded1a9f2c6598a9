"""Images: one picture as a model sees it, its prediction, and how many methods explain it, side by side."""

from __future__ import annotations

import streamlit as st

from components.engine_room import explainers, warm_up
from components.frame import IMAGES, guard, heading
from components.inputs.picture_choice import draw_focus_controls
from components.picture import session as picture_session
from components.picture.browse import picture_browse_area
from components.picture.controls import look_controls, method_controls
from components.picture.keep import keep_area
from components.picture.pins import pin_area
from components.picture.questions import question_area
from components.picture.results import method_cards, prediction_area
from components.picture.seen import seen_lines
from components.picture.session import WIDGETS
from components.picture.truth import true_patches, truth_area
from components.picture.without import without_area
from components.styles import use_styles
from components.trouble import say_error
from components.widgets.patch_map.picture import use_picture_styles
from engine.input_kinds import list_models

guard()
use_styles()
use_picture_styles()
heading(IMAGES)

methods, models = explainers("image"), list_models("image")
loaded, opened, said = picture_session.load(models, methods)
for sentence in said:
    say_error(sentence)

left, right = st.columns([3, 2], gap="large")
with left:
    draw_focus_controls(models, opened)
    method_controls(methods)
with right:
    answer = st.container()
    look_controls(methods)
picture_browse_area(opened, WIDGETS)
state = picture_session.from_widgets(loaded, methods, opened)
picture_session.save(state, loaded)

with answer:
    probe = prediction_area(state)
if probe is not None:
    truth = true_patches(state.model, state.focus.mask)
    pin_area(state, probe)
    made = method_cards(state, methods, probe, truth, seen_lines(state.focus, opened))
    truth_area(methods, made, truth, state.seed)
    without_area(state, methods, made, probe)
    question_area(state, methods, made, probe)
    keep_area(state, methods, made, truth)
warm_up()  # last: see components/engine_room.py
