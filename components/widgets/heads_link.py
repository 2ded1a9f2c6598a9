"""The link from a prediction to the heads behind it: the Attention page on the same model, input and class."""

from __future__ import annotations

import streamlit as st

from components.links import Query
from components.navigation import ATTENTION

LABEL = "See the heads"


def heads_link(kind: str, focus: Query, target: str | None, key: str) -> None:
    """Draw a button that looks like a link. `kind`: text or image; `focus`: the model and input as in a link."""
    if st.button(LABEL, key=key, type="tertiary", icon=":material/arrow_forward:", help=ATTENTION.question):
        query = {"input": [kind]} | focus | ({"target": [target]} if target else {})
        st.switch_page(ATTENTION.path, query_params=query)
