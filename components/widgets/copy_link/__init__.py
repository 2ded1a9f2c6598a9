"""A button that copies the address of the page, which holds its state."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import streamlit as st

from components.widgets.base import Component

NAME, KEY = "exegesis_copy_link", "copy_link"
LABEL, COPIED, FAILED = "Copy link", "Copied", "Copy it from the address bar"
FILES = Path(__file__).with_name("copy_link")


def draw_copy_link() -> None:
    """Draw the button at the end of the title's line; it takes no room of its own.

    The browser copies its own address, so the link is always that of the current state.
    """
    _component()(key=KEY, data={"label": LABEL, "copied": COPIED, "failed": FAILED}, width="content")


@cache
def _component() -> Component:
    css, script = (FILES.with_suffix(suffix).read_text(encoding="utf-8") for suffix in (".css", ".js"))
    built: Component = st.components.v2.component(
        NAME,
        html='<button type="button" class="xc-copy"></button><span class="xc-copied" role="status"></span>',
        css=css,
        js=script,
        isolate_styles=False,
    )
    return built
