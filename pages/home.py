"""Home: what can be asked here."""

from __future__ import annotations

import streamlit as st

from components.frame import HOME, TEXT, guard, heading

guard()

with st.container(width=760):
    heading(HOME)
    st.markdown(
        "What does a classifier's prediction rest on? Explanation methods answer differently, and not every "
        "answer can be trusted. Here you put them side by side, on your own model and input."
    )
    with st.container(border=True):
        st.markdown(f"**{TEXT.question}**")
        st.markdown(
            "Type a text or pick one. Each method gives every token one number, drawn as a map, with the "
            "prediction, the method's own accuracy check and what it cost."
        )
        st.page_link(TEXT.file, label=TEXT.heading, icon=":material/arrow_forward:")
    st.markdown(
        "**How to read a map.** In a signed map one colour speaks for the explained class and the other "
        "against it; an unsigned map only says how much. A map is a claim about the model, not about the "
        "world: compare several, and compare each with `random`, the baseline that knows nothing."
    )
    st.caption(
        "Attention weights in particular need not say why a model decides as it does "
        "(Jain and Wallace, *Attention is not Explanation*, NAACL 2019)."
    )
