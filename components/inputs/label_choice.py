"""The labels of a zero-shot model of pictures or texts: typed on a page, stored in the model's name."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from components.controls import PERSIST, restore_controls
from components.errors import describe_error, show_error
from components.state import Selection
from engine.errors import UsageError
from engine.models.catalog import label_rules, locate
from engine.models.label_prompts import (
    PAIR_LABELS,
    PICTURE_LABELS,
    PLACE,
    LabelRules,
    base_name,
    format_labels,
    split_prompts,
    with_prompts,
)

SEPARATED = " Separate labels with commas, and put a label that holds a comma in double quotes."
LABELS_HELP = {
    PICTURE_LABELS: "Two or more. The model reads each as a text and compares it with the picture." + SEPARATED,
    PAIR_LABELS: (
        "The model reads the text once with each label in the template, and the probability of a label is how much the "
        "text entails it (zero-shot classification). Empty: the model's own task." + SEPARATED
    ),
}
EXAMPLES = {PICTURE_LABELS: "a cat, a dog", PAIR_LABELS: "travel, cooking"}
TEMPLATE_HELP = f"The text around a label: {PLACE} is where it stands, as in: a photo of a {PLACE}"
PHOTO = f"a photo of a {PLACE}"


def draw_label_controls(selection: Selection, known: Sequence[str] = ()) -> None:
    """Draw the labels and the template of the chosen model, if it takes labels.

    `known`: the classes of the data set, which a button fills in.
    """
    model = str(selection.value("model") or "").strip()
    rules = label_rules(model) if model else None
    if rules is None:
        return
    _fill(selection, model, rules)
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key=selection.key("labels row")):
        st.text_input(
            "Labels", key=selection.key("labels"), on_change=_take, args=(selection, rules), help=LABELS_HELP[rules],
            width=420, placeholder=EXAMPLES[rules], persist_state=PERSIST,
        )  # fmt: skip
        if base_name(model) != model or rules is PICTURE_LABELS:
            st.text_input(
                "Template", key=selection.key("template"), on_change=_take, args=(selection, rules),
                help=TEMPLATE_HELP, width=260, persist_state=PERSIST,
            )  # fmt: skip
        if len(known) > 1:
            st.button(
                "Use the data set's classes", key=selection.key("labels of set"), on_click=_take_known,
                args=(selection, rules, tuple(known)),
            )  # fmt: skip
    if error := selection.value("labels error"):
        show_error(str(error))


def _fill(selection: Selection, model: str, rules: LabelRules) -> None:
    """Fill the controls with the labels in the model's name, if that has changed."""
    if selection.value("labels of") == model:
        return
    try:
        prompts = split_prompts(model)[1]
    except UsageError:
        return  # reported where the model is used
    selection.put("labels of", model)
    selection.put("labels error", "")
    selection.put("labels", "" if prompts is None else format_labels(prompts.labels))
    selection.put("template", prompts.template if prompts is not None and prompts.template else rules.template)


def _take(selection: Selection, rules: LabelRules) -> None:
    """Store the typed labels in the model's name, or report what is wrong with them.

    Without labels, the name is that of the plain model.
    """
    restore_controls()
    model = base_name(str(selection.value("model") or "").strip())
    labels, template = (str(selection.value(name) or "").strip() for name in ("labels", "template"))
    try:
        named = with_prompts(model, labels, None if template == rules.template else template) if labels else model
        locate(named)
    except UsageError as error:
        selection.put("labels error", describe_error(error))
        return
    selection.put("labels error", "")
    selection.put("model", named)
    if labels and rules is PAIR_LABELS:
        selection.put("has_pair", False)


def _take_known(selection: Selection, rules: LabelRules, known: tuple[str, ...]) -> None:
    selection.put("labels", format_labels(known))
    if str(selection.value("template") or rules.template) == PICTURE_LABELS.template:
        selection.put("template", PHOTO)
    _take(selection, rules)
