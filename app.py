"""The dashboard: page configuration and navigation when Streamlit runs it, the server when that imports it."""

from __future__ import annotations

import streamlit as st

from components.frame import ICON, navigation
from components.serving import base_path, opening_a_browser
from components.study.api import study_routes

if __name__ == "__main__":
    page = navigation()
    st.set_page_config(
        page_title=f"{page.title} · Exegesis",
        page_icon=ICON,
        layout="wide",
        menu_items={"About": "Exegesis: see, compare and judge explanations of transformer classifiers."},
    )
    page.run()
else:
    app = st.App(__file__, routes=study_routes(base_path()), lifespan=opening_a_browser)
