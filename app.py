"""The dashboard: page configuration and navigation."""

from __future__ import annotations

import streamlit as st

from components.frame import ICON, navigation

page = navigation()
st.set_page_config(
    page_title=f"{page.title} · Exegesis",
    page_icon=ICON,
    layout="wide",
    menu_items={"About": "Exegesis: see, compare and judge explanations of transformer classifiers."},
)
page.run()
