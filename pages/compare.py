"""Compare: any models and methods side by side on one example, how far they agree, and where they do not."""

from __future__ import annotations

import streamlit as st

from components.compare import session as compare_session
from components.compare.about import about_area, label_words
from components.compare.columns import column_controls
from components.compare.compared import labels_of
from components.compare.controls import look_controls, looking_controls
from components.compare.keep import keep_area
from components.compare.matrix import matrix_area, said_area
from components.compare.results import compared_area
from components.compare.search import search_area
from components.compare.session import INPUT_KIND
from components.compare.state import link_words
from components.compare.styles import use_compare_styles
from components.engine_room import explainers, warm_up
from components.frame import COMPARE, guard, heading
from components.styles import use_styles
from components.trouble import say_error
from engine.input_kinds import list_models

guard()
use_styles()
use_compare_styles()
heading(COMPARE)

kind = INPUT_KIND.chosen()
INPUT_KIND.switch()
methods = explainers(kind)
models = list_models(kind)
loaded, opened, said = compare_session.load(kind, models)
if said:
    say_error(link_words(said))

looking_controls(opened)
state = compare_session.from_widgets(loaded, opened)
column_controls(state, methods, models)
with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key=f"compare_options_{kind}"):
    look_controls(state)
compare_session.save(state, loaded)

told = st.container()
compared = compared_area(state, methods)
if compared is not None and compare_session.learned(kind, labels_of(compared.columns)):
    st.rerun()  # the maps are there: only the list of classes is new
if compared is not None:
    with told:
        said_area(compared, label_words(state, opened))
    about_area(compared)
    matrix_area(compared)
    search_area(compared, opened)
    keep_area(compared)
warm_up()  # last: see components/engine_room.py
