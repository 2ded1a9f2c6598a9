"""Home: what can be asked here."""

from __future__ import annotations

import streamlit as st

from components.frame import HOME, TEXT, guard, heading

guard()
heading(HOME)

st.markdown(
    "Exegesis shows what a transformer classifier's prediction rests on, by many explanation methods "
    "side by side, and helps you judge which of them to trust."
)
with st.container(border=True):
    st.markdown(f"**{TEXT.question}**")
    st.markdown(
        "Type a text or pick one. Each method gives every token one number; the page shows them as maps "
        "in one scale, with the prediction, the method's own accuracy check and what it cost."
    )
    if TEXT.path.is_file():
        st.page_link(TEXT.file, label="Explain a text")

st.markdown(
    "**How to read a map.** In a signed map one colour speaks for the explained class and the other "
    "against it; an unsigned map only says how much. A map is a claim about the model, not about the "
    "world: compare several, and compare each with `random`, the baseline that knows nothing."
)
st.caption(
    "Attention weights in particular need not say why a model decides as it does "
    "(Jain and Wallace, *Attention is not Explanation*, NAACL 2019)."
)
