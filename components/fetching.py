"""Language models that are downloaded on request: the list of them, and the download with its progress."""

from __future__ import annotations

import streamlit as st

from components.errors import describe_error, error_html
from components.organizer import is_organizer
from engine.models.fetched import FETCHED, fetch_model, is_fetched


def fetchable_models() -> list[str]:
    """Return the models that are not stored on this machine yet; empty for anyone but the organizer."""
    return [name for name in FETCHED if not is_fetched(name)] if is_organizer() else []


def fetch_with_progress(name: str) -> bool:
    """Download a model with a progress bar. Return whether it succeeded, after drawing the error if not."""
    bar = st.progress(0.0, "Starting …")

    def report(done: int, total: int, what: str) -> None:
        bar.progress(done / total, f"{what[0].upper()}{what[1:]} …")

    try:
        fetch_model(name, report)
    except Exception as error:
        bar.empty()
        st.html(error_html(describe_error(error)))
        return False
    return True
