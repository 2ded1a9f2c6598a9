"""Compare: models and methods side by side on one example or two texts, and where they agree or disagree."""

from __future__ import annotations

import streamlit as st

from components.compare import state as compare_state
from components.compare.comparison import class_labels
from components.compare.controls import column_controls, example_controls, view_controls
from components.compare.export import export_panel
from components.compare.maps_html import use_compare_styles
from components.compare.results import (
    about_panel,
    comparison_panel,
    label_words,
    matrix_panel,
    notes_panel,
    search_panel,
    verdict_panel,
)
from components.compare.state import SESSIONS, link_words
from components.compare.texts import texts_panel
from components.compute import warm_up
from components.errors import show_error
from components.navigation import COMPARE, heading
from components.styles import use_styles
from engine.input_kinds import list_models
from engine.registry import all_explainers

use_styles()
use_compare_styles()
heading(COMPARE)

kind = SESSIONS.chosen()
line = st.container(horizontal=True, gap="small", vertical_alignment="center", key="compare_line")
with line:
    SESSIONS.switch()
methods = all_explainers(kind)
models = list_models(kind)
loaded, source, errors = compare_state.load(kind, models)
if errors:
    show_error(link_words(errors))

example_controls(source, line, loaded.columns)
state = compare_state.from_widgets(loaded, source)
column_controls(state, methods, models)
view_controls(state, source, line)
compare_state.save(state, loaded)

verdict = st.container()
comparison = comparison_panel(state, methods)
if comparison is not None and compare_state.remember_labels(kind, class_labels(comparison.columns)):
    st.rerun()  # the maps are cached; only the list of classes is new
if comparison is not None:
    with verdict:
        verdict_panel(comparison, label_words(state, source))
        notes_panel(comparison, source)
    comparison = texts_panel(comparison)
    about_panel(comparison)
    matrix_panel(comparison)
    search_panel(comparison, source)
    export_panel(comparison)
warm_up()  # last: see components/compute.py
