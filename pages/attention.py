"""Attention: what each head of a model looks at in a text or a picture, and whether it matters."""

from __future__ import annotations

import streamlit as st

from components.attention import state as attention_session
from components.attention.page import attention_panel
from components.compute import warm_up
from components.controls import options_popover
from components.errors import show_error
from components.inputs.choices import CHOICES
from components.navigation import ATTENTION, heading
from components.styles import use_styles
from engine.input_kinds import list_models
from engine.registry import all_explainers

use_styles()
heading(ATTENTION)

kind = attention_session.chosen_kind()
line = st.container(horizontal=True, gap="small", vertical_alignment="center")
with line:
    attention_session.kind_switch()
methods = all_explainers(kind)
models = list_models(kind)
loaded, opened, problems = attention_session.load(kind, models, methods)
for sentence in problems:
    show_error(sentence)

CHOICES[kind].draw(models, opened)
options = options_popover(attention_session.key(kind, ""), line)
if options is not None:
    with options:
        CHOICES[kind].draw_options(opened)
state = attention_session.from_widgets(loaded, opened)
attention_session.save(state, loaded)
attention_panel(state, options)
warm_up()  # last: see components/compute.py
