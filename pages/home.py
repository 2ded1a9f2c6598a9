"""Home: the questions that the pages answer, and examples with precomputed explanations."""

from __future__ import annotations

import streamlit as st

from components.compute import warm_up
from components.gallery import draw_gallery, prompt_link
from components.navigation import HOME, LIBRARY, REPRODUCTION, SECTIONS, TEXT, heading
from components.styles import use_styles

PROMPT_QUESTION = "Why does a language model write this token, and not another?"
PROMPT_HELP = "Text: Explain the next token of a prompt"

use_styles()
heading(HOME)
with st.container(key="questions"):
    groups = {**{name: entries for name, entries in SECTIONS.items() if name}, "More": (REPRODUCTION, LIBRARY)}
    left, middle, right = st.columns(3, gap="small")
    for (name, entries), place in zip(groups.items(), (left, left, middle, right, right), strict=True):
        with place.container(gap=None):
            st.markdown(f"**{name}**")
            for entry in entries:
                st.page_link(entry.path, label=entry.question, help=f"{entry.title}: {entry.heading}")
                if entry is TEXT and (prompt := prompt_link()) is not None:
                    st.page_link(TEXT.path, label=PROMPT_QUESTION, help=PROMPT_HELP, query_params=prompt)

st.subheader("Examples", anchor=False)
draw_gallery()
warm_up()  # last: see components/compute.py
