"""The dashboard: draws the current page when run by Streamlit, and defines the server's app when imported by it."""

from __future__ import annotations

import streamlit as st

from components.annotate.api import study_routes
from components.ask.bar import ask_bar
from components.controls import begin_run, end_run
from components.monitoring import monitoring_routes
from components.navigation import ICON, caution, navigation
from components.organizer import admit_visitor, is_stranger
from components.server import (
    base_path,
    disable_address_lookup,
    draw_from_top,
    finish_callbacks,
    hide_script_path,
    middleware,
    run_pages_in_frame,
    start_up,
    wait_for_imports,
)
from engine.access import restrict
from engine.models import sandbox
from engine.models.catalog import fixed_revisions
from engine.telemetry import configure_logging

if __name__ == "__main__":
    draw_from_top()
    wait_for_imports()
    restrict(is_stranger)
    page, entry = navigation()
    st.set_page_config(
        page_title=f"{page.title} · Exegesis",
        page_icon=ICON,
        layout="wide",
        menu_items={"About": "Exegesis: explanations of transformer classifiers and language models."},
    )
    if entry.alone or entry.organizer or admit_visitor(entry):
        begin_run()
        ask_bar(entry)
        with fixed_revisions():
            page.run()
        caution(entry)
        end_run()
else:
    disable_address_lookup()
    hide_script_path()
    run_pages_in_frame()
    finish_callbacks()
    sandbox.enable()
    configure_logging()
    routes = [*study_routes(base_path()), *monitoring_routes(base_path())]
    app = st.App(__file__, routes=routes, middleware=middleware(), lifespan=start_up)
