"""Study: an organizer designs a blind study, opens it, and sends its link."""

from __future__ import annotations

import streamlit as st

from components.navigation import STUDY, heading
from components.organizer import admit_organizer
from components.study.page import draw_study_page
from components.styles import use_styles

use_styles()
heading(STUDY)
with st.container(width=960):
    if admit_organizer():
        draw_study_page()
