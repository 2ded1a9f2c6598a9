"""Labels of the user's own for a model of pairs (NLI): two fields that name a zero-shot classifier as the model."""

from __future__ import annotations

import streamlit as st

from components.controls import PERSIST, restore_controls
from components.errors import show_error
from components.state import Selection
from engine.errors import UsageError
from engine.models.summary import summarize_model
from engine.models.zero_shot_name import HYPOTHESIS, ZeroShotName, is_entailment, read_labels, read_zero_shot

LABELS, TEMPLATE, ERROR = "labels", "hypothesis", "labels error"
HELP = (
    "The model reads the text once with each label's hypothesis, and the probability of a label is how much the text "
    "entails it (zero-shot classification). Separate labels with commas. Empty: the model's own task."
)


def draw_label_fields(selection: Selection) -> None:
    """Draw the fields below the text, if the chosen model decides pairs."""
    try:
        named = read_zero_shot(model := str(selection.value("model") or ""))
    except UsageError:
        return  # reported where the model is used
    base = model if named is None else named.model
    if named is None and not any(map(is_entailment, summarize_model(base).labels)):
        return
    st.session_state[selection.key(LABELS)] = "" if named is None else ", ".join(named.chosen)
    st.session_state[selection.key(TEMPLATE)] = HYPOTHESIS if named is None else named.hypothesis
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        st.text_input(
            "Labels of your own", key=selection.key(LABELS), placeholder="travel, cooking", help=HELP,
            on_change=choose_labels, args=(selection, base), persist_state=PERSIST,
        )  # fmt: skip
        if named is not None:
            st.text_input(
                "Hypothesis", key=selection.key(TEMPLATE), help="A sentence with {} in the label's place.",
                on_change=choose_labels, args=(selection, base), persist_state=PERSIST,
            )  # fmt: skip
    if error := st.session_state.pop(selection.key(ERROR), None):
        show_error(error)


def choose_labels(selection: Selection, base: str) -> None:
    """Make the typed labels the model, in a callback; without any, the NLI model itself."""
    restore_controls()
    labels = read_labels(str(selection.value(LABELS) or ""))
    try:
        named = str(ZeroShotName(base, labels, str(selection.value(TEMPLATE) or HYPOTHESIS))) if labels else base
    except UsageError as error:
        st.session_state[selection.key(ERROR)] = str(error)
        return
    selection.put("model", named)
    if labels:
        selection.put("has_pair", False)
