"""What the Text page shows, as plain values: read from the link, written back to it, remembered by the session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from components.inputs.datasets import OpenTexts
from components.inputs.link import Query, read_text, write_text
from components.inputs.text_choice import TextFocus, is_other_text, read_text_focus, write_text_focus
from components.link_choice import choice
from components.page_state import Offered, PageState, read_shared, write_shared
from components.request_link import last_values, write_unusual
from components.widgets.view_options import DEFAULT_VIEW, ViewOptions, read_view_options, write_view_options
from engine.registry import Explainer
from engine.removal_operators import OPERATORS
from engine.request import Example
from engine.word_units import UNITS

START = ("gradient_x_input", "gradient_l2", "attention_mean", "attention_rollout", "occlusion", "integrated_gradients",
         "kernel_shap", "random")  # fmt: skip
OFFERED = Offered(START, ("browse", "questions"), OPERATORS, "tokens")
OF_A_TEXT = ("pin", "edit", "edit_sha", "edit_pair", "edit_pair_sha")
"""What a link says of one text and of no other."""


@dataclass(frozen=True, kw_only=True)
class TextState(PageState):
    """`pins` are positions of tokens. `edit`: the edited text beside its parent."""

    focus: TextFocus
    unit: str = "token"
    edit: str | None = None
    edit_pair: str | None = None
    look: ViewOptions = DEFAULT_VIEW
    removal: str = OPERATORS[0]

    @property
    def model(self) -> str:
        return self.focus.model

    @property
    def example(self) -> Example:
        return self.focus.example


def read(
    query: Query, models: list[str], methods: Mapping[str, Explainer], opened: OpenTexts
) -> tuple[TextState, list[str]]:
    """The state that a link asks for, and a sentence for everything in it that is not known."""
    said: list[str] = []
    last = last_values(query)
    focus = read_text_focus(last, models, opened, said)
    if is_other_text(last, focus, opened):
        last = {name: given for name, given in last.items() if name not in OF_A_TEXT}
    return TextState(
        focus=focus,
        unit=choice("unit", last, UNITS, said),
        **_edits(last, focus.example, said),
        look=read_view_options(last, said),
        **read_shared(query, last, methods, OFFERED, said),
    ), said


def write(state: TextState) -> Query:
    """The link that reopens the state: only what differs from the usual is written."""
    query = (
        write_text_focus(state.focus) | write_shared(state, OFFERED) | write_unusual([("unit", state.unit, UNITS[0])])
    )
    for name, text in (("edit", state.edit), ("edit_pair", state.edit_pair)):
        query |= {} if text is None else write_text(name, text)
    return query | write_view_options(state.look)


def _edits(last: Mapping[str, str], parent: Example, said: list[str]) -> dict[str, Any]:
    """Both texts of the edit; a link may name the first alone."""
    edit, pair = (read_text(last, name, said) for name in ("edit", "edit_pair"))
    return {"edit": edit, "edit_pair": parent.text_pair if pair is None and edit is not None else pair}
