"""The part of a study's form that chooses its items: their number and conditions, by hand, and a preview."""

from __future__ import annotations

from datetime import UTC

import streamlit as st

from components.study.controls import NARROW, key, line, lines, number, one_of, row, value
from components.study.fields import control_names, design_of, fields_of
from components.study.pick import pick
from components.study.preview import preview
from components.trouble import say_error
from engine.errors import UsageError
from engine.study.design import Design

CHOICES = {"seed": "Drawn at random", "filter": "Drawn of those that fit", "hand": "Picked by hand"}
JUDGED = {"any": "right or wrong", "right": "right", "wrong": "wrong"}
HAND_HELP = "Their numbers in the data set, as its list shows them: 3, 7, 10-19. The first ones are for practice."
SAYS_WHICH = ("kind", "practice", "seed")
"""Fields besides those of `ItemChoice` on which the items depend."""


def items_form() -> None:
    """Draws the controls and what they come to."""
    st.subheader("Items", anchor=False)
    one_of("items.how", "How items are chosen", CHOICES)
    how = value("items.how")
    with row():
        if how != "hand":
            number("items.count", "Number of items")
        number("practice", "Practice items")
        line("items.split", "Part of the data set", "Such as train or test. Empty: the usual one.", NARROW)
        number("seed", "Seed")
    if how == "hand":
        lines("items.indices", "Numbers of the examples", HAND_HELP, 80)
        pick(value("kind"), _dataset(), value("items.split").strip() or None)
    if how == "filter":
        _conditions()
    _preview()


def _conditions() -> None:
    with row():
        line("items.label", "Class", "Its name in the data set. Empty: any.", NARROW)
        if value("kind") == "text":
            number("items.least_words", "Fewest words")
            number("items.most_words", "Most words")
    one_of("items.judged", "The model is", JUDGED)


def _preview() -> None:
    try:
        chosen = _choice()
    except UsageError as error:
        say_error(str(error))
        return
    preview(chosen)


def _choice() -> Design:
    """What the controls say of the items: what else stands in the form is not in its way."""
    asked = [name for name in control_names() if name in SAYS_WHICH or name.startswith("items.")]
    fields = fields_of(Design(), UTC) | {name: value(name) for name in asked}
    return design_of(fields, "", _dataset(), [], UTC)


def _dataset() -> str:
    held = st.session_state.get(key(f"{value('kind')}.dataset")) or ""
    return str(held).strip()
