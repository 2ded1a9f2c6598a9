"""The way from a prediction to the heads behind it: the Attention page on the same model, input and class."""

from __future__ import annotations

import streamlit as st

from components.frame import ATTENTION
from components.inputs.link import Query

LABEL = "See the heads"


def heads_link(kind: str, focus: Query, target: str | None, key: str) -> None:
    """A button that looks like a link. `kind`: text or image; `focus`: what the page looks at, as a link says it."""
    if st.button(LABEL, key=key, type="tertiary", icon=":material/arrow_forward:", help=ATTENTION.question):
        st.switch_page(ATTENTION.path, query_params=link(kind, focus, target))


def link(kind: str, focus: Query, target: str | None) -> Query:
    """What the Attention page is asked for."""
    return {"input": [kind]} | focus | ({"target": [target]} if target else {})
