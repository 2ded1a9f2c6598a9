"""Randomization: does a method's map change when the model is destroyed block by block?"""

from __future__ import annotations

import streamlit as st

from components.engine_room import explainers, warm_up
from components.frame import RANDOMIZATION, guard, heading
from components.randomization import session as randomization_session
from components.randomization.area import randomization_area
from components.randomization.controls import plan_controls
from components.randomization.words import ABOUT
from components.styles import use_styles
from components.trouble import say_error

guard()
use_styles()
heading(RANDOMIZATION)
st.markdown(ABOUT)

kind = randomization_session.chosen_kind()
randomization_session.kind_switch()
methods = explainers(kind)
loaded, said = randomization_session.load(kind, methods)
for sentence in said:
    say_error(sentence)

places = plan_controls(kind, methods)
state = randomization_session.from_widgets(loaded, methods)
randomization_session.save(state, loaded)
randomization_area(state, methods, places)
warm_up()  # last: see components/engine_room.py
