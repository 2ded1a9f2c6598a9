"""What the Images page shows, as plain values: read from the link, written back to it, remembered by the session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from components.inputs.datasets import OpenPictures
from components.inputs.link import Query
from components.inputs.picture_choice import PictureFocus, is_other_picture, read_picture_focus, write_picture_focus
from components.page_state import Offered, PageState, read_shared, write_shared
from components.picture.look import PLAIN_PICTURE, PictureLook, read_picture_look, write_picture_look
from components.request_link import last_values
from engine.registry import Explainer
from engine.removal_operators import PATCH_OPERATORS
from engine.request import Picture

START = ("gradient_x_input", "grad_cam", "attention_rollout", "occlusion", "integrated_gradients", "random")
OFFERED = Offered(START, ("browse", "truth", "questions"), PATCH_OPERATORS, "patches")
OF_A_PICTURE = ("pin",)
"""What a link says of one picture and of no other."""


@dataclass(frozen=True, kw_only=True)
class PictureState(PageState):
    """`pins` are patches, row by row."""

    focus: PictureFocus
    look: PictureLook = PLAIN_PICTURE
    removal: str = PATCH_OPERATORS[0]

    @property
    def model(self) -> str:
        return self.focus.model

    @property
    def picture(self) -> Picture | None:
        return self.focus.picture


def read(
    query: Query, models: list[str], methods: Mapping[str, Explainer], opened: OpenPictures
) -> tuple[PictureState, list[str]]:
    """The state that a link asks for, and a sentence for everything in it that is not known."""
    said: list[str] = []
    last = last_values(query)
    focus = read_picture_focus(last, models, opened, said)
    if is_other_picture(last, focus, opened):
        last = {name: given for name, given in last.items() if name not in OF_A_PICTURE}
    return PictureState(
        focus=focus, look=read_picture_look(last, said), **read_shared(query, last, methods, OFFERED, said)
    ), said


def write(state: PictureState) -> Query:
    """The link that reopens the state: only what differs from the usual is written."""
    return write_picture_focus(state.focus) | write_shared(state, OFFERED) | write_picture_look(state.look)
