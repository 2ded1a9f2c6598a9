"""The labels of a zero-shot model: typed on a page, stored in the model's name."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from components.controls import PERSIST
from components.errors import describe_error, show_error
from components.state import Selection
from engine.errors import UsageError
from engine.models.catalog import needs_labels
from engine.models.label_prompts import PLACE, PLAIN_TEMPLATE, base_name, format_labels, split_prompts, with_prompts

LABELS_HELP = (
    "Two or more, between commas. The model reads each as a text and compares it with the picture. "
    "Use | between labels that contain a comma."
)
TEMPLATE_HELP = f"The text around a label: {PLACE} is where it stands, as in: a photo of a {PLACE}"
PHOTO = f"a photo of a {PLACE}"


def draw_label_controls(selection: Selection, known: Sequence[str]) -> None:
    """Draw the labels and the template of the chosen model, if its classes are labels.

    `known`: the classes of the data set, which a button takes.
    """
    model = str(selection.value("model") or "").strip()
    if not model or not needs_labels(model):
        return
    _fill(selection, model)
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key=selection.key("labels row")):
        st.text_input(
            "Labels", key=selection.key("labels"), on_change=_take, args=(selection,), help=LABELS_HELP, width=420,
            placeholder="a cat, a dog", persist_state=PERSIST,
        )  # fmt: skip
        st.text_input(
            "Template", key=selection.key("template"), on_change=_take, args=(selection,), help=TEMPLATE_HELP,
            width=260, persist_state=PERSIST,
        )  # fmt: skip
        if len(known) > 1:
            st.button(
                "Use the data set's classes", key=selection.key("labels of set"), on_click=_take_known,
                args=(selection, tuple(known)),
            )  # fmt: skip
    if error := selection.value("labels error"):
        show_error(str(error))


def _fill(selection: Selection, model: str) -> None:
    """Give the controls the labels of the model's name once it has changed."""
    if selection.value("labels of") == model:
        return
    try:
        prompts = split_prompts(model)[1]
    except UsageError:
        return
    selection.put("labels of", model)
    if prompts is not None:
        selection.put("labels", format_labels(prompts.labels))
        selection.put("labels error", "")
    elif selection.value("labels") is None:
        selection.put("labels", "")
    if prompts is not None or selection.value("template") is None:
        selection.put("template", PLAIN_TEMPLATE if prompts is None else prompts.template)


def _take(selection: Selection) -> None:
    """Store the typed labels in the model's name, or say what is wrong with them."""
    model = base_name(str(selection.value("model") or "").strip())
    try:
        named = with_prompts(
            model, str(selection.value("labels") or ""), str(selection.value("template") or PLAIN_TEMPLATE)
        )
    except UsageError as error:
        selection.put("labels error", describe_error(error))
        return
    selection.put("labels error", "")
    selection.put("model", named)


def _take_known(selection: Selection, known: tuple[str, ...]) -> None:
    selection.put("labels", format_labels(known))
    if str(selection.value("template") or PLAIN_TEMPLATE) == PLAIN_TEMPLATE:
        selection.put("template", PHOTO)
    _take(selection)
