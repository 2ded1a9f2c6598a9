"""Study: an organiser designs a blind study, opens it, and sends its link."""

from __future__ import annotations

import streamlit as st

from components.frame import STUDY, guard, heading
from components.organiser import organiser
from components.study.area import study_area
from components.styles import use_styles

guard()
use_styles()
heading(STUDY)
with st.container(width=960):
    if organiser():
        study_area()
