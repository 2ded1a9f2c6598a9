"""What the Text page shows, as plain values: read from the link, written back to it, remembered by the session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from components.browse_state import PLAIN_BROWSE, Browse, read_browse, write_browse
from components.focus import Focus, Query, is_another, read_focus, read_text, text_query, write_focus
from components.link_choice import choice
from components.look import PLAIN, Look
from components.look_link import read_look, write_look
from components.open_data import OpenData
from components.question_words import MEASURES, QUESTIONS
from components.request_link import (
    Params,
    last_values,
    read_methods,
    read_opened,
    read_params,
    read_pins,
    read_seed,
    write_methods,
    write_places,
    write_unusual,
)
from engine.operators import OPERATORS
from engine.registry import Explainer
from engine.request import Example
from engine.words import UNITS

START = ("gradient_x_input", "gradient_l2", "attention_mean", "attention_rollout", "occlusion", "integrated_gradients",
         "kernel_shap", "random")  # fmt: skip
SECTIONS = ("browse", "questions")
"""What is open only when asked for."""
OF_A_TEXT = ("pin", "edit", "edit_sha", "edit_pair", "edit_pair_sha")
"""What a link says of one text and of no other."""


@dataclass(frozen=True)
class TextState:
    """`pins`: positions of the selected tokens. `edit`: the edited text beside its parent. `params`: what was changed.

    `opened`: which of `SECTIONS` are open; `question`: which one is asked; `removal` and `measure`: by what it is
    answered.
    """

    focus: Focus
    methods: tuple[str, ...]
    target: str | None = None
    unit: str = "token"
    seed: int = 0
    pins: tuple[int, ...] = ()
    edit: str | None = None
    edit_pair: str | None = None
    look: Look = PLAIN
    browse: Browse = PLAIN_BROWSE
    opened: tuple[str, ...] = ()
    question: str = QUESTIONS[0]
    removal: str = OPERATORS[0]
    measure: str = MEASURES[0]
    params: Params = field(default_factory=dict)

    @property
    def model(self) -> str:
        return self.focus.model

    @property
    def example(self) -> Example:
        return self.focus.example


def read(
    query: Mapping[str, list[str]], models: list[str], methods: Mapping[str, Explainer], opened: OpenData
) -> tuple[TextState, list[str]]:
    """The state that a link asks for, and a sentence for everything in it that is not known."""
    said: list[str] = []
    last = last_values(query)
    focus = read_focus(last, models, opened, said)
    if is_another(last, focus, opened):
        last = {name: given for name, given in last.items() if name not in OF_A_TEXT}
    return TextState(
        focus=focus,
        methods=read_methods(query.get("method", []), methods, START, said),
        target=last.get("target"),
        unit=choice("unit", last, UNITS, said),
        seed=read_seed(last, said),
        pins=read_pins(last, "tokens", said),
        **_edits(last, focus.example, said),
        look=read_look(last, said),
        browse=read_browse(last, said),
        opened=read_opened(last, SECTIONS, said),
        question=choice("question", last, QUESTIONS, said),
        removal=choice("removal", last, OPERATORS, said),
        measure=choice("measure", last, MEASURES, said),
        params=read_params(last, methods, said),
    ), said


def write(state: TextState) -> Query:
    """The link that reopens the state: only what differs from the usual is written."""
    query = write_focus(state.focus) | write_methods(state.methods, state.params)
    query |= write_unusual(
        (
            ("target", state.target, None),
            ("unit", state.unit, UNITS[0]),
            ("seed", state.seed, 0),
            ("pin", write_places(state.pins), ""),
            ("open", write_places(state.opened), ""),
            ("question", state.question, QUESTIONS[0]),
            ("removal", state.removal, OPERATORS[0]),
            ("measure", state.measure, MEASURES[0]),
        )
    )
    for name, text in (("edit", state.edit), ("edit_pair", state.edit_pair)):
        query |= {} if text is None else text_query(name, text)
    return query | write_look(state.look) | write_browse(state.browse)


def _edits(last: Mapping[str, str], parent: Example, said: list[str]) -> dict[str, str | None]:
    """Both texts of the edit; a link may name the first alone."""
    edit, pair = (read_text(last, name, said) for name in ("edit", "edit_pair"))
    return {"edit": edit, "edit_pair": parent.text_pair if pair is None and edit is not None else pair}
