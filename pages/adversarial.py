"""Adversarial: can a heatmap be changed while the prediction stays the same?"""

from __future__ import annotations

import streamlit as st

from components.adversarial import controls
from components.adversarial.descriptions import MANY_ABOUT
from components.adversarial.example_panel import attack_area
from components.adversarial.experiment_panel import experiment_area
from components.compute import warm_up
from components.errors import show_error
from components.navigation import ADVERSARIAL, heading
from components.styles import use_styles
from engine.input_kinds import list_models
from engine.registry import all_explainers

use_styles()
heading(ADVERSARIAL)

kind = controls.chosen_kind()
methods = all_explainers(kind)
models = list_models(kind)
loaded, opened, errors = controls.load(kind, models, methods)
for error in errors:
    show_error(error)

place = controls.attack_controls(kind, models, methods, opened)
result = st.container()
st.subheader("On many examples", anchor=False, help=MANY_ABOUT)
answer = st.container()
controls.experiment_controls(kind, methods)
state = controls.from_widgets(loaded, opened)
controls.save(state, loaded)
below = st.container()
with result:
    attack_area(state, methods, opened, place)
with below:
    experiment_area(state, methods, opened, answer)
warm_up()  # last: see components/compute.py
