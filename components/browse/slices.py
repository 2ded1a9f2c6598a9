"""A list of examples as a data set: its name for commands, and a link that evaluates methods on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from components.controls import PERSIST, Key
from components.errors import show_note
from components.experiment.state import plan_link
from components.inputs.datasets import OpenPictures, OpenTexts
from components.navigation import EVALUATE
from components.numbers import count
from engine.data.slices import slice_name
from engine.errors import UsageError
from engine.evaluation.plan import EVALUATE as EVALUATION
from engine.input_kinds import input_kind

LONGEST = 1500
"""Maximum characters of a slice's name, because browsers and proxies cut longer addresses."""
LABEL = "Use this list as a data set"
HELP = "Letters, digits, spaces, dots and hyphens. It becomes part of the data set's name."


def draw_slice(
    kind: str, opened: OpenTexts | OpenPictures, model: str, listed: Sequence[int], total: int, key: Key
) -> None:
    """Draw the slice of the listed examples in a popover; nothing if all or none are listed."""
    if not 0 < len(listed) < total:
        return
    with st.popover(LABEL, icon=":material/content_cut:", key=key("slice_panel"), on_change="rerun") as panel:
        if not panel.open:
            return
        title = st.text_input("Name of the slice", key=key("slice"), max_chars=40, help=HELP, persist_state=PERSIST)
        revision = "" if input_kind(kind).is_registered(opened.name) else opened.data.revision
        try:
            name = slice_name(opened.name, listed, (title or "").strip(), revision)
        except UsageError as error:
            show_note(str(error))
            return
        if len(name) > LONGEST:
            show_note(f"{count(len(listed), 'example')} are too many for a name. Filter the list further.")
            return
        st.code(name, language=None, wrap_lines=True)
        plan = replace(
            EVALUATION.opens_with[kind], models=(model,), dataset=name, split=opened.split or None, examples=len(listed)
        )
        label = f"Evaluate methods on {count(len(listed), 'example')}"
        st.page_link(EVALUATE.path, label=label, icon=":material/open_in_new:", query_params=plan_link(plan))
