"""What is kept of a page: buttons for files, and the box that says how to cite and repeat."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from components.citing import Shown, cite_html


def file_button(label: str, name: str, kind: str, build: Callable[[], str | bytes], help: str, key: str) -> None:
    """A file to download, built when the button is pressed and not before."""
    st.download_button(label, build, name, kind, key=key, help=help, on_click="ignore", width="content")


def cite_box(shown: Shown, command: str, how: str, key: str) -> None:
    """How to cite what is shown, and the command that makes it again. `how`: a sentence about that command."""
    with st.expander("Cite this", key=key):
        st.html(cite_html(shown))
        st.caption(how)
        st.code(command, language="bash", wrap_lines=True)
