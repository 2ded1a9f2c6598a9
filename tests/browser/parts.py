"""Parts of pages, each alone on a page of its own: `attention_page.py` stands at /attention, and so on."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from components.server import draw_from_top, finish_callbacks

PARTS = ("attention", "choices", "detail", "flow", "patch", "pick", "pictures", "rank", "said")

if __name__ == "__main__":
    draw_from_top()
    finish_callbacks()
    files = [Path(__file__).with_name(f"{name}_page.py") for name in PARTS]
    pages = [st.Page(file, title=name, url_path=name) for name, file in zip(PARTS, files, strict=True)]
    # The default page has no name in its address, and each part is to have one.
    start = st.Page(lambda: st.text(", ".join(PARTS)), title="Parts", default=True)
    st.navigation([start, *pages], position="hidden").run()
