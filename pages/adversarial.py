"""Adversarial: can a heatmap be changed while the model answers as before?"""

from __future__ import annotations

import streamlit as st

from components.adversarial import session as adversarial_session
from components.adversarial.area import attack_area
from components.adversarial.controls import attack_controls
from components.adversarial.many import many_area, many_controls
from components.adversarial.words import ABOUT
from components.engine_room import explainers, warm_up
from components.frame import ADVERSARIAL, guard, heading
from components.styles import use_styles
from components.trouble import say_error
from engine.input_kinds import list_models

guard()
use_styles()
heading(ADVERSARIAL)
st.markdown(ABOUT)

kind = adversarial_session.chosen_kind()
adversarial_session.kind_switch()
methods = explainers(kind)
models = list_models(kind)
loaded, opened, said = adversarial_session.load(kind, models, methods)
for sentence in said:
    say_error(sentence)

place = attack_controls(kind, models, methods, opened)
result = st.container()
many_controls(kind, methods)
state = adversarial_session.from_widgets(loaded, opened)
adversarial_session.save(state, loaded)
below = st.container()
with result:
    attack_area(state, methods, opened, place)
with below:
    many_area(state, methods, opened)
warm_up()  # last: see components/engine_room.py
