"""The dashboard: page configuration and navigation when Streamlit runs it, the server when that imports it."""

from __future__ import annotations

import streamlit as st

from components.annotate.api import study_routes
from components.frame import ICON, navigation
from components.organizer import admit_visitor, is_stranger
from components.serving import ask_no_network, base_path, middleware, opening_a_browser, send_no_path
from components.stale_choices import run_begins, run_ended
from engine.access import restrict
from engine.models import sandbox

if __name__ == "__main__":
    restrict(is_stranger)
    page, entry = navigation()
    st.set_page_config(
        page_title=f"{page.title} · Exegesis",
        page_icon=ICON,
        layout="wide",
        menu_items={"About": "Exegesis: see, compare and judge explanations of transformer classifiers."},
    )
    if entry.alone or entry.organiser or admit_visitor(entry):
        run_begins()
        page.run()
        run_ended()
else:
    ask_no_network()
    send_no_path()
    sandbox.enable()
    app = st.App(__file__, routes=study_routes(base_path()), middleware=middleware(), lifespan=opening_a_browser)
