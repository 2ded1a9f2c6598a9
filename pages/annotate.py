"""Take part: a participant consents, then ranks anonymous explanations or makes guesses."""

from __future__ import annotations

import streamlit as st

from components.annotate.page import draw_study
from components.styles import use_styles

use_styles()
draw_study(st.query_params.get("study", ""))
