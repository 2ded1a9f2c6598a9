"""Scaffold: how well does an explanation teach a student what the model will say?"""

from __future__ import annotations

import streamlit as st

from components.engine_room import warm_up
from components.frame import SCAFFOLD, guard, heading
from components.scaffold import session as scaffold_session
from components.scaffold.area import scaffold_area
from components.scaffold.controls import plan_controls
from components.scaffold.words import ABOUT
from components.styles import use_styles
from components.trouble import say_error

guard()
use_styles()
heading(SCAFFOLD)
st.markdown(ABOUT)

kind = scaffold_session.chosen_kind()
scaffold_session.kind_switch()
loaded, said = scaffold_session.load(kind)
for sentence in said:
    say_error(sentence)

places = plan_controls(kind)
state = scaffold_session.from_widgets(loaded)
scaffold_session.save(state, loaded)
scaffold_area(state, places)
warm_up()  # last: see components/engine_room.py
