"""What is randomized: models, data set, methods, modes, and behind a button what is seldom changed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import streamlit as st

from components.evaluate.controls import Places, data_control, models_control
from components.evaluate.state import MOST_EXAMPLES
from components.kept import KEPT
from components.method_picker import all_methods, chosen_methods
from components.randomization.session import key, put
from components.randomization.state import MOST_SEEDS
from components.randomization.words import MODE_TITLES, MODE_WORDS
from components.request_link import MOST_SEED
from engine.randomization.plan import MODES, THESIS_METHODS
from engine.registry import Explainer


def plan_controls(kind: str, methods: Mapping[str, Explainer]) -> Places:
    """All of them. Returns the places in which troubles are said."""
    model, data, number, times = st.columns([6, 4, 2, 2], gap="small")
    with model:
        models_control(kind, key(kind, "models"))
    with data:
        data_control(kind, key(kind, "data"))
    number.number_input(
        "Examples", 1, MOST_EXAMPLES, key=key(kind, "examples"), step=1, persist_state=KEPT,
        help="So many are drawn by the seed; all of a data set that has fewer.",
    )  # fmt: skip
    times.number_input(
        "Randomizations", 1, MOST_SEEDS, key=key(kind, "seeds"), step=1, persist_state=KEPT,
        help="Each part is made random so many times, by different seeds. An example counts by its mean over them.",
    )  # fmt: skip
    chosen_methods(methods, key(kind, ""))
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.pills(
            "Modes", MODES, selection_mode="multi", key=key(kind, "modes"), persist_state=KEPT,
            format_func=MODE_TITLES.__getitem__, label_visibility="collapsed",
            help="; ".join(f"{MODE_TITLES[mode]}: {MODE_WORDS[mode]}" for mode in MODES),
        )  # fmt: skip
        st.button(
            "The thesis's methods", key=key(kind, "set"), type="tertiary",
            on_click=partial(put, kind, "methods", [id for id in THESIS_METHODS if id in methods]),
        )  # fmt: skip
        all_methods(methods, THESIS_METHODS, key(kind, ""), st.session_state[key(kind, "models")])
        with st.popover("More settings", key=key(kind, "more")):
            _more(kind)
    return {"model": model.empty(), "data": data.empty(), "other": st.empty()}


def _more(kind: str) -> None:
    st.checkbox(
        "The head too, first", key=key(kind, "head"), persist_state=KEPT,
        help="All after the last block: a last LayerNorm, a pooler, the classifier.",
    )  # fmt: skip
    st.checkbox(
        "The embeddings too, last", key=key(kind, "embeddings"), persist_state=KEPT, help="All before the first block."
    )
    first, second = st.columns(2, gap="small")
    first.text_input("Split", key=key(kind, "split"), placeholder="the usual one", persist_state=KEPT)
    second.number_input(
        "Seed", 0, MOST_SEED, key=key(kind, "seed"), step=1, persist_state=KEPT,
        help="Draws the examples, and is the first seed of the randomizations.",
    )  # fmt: skip
