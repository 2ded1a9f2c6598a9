"""Home: what can be asked here, and examples that are explained already."""

from __future__ import annotations

import streamlit as st

from components.compute import warm_up
from components.gallery import draw_gallery
from components.navigation import ATTENTION, EVALUATE, HOME, IMAGES, LIBRARY, STUDY, TEXT, guard, heading
from components.styles import use_styles

guard()
use_styles()
heading(HOME)
with st.container(width=820):
    st.markdown(
        "What does a classifier's prediction rest on? Explanation methods answer differently, and not every answer "
        "can be trusted. Here you put them side by side, on your own model and input."
    )
with st.container(horizontal=True, gap="medium"):
    st.page_link(TEXT.file, label=TEXT.heading, icon=":material/text_fields:", help=TEXT.question)
    st.page_link(IMAGES.file, label=IMAGES.heading, icon=":material/image:", help=IMAGES.question)
    st.page_link(ATTENTION.file, label=ATTENTION.heading, icon=":material/grid_view:", help=ATTENTION.question)
    st.page_link(EVALUATE.file, label=EVALUATE.heading, icon=":material/leaderboard:", help=EVALUATE.question)
    st.page_link(STUDY.file, label=STUDY.heading, icon=":material/how_to_vote:", help=STUDY.question)
    st.page_link(LIBRARY.file, label=LIBRARY.heading, icon=":material/inventory_2:", help=LIBRARY.question)

st.subheader("Explained already", anchor=False)
draw_gallery()
warm_up()  # last: see components/compute.py
