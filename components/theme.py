"""The theme in which the page is seen."""

from __future__ import annotations

import streamlit as st

from components.palette import Theme


def shown_theme() -> Theme:
    """The theme that the browser told; light until it has."""
    return "dark" if st.context.theme.type == "dark" else "light"
