"""The popover of rare controls, which are drawn only while it is open."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest


def open_options(page: AppTest, key: str, is_open: bool = True) -> AppTest:
    """Open or close the popover with this widget key."""
    page.session_state[key] = is_open
    page.run()
    assert not page.exception
    return page
