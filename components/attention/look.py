"""How the heads of a model are looked at: by which score, which of them, drawn how. Plain values, read from a link."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from components.inputs.link import Query
from components.link_choice import choice, whole
from components.request_link import write_unusual
from engine.errors import ExegesisError
from engine.heads.flow import FLOW_KINDS as FLOWS
from engine.heads.flow import RESIDUAL
from engine.heads.scales import HeadScales
from engine.heads.scores import AGREEMENT, SCORES

LOOK, FLOW = "look.", "flow."
"""How the names of their controls start."""
Head = tuple[int, int]
"""Layer and head, from 0."""

SCORE_NAMES = ("importance", *(name for name in SCORES if name != "importance"), AGREEMENT)
VIEWS = {"text": ("matrix", "received", "query"), "image": ("query", "received", "matrix")}
DETAILS = {"text": ("matrix", "lines"), "image": ("overlay", "matrix")}
ORDERS, SCALES, BETWEEN, SWITCH = ("place", "score"), ("own", "shared"), ("all", "a_to_b", "b_to_a"), ("on", "off")
AGAINST = ("integrated_gradients", "kernel_shap")
INPUTS, UNITS = {"text": "text", "image": "picture"}, {"text": "token", "image": "patch"}
"""What an input and its features are called."""
MOST = 9_999
"""No layer, head or position of a model here has a larger number."""
NAME = re.compile(r"(\d{1,4})\.(\d{1,4})")
SWITCHED = re.compile(r"(\d{1,4})\.(\d{1,4})x(\d(?:\.\d{1,3})?)")


@dataclass(frozen=True)
class BoardLook:
    """`query`: a position, or None for the one that the model reads. `layers` and `heads`: shown ones; none: all.

    `head`: the one that is locked, None for the strongest by the score; `alone`: isolated. `special`: special tokens
    stand in the matrices. `against`: the attribution that maps are compared with.
    """

    score: str = SCORE_NAMES[0]
    view: str = "matrix"
    query: int | None = None
    order: str = ORDERS[0]
    scale: str = SCALES[0]
    between: str = BETWEEN[0]
    special: bool = True
    detail: str = "matrix"
    layers: tuple[int, ...] = ()
    heads: tuple[int, ...] = ()
    head: Head | None = None
    alone: bool = False
    against: str = AGAINST[0]


@dataclass(frozen=True)
class FlowLook:
    """`threshold`: the least share of the prediction that an edge carries, None for one that reads well."""

    kind: str = FLOWS[0]
    residual: float = RESIDUAL
    start_layer: int = 0
    threshold: float | None = None


PLAIN_FLOW = FlowLook()


def usual_look(kind: str) -> BoardLook:
    """How a text, or an image, is looked at where nothing else is said."""
    return BoardLook(view=VIEWS[kind][0], detail=DETAILS[kind][0])


def head_name(head: Head) -> str:
    """3.7: layer 3, head 7."""
    return f"{head[0]}.{head[1]}"


def read_board(kind: str, last: Mapping[str, str], said: list[str]) -> BoardLook:
    """What a link asks for; a sentence is added to `said` for each value that is not known."""
    return BoardLook(
        score=choice("score", last, SCORE_NAMES, said),
        view=choice("view", last, VIEWS[kind], said),
        query=_place("query", last, said),
        order=choice("order", last, ORDERS, said),
        scale=choice("scale", last, SCALES, said),
        between=choice("between", last, BETWEEN, said),
        special=choice("special", last, SWITCH, said) == "on",
        detail=choice("detail", last, DETAILS[kind], said),
        layers=_places("layers", last, said),
        heads=_places("heads", last, said),
        head=_head(last, said),
        alone=choice("alone", last, ("off", "on"), said) == "on",
        against=choice("against", last, AGAINST, said),
    )


def write_board(kind: str, look: BoardLook) -> Query:
    """Those values in a link: only what differs from the usual is written."""
    usual = usual_look(kind)
    named = ("score", "view", "query", "order", "scale", "between", "detail", "against")
    return write_unusual(
        [
            *((name, getattr(look, name), getattr(usual, name)) for name in named),
            ("special", "on" if look.special else "off", "on"),
            ("layers", _joined(look.layers), ""),
            ("heads", _joined(look.heads), ""),
            ("head", head_name(look.head) if look.head else "", ""),
            ("alone", "on" if look.alone else "off", "off"),
        ]
    )


def read_flow(last: Mapping[str, str], said: list[str]) -> FlowLook:
    """How the flow is drawn, as a link asks for it."""
    return FlowLook(
        kind=choice("flow", last, FLOWS, said),
        residual=RESIDUAL if (given := _share("residual", last, said)) is None else given,
        start_layer=_place("start_layer", last, said) or 0,
        threshold=_share("threshold", last, said),
    )


def write_flow(look: FlowLook) -> Query:
    """The same in a link."""
    names = (("flow", "kind"), ("residual", "residual"), ("start_layer", "start_layer"), ("threshold", "threshold"))
    return write_unusual((name, getattr(look, field), getattr(PLAIN_FLOW, field)) for name, field in names)


def read_switched(last: Mapping[str, str], said: list[str]) -> HeadScales:
    """Heads switched off or scaled in a link: `3.7x0,2.1x0.5`."""
    given = [part for part in last.get("switched", "").split(",") if part]
    found = [SWITCHED.fullmatch(part) for part in given]
    try:
        if all(found):
            return HeadScales(tuple((int(m[1]), int(m[2]), float(m[3])) for m in found if m))
    except ExegesisError as error:
        said.append(str(error))
        return HeadScales()
    said.append(
        f"switched: must be heads with their scales such as 3.7x0,2.1x0.5, got {last['switched'][:40]!r}. "
        "All heads are as they were."
    )
    return HeadScales()


def write_switched(scales: HeadScales) -> str:
    """The heads that are switched off or scaled, as a link says it."""
    return ",".join(f"{layer}.{head}x{scale:g}" for layer, head, scale in scales.scales)


def _head(last: Mapping[str, str], said: list[str]) -> Head | None:
    given = last.get("head")
    if not given:
        return None
    match = NAME.fullmatch(given)
    if match:
        return int(match[1]), int(match[2])
    said.append(f"head: must be a layer and a head such as 3.7, got {given[:40]!r}. The strongest is shown.")
    return None


def _place(name: str, last: Mapping[str, str], said: list[str]) -> int | None:
    given = last.get(name)
    if given is None:
        return None
    found = whole(given, MOST)
    if found is None:
        said.append(f"{name}: must be a whole number from 0 to {MOST}, got {given[:40]!r}. The usual one is used.")
    return found


def _places(name: str, last: Mapping[str, str], said: list[str]) -> tuple[int, ...]:
    parts = [whole(part, MOST) for part in last[name].split(",")] if last.get(name) else []
    found = {part for part in parts if part is not None}
    if None not in parts and len(parts) <= MOST:
        return tuple(sorted(found))
    said.append(f"{name}: must be numbers such as 0,3, got {last[name][:40]!r}. All are shown.")
    return ()


def _share(name: str, last: Mapping[str, str], said: list[str]) -> float | None:
    given = last.get(name)
    if given is None:
        return None
    try:
        value = round(float(given), 4)
    except (ValueError, OverflowError):
        value = -1.0
    if 0 <= value <= 1:
        return value
    said.append(f"{name}: must be a number from 0 to 1, got {given[:40]!r}. The usual one is used.")
    return None


def _joined(places: Sequence[int]) -> str:
    return ",".join(map(str, places))
