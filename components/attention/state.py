"""State of the Attention page as plain values: read from the link, written back to it, remembered by the session."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from components.inputs.datasets import OpenPictures, OpenTexts
from components.inputs.picture_choice import PictureFocus, is_other_picture, read_picture_focus, write_picture_focus
from components.inputs.text_choice import TextFocus, is_other_text, read_text_focus, write_text_focus
from components.links import (
    Query,
    join_values,
    last_values,
    read_choice,
    read_methods,
    read_opened,
    read_seed,
    whole_number,
    write_changed,
)
from components.widgets.attention_board.options import (
    AGAINST,
    DETAILS,
    ORDERS,
    SCORE_NAMES,
    VIEWS,
    BoardOptions,
    Head,
    default_options,
    head_name,
)
from engine.errors import ExegesisError, UsageError
from engine.heads.flow import FLOW_KINDS, RESIDUAL
from engine.heads.matrices import BETWEEN, SCALES
from engine.heads.scales import PLAIN, HeadScales
from engine.params import Plain
from engine.registry import Explainer
from engine.request import Input, Request

METHOD = "gradient_x_input"
SECTIONS = ("switch", "flow")
INPUT_FIELDS = ("query",)
"""Fields of a link that belong to one input and to no other."""
MODEL_FIELDS = ("head", "alone", "layers", "heads", "switched", "start_layer", "target")
"""Fields that belong to one model and to no other."""
ON_OFF = ("on", "off")
MAX_NUMBER = 9_999
"""No layer, head or position of a model here has a larger number."""
HEAD_PATTERN = re.compile(r"(\d{1,4})\.(\d{1,4})")
SCALED_HEAD_PATTERN = re.compile(r"(\d{1,4})\.(\d{1,4})x(\d(?:\.\d{1,3})?)")


@dataclass(frozen=True)
class FlowOptions:
    """`threshold`: the least share of the prediction that an edge carries, None for one that reads well."""

    kind: str = FLOW_KINDS[0]
    residual: float = RESIDUAL
    start_layer: int = 0
    threshold: float | None = None


DEFAULT_FLOW = FlowOptions()


@dataclass(frozen=True, kw_only=True)
class AttentionState:
    """`method`: its map is drawn with and without the switched heads. `opened`: the sections that are open."""

    kind: str
    focus: TextFocus | PictureFocus
    target: str | None = None
    seed: int = 0
    board: BoardOptions
    switched: HeadScales = PLAIN
    method: str = METHOD
    flow: FlowOptions = DEFAULT_FLOW
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
        """A request to the engine. `heads`: as they are switched on the page, unless others are given."""
        if self.input is None:
            raise UsageError("picture: there is none to read. Pick one above.")
        scales = self.switched if heads is None else heads
        return Request(self.model, method, self.input, dict(params or {}), self.target, self.seed, heads=scales)


def read_text(
    query: Query, models: list[str], methods: Mapping[str, Explainer], opened: OpenTexts
) -> tuple[AttentionState, list[str]]:
    """The state of a link to a text, and a sentence for every value in it that is unknown."""
    problems: list[str] = []
    last = last_values(query)
    focus = read_text_focus(last, models, opened, problems)
    return _read_state("text", focus, last, is_other_text(last, focus, opened), methods, problems), problems


def read_picture(
    query: Query, models: list[str], methods: Mapping[str, Explainer], opened: OpenPictures
) -> tuple[AttentionState, list[str]]:
    """The state of a link to a picture, and a sentence for every value in it that is unknown."""
    problems: list[str] = []
    last = last_values(query)
    focus = read_picture_focus(last, models, opened, problems)
    return _read_state("image", focus, last, is_other_picture(last, focus, opened), methods, problems), problems


def _read_state(
    kind: str,
    focus: TextFocus | PictureFocus,
    last: Mapping[str, str],
    another: bool,
    methods: Mapping[str, Explainer],
    problems: list[str],
) -> AttentionState:
    """`another`: the link was written for another input, so that its positions mean nothing."""
    if another:
        last = {name: value for name, value in last.items() if name not in INPUT_FIELDS}
    names = [last["method"]] if last.get("method") else []
    return AttentionState(
        kind=kind,
        focus=focus,
        target=last.get("target"),
        seed=read_seed(last, problems),
        board=read_board(kind, last, problems),
        switched=read_switched(last, problems),
        method=next(iter(read_methods(names, methods, [METHOD], problems)), METHOD),
        flow=read_flow(last, problems),
        opened=read_opened(last, SECTIONS, problems),
    )


def write(state: AttentionState) -> Query:
    """The link that reopens the state: only values that differ from the defaults, and always the kind."""
    focus = write_text_focus(state.focus) if isinstance(state.focus, TextFocus) else write_picture_focus(state.focus)
    others = write_changed(
        (
            ("target", state.target, None),
            ("seed", state.seed, 0),
            ("switched", write_switched(state.switched), ""),
            ("method", state.method, METHOD),
            ("open", join_values(state.opened), ""),
        )
    )
    return {"input": [state.kind]} | focus | write_board(state.kind, state.board) | others | write_flow(state.flow)


def discard_stale(before: AttentionState, now: AttentionState) -> AttentionState:
    """The state without values that belong to another model or input than it now has."""
    board, query = now.board, default_options(now.kind).query
    if now.model != before.model:
        flow = replace(now.flow, start_layer=0)
        board = replace(board, head=None, alone=False, layers=(), heads=(), query=query)
        return replace(now, target=None, switched=PLAIN, flow=flow, board=board)
    if now.input != before.input:
        board = replace(board, query=query)
    return replace(now, board=board)


def read_board(kind: str, last: Mapping[str, str], problems: list[str]) -> BoardOptions:
    """The board's options in a link; a sentence is added to `problems` for each value that is unknown."""
    return BoardOptions(
        score=read_choice("score", last, SCORE_NAMES, problems),
        view=read_choice("view", last, VIEWS[kind], problems),
        query=_read_number("query", last, problems),
        order=read_choice("order", last, ORDERS, problems),
        scale=read_choice("scale", last, SCALES, problems),
        between=read_choice("between", last, BETWEEN, problems),
        special=read_choice("special", last, ON_OFF, problems) == "on",
        detail=read_choice("detail", last, DETAILS[kind], problems),
        layers=_read_numbers("layers", last, problems),
        heads=_read_numbers("heads", last, problems),
        head=_read_head(last, problems),
        alone=read_choice("alone", last, ("off", "on"), problems) == "on",
        against=read_choice("against", last, AGAINST, problems),
    )


def write_board(kind: str, options: BoardOptions) -> Query:
    """The board's options in a link."""
    default = default_options(kind)
    names = ("score", "view", "query", "order", "scale", "between", "detail", "against")
    return write_changed(
        [
            *((name, getattr(options, name), getattr(default, name)) for name in names),
            ("special", "on" if options.special else "off", "on"),
            ("layers", _join(options.layers), ""),
            ("heads", _join(options.heads), ""),
            ("head", head_name(options.head) if options.head else "", ""),
            ("alone", "on" if options.alone else "off", "off"),
        ]
    )


def read_flow(last: Mapping[str, str], problems: list[str]) -> FlowOptions:
    """The flow's options in a link."""
    kind, residual = read_choice("flow", last, FLOW_KINDS, problems), _read_share("residual", last, problems)
    return FlowOptions(
        kind=kind,
        residual=RESIDUAL if residual is None else residual,
        start_layer=_read_number("start_layer", last, problems) or 0,
        threshold=_read_share("threshold", last, problems),
    )


def write_flow(options: FlowOptions) -> Query:
    """The flow's options in a link."""
    names = (("flow", "kind"), ("residual", "residual"), ("start_layer", "start_layer"), ("threshold", "threshold"))
    return write_changed((name, getattr(options, field), getattr(DEFAULT_FLOW, field)) for name, field in names)


def read_switched(last: Mapping[str, str], problems: list[str]) -> HeadScales:
    """Heads switched off or scaled in a link: `3.7x0,2.1x0.5`."""
    parts = [part for part in last.get("switched", "").split(",") if part]
    matches = [SCALED_HEAD_PATTERN.fullmatch(part) for part in parts]
    try:
        if all(matches):
            return HeadScales(tuple((int(m[1]), int(m[2]), float(m[3])) for m in matches if m))
    except ExegesisError as error:
        problems.append(str(error))
        return HeadScales()
    problems.append(
        f"switched: must be heads with their scales such as 3.7x0,2.1x0.5, got {last['switched'][:40]!r}. "
        "All heads are as they were."
    )
    return HeadScales()


def write_switched(scales: HeadScales) -> str:
    """Heads switched off or scaled as a value of a link."""
    return ",".join(f"{layer}.{head}x{scale:g}" for layer, head, scale in scales.scales)


def _read_head(last: Mapping[str, str], problems: list[str]) -> Head | None:
    value = last.get("head")
    if not value:
        return None
    match = HEAD_PATTERN.fullmatch(value)
    if match:
        return int(match[1]), int(match[2])
    problems.append(f"head: must be a layer and a head such as 3.7, got {value[:40]!r}. The strongest is shown.")
    return None


def _read_number(name: str, last: Mapping[str, str], problems: list[str]) -> int | None:
    value = last.get(name)
    if value is None:
        return None
    number = whole_number(value, MAX_NUMBER)
    if number is None:
        problems.append(
            f"{name}: must be a whole number from 0 to {MAX_NUMBER}, got {value[:40]!r}. The usual one is used."
        )
    return number


def _read_numbers(name: str, last: Mapping[str, str], problems: list[str]) -> tuple[int, ...]:
    numbers = [whole_number(part, MAX_NUMBER) for part in last[name].split(",")] if last.get(name) else []
    if None not in numbers and len(numbers) <= MAX_NUMBER:
        return tuple(sorted({number for number in numbers if number is not None}))
    problems.append(f"{name}: must be numbers such as 0,3, got {last[name][:40]!r}. All are shown.")
    return ()


def _read_share(name: str, last: Mapping[str, str], problems: list[str]) -> float | None:
    text = last.get(name)
    if text is None:
        return None
    try:
        value = round(float(text), 4)
    except (ValueError, OverflowError):
        value = -1.0
    if 0 <= value <= 1:
        return value
    problems.append(f"{name}: must be a number from 0 to 1, got {text[:40]!r}. The usual one is used.")
    return None


def _join(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))
