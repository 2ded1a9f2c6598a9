"""What the Images page shows, as plain values: read from the link, written back to it, remembered by the session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from components.browse_state import PLAIN_BROWSE, Browse, read_browse, write_browse
from components.focus import Query
from components.link_choice import choice
from components.open_pictures import OpenPictures
from components.picture_focus import PictureFocus, is_another_picture, read_picture_focus, write_picture_focus
from components.picture_look import PLAIN_PICTURE, PictureLook, read_picture_look, write_picture_look
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
from engine.operators import PATCH_OPERATORS
from engine.registry import Explainer
from engine.request import Picture

START = ("gradient_x_input", "grad_cam", "attention_rollout", "occlusion", "integrated_gradients", "random")
SECTIONS = ("browse", "truth", "questions")
"""What is open only when asked for."""
OF_A_PICTURE = ("pin",)
"""What a link says of one picture and of no other."""


@dataclass(frozen=True)
class PictureState:
    """`pins`: numbers of the selected patches, row by row from 0. `params`: what was changed.

    `opened`: which of `SECTIONS` are open; `question`: which one is asked; `removal` and `measure`: by what it is
    answered.
    """

    focus: PictureFocus
    methods: tuple[str, ...]
    target: str | None = None
    seed: int = 0
    pins: tuple[int, ...] = ()
    look: PictureLook = PLAIN_PICTURE
    browse: Browse = PLAIN_BROWSE
    opened: tuple[str, ...] = ()
    question: str = QUESTIONS[0]
    removal: str = PATCH_OPERATORS[0]
    measure: str = MEASURES[0]
    params: Params = field(default_factory=dict)

    @property
    def model(self) -> str:
        return self.focus.model

    @property
    def picture(self) -> Picture | None:
        return self.focus.picture


def read(
    query: Mapping[str, list[str]], models: list[str], methods: Mapping[str, Explainer], opened: OpenPictures
) -> tuple[PictureState, list[str]]:
    """The state that a link asks for, and a sentence for everything in it that is not known."""
    said: list[str] = []
    last = last_values(query)
    focus = read_picture_focus(last, models, opened, said)
    if is_another_picture(last, focus, opened):
        last = {name: given for name, given in last.items() if name not in OF_A_PICTURE}
    return PictureState(
        focus=focus,
        methods=read_methods(query.get("method", []), methods, START, said),
        target=last.get("target"),
        seed=read_seed(last, said),
        pins=read_pins(last, "patches", said),
        look=read_picture_look(last, said),
        browse=read_browse(last, said),
        opened=read_opened(last, SECTIONS, said),
        question=choice("question", last, QUESTIONS, said),
        removal=choice("removal", last, PATCH_OPERATORS, said),
        measure=choice("measure", last, MEASURES, said),
        params=read_params(last, methods, said),
    ), said


def write(state: PictureState) -> Query:
    """The link that reopens the state: only what differs from the usual is written."""
    query = write_picture_focus(state.focus) | write_methods(state.methods, state.params)
    query |= write_unusual(
        (
            ("target", state.target, None),
            ("seed", state.seed, 0),
            ("pin", write_places(state.pins), ""),
            ("open", write_places(state.opened), ""),
            ("question", state.question, QUESTIONS[0]),
            ("removal", state.removal, PATCH_OPERATORS[0]),
            ("measure", state.measure, MEASURES[0]),
        )
    )
    return query | write_picture_look(state.look) | write_browse(state.browse)
