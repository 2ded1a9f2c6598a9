"""What the Attention page shows, as plain values: read from the link, written back to it, remembered by the session."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from components.attention.look import (
    PLAIN_FLOW,
    BoardLook,
    FlowLook,
    read_board,
    read_flow,
    read_switched,
    usual_look,
    write_board,
    write_flow,
    write_switched,
)
from components.inputs.datasets import OpenPictures, OpenTexts
from components.inputs.link import Query
from components.inputs.picture_choice import PictureFocus, is_other_picture, read_picture_focus, write_picture_focus
from components.inputs.text_choice import TextFocus, is_other_text, read_text_focus, write_text_focus
from components.request_link import last_values, read_methods, read_opened, read_seed, write_places, write_unusual
from engine.errors import UsageError
from engine.heads.scales import PLAIN, HeadScales
from engine.params import Plain
from engine.registry import Explainer
from engine.request import Input, Request

METHOD = "gradient_x_input"
SECTIONS = ("switch", "flow")
OF_AN_INPUT = ("query",)
"""What a link says of one input and of no other."""
OF_A_MODEL = ("head", "alone", "layers", "heads", "switched", "start_layer", "target")
"""What it says of one model and of no other."""


@dataclass(frozen=True, kw_only=True)
class AttentionState:
    """`method`: whose map is shown with and without the switched heads. `opened`: the sections that are open."""

    kind: str
    focus: TextFocus | PictureFocus
    target: str | None = None
    seed: int = 0
    look: BoardLook
    switched: HeadScales = PLAIN
    method: str = METHOD
    flow: FlowLook = PLAIN_FLOW
    opened: tuple[str, ...] = ()

    @property
    def model(self) -> str:
        return self.focus.model

    @property
    def input(self) -> Input | None:
        """The text or picture; None where there is none to read."""
        return self.focus.example if isinstance(self.focus, TextFocus) else self.focus.picture

    def request(
        self, method: str, params: Mapping[str, Plain] | None = None, heads: HeadScales | None = None
    ) -> Request:
        """What is asked of the engine. `heads`: as they are switched on the page, unless others are given."""
        if self.input is None:
            raise UsageError("picture: there is none to read. Pick one above.")
        scales = self.switched if heads is None else heads
        return Request(self.model, method, self.input, dict(params or {}), self.target, self.seed, heads=scales)


def read_text(
    query: Query, models: list[str], methods: Mapping[str, Explainer], opened: OpenTexts
) -> tuple[AttentionState, list[str]]:
    """The state that a link to a text asks for, and a sentence for everything in it that is not known."""
    said: list[str] = []
    last = last_values(query)
    focus = read_text_focus(last, models, opened, said)
    return _read("text", focus, _known(last, is_other_text(last, focus, opened)), methods, said), said


def read_picture(
    query: Query, models: list[str], methods: Mapping[str, Explainer], opened: OpenPictures
) -> tuple[AttentionState, list[str]]:
    """The same of a link to a picture."""
    said: list[str] = []
    last = last_values(query)
    focus = read_picture_focus(last, models, opened, said)
    return _read("image", focus, _known(last, is_other_picture(last, focus, opened)), methods, said), said


def write(state: AttentionState) -> Query:
    """The link that reopens the state: only what differs from the usual is written, and always the kind."""
    focus = write_text_focus(state.focus) if isinstance(state.focus, TextFocus) else write_picture_focus(state.focus)
    others = write_unusual(
        (
            ("target", state.target, None),
            ("seed", state.seed, 0),
            ("switched", write_switched(state.switched), ""),
            ("method", state.method, METHOD),
            ("open", write_places(state.opened), ""),
        )
    )
    return {"input": [state.kind]} | focus | write_board(state.kind, state.look) | others | write_flow(state.flow)


def moved(before: AttentionState, now: AttentionState) -> AttentionState:
    """The state without what belongs to another model or input than it now has."""
    look, usual = now.look, usual_look(now.kind)
    if now.model != before.model:
        flow = dataclasses.replace(now.flow, start_layer=0)
        look = dataclasses.replace(look, head=None, alone=False, layers=(), heads=(), query=usual.query)
        return dataclasses.replace(now, target=None, switched=PLAIN, flow=flow, look=look)
    if now.input != before.input:
        look = dataclasses.replace(look, query=usual.query)
    return dataclasses.replace(now, look=look)


def _read(
    kind: str,
    focus: TextFocus | PictureFocus,
    last: Mapping[str, str],
    methods: Mapping[str, Explainer],
    said: list[str],
) -> AttentionState:
    given = [last["method"]] if last.get("method") else []
    return AttentionState(
        kind=kind,
        focus=focus,
        target=last.get("target"),
        seed=read_seed(last, said),
        look=read_board(kind, last, said),
        switched=read_switched(last, said),
        method=next(iter(read_methods(given, methods, [METHOD], said)), METHOD),
        flow=read_flow(last, said),
        opened=read_opened(last, SECTIONS, said),
    )


def _known(last: Mapping[str, str], another: bool) -> Mapping[str, str]:
    return {name: given for name, given in last.items() if name not in OF_AN_INPUT} if another else last
