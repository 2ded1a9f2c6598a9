"""Home: the questions that the pages answer, and examples that are explained already."""

from __future__ import annotations

import streamlit as st

from components.compute import warm_up
from components.gallery import draw_gallery
from components.navigation import HOME, LIBRARY, REPRODUCTION, SECTIONS, heading
from components.styles import use_styles

use_styles()
heading(HOME)
with st.container(key="questions"):
    groups = {**{name: entries for name, entries in SECTIONS.items() if name}, "More": (REPRODUCTION, LIBRARY)}
    columns = st.columns(len(groups) - 1, gap="small")
    for (name, entries), place in zip(groups.items(), (*columns, columns[-1]), strict=True):
        with place.container(gap=None):
            st.markdown(f"**{name}**")
            for entry in entries:
                st.page_link(entry.file, label=entry.question, help=f"{entry.title}: {entry.heading}")

st.subheader("Examples", anchor=False)
draw_gallery()
warm_up()  # last: see components/compute.py
