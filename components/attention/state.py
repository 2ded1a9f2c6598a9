"""State of the Attention page as plain values: read from the link, written back to it, remembered by the session."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import streamlit as st

from components.inputs.choices import CHOICES, SELECTIONS, Focus, Opened
from components.links import (
    Query,
    last_values,
    opened_option,
    read_methods,
    read_record,
    seed_option,
    target_option,
    write_record,
)
from components.prediction import target_index
from components.state import KindSessions, control_values, sections_of
from components.widgets.attention_board import (
    MAX_NUMBER,
    USUAL,
    BoardOptions,
    Head,
    default_options,
    head_name,
    locked_head,
)
from engine.errors import ExegesisError, UsageError, not_allowed, unknown
from engine.heads.flow import FLOW_KINDS, RESIDUAL
from engine.heads.matrices import BETWEEN, select_positions
from engine.heads.readings import HeadReading
from engine.params import Plain, option
from engine.registry import Explainer
from engine.request import PLAIN, HeadScales, Input, Prompt, Request
from engine.result import Prediction

METHOD = "gradient_x_input"
INPUT_FIELDS = ("query",)
"""Fields of a link that apply to one input only."""
MODEL_FIELDS = ("head", "alone", "layers", "heads", "switched", "start_layer", "target")
"""Fields of a link that apply to one model only."""
SCALED_HEAD_PATTERN = re.compile(r"(\d{1,4})\.(\d{1,4})x(\d(?:\.\d{1,3})?)")
BOARD_KEYS, FLOW_KEYS = "look.", "flow."
"""Prefixes of the names of controls."""
SESSIONS = KindSessions("attention", SELECTIONS, (*INPUT_FIELDS, *MODEL_FIELDS))
KIND, chosen_kind, kind_switch, key = SESSIONS.switched, SESSIONS.chosen, SESSIONS.switch, SESSIONS.key


def read_switched(given: Sequence[str], problems: list[str]) -> HeadScales:
    """Read the heads switched off or scaled in a link: `3.7x0,2.1x0.5`."""
    parts = [part for part in given[-1].split(",") if part] if given else []
    matches = [SCALED_HEAD_PATTERN.fullmatch(part) for part in parts]
    try:
        if all(matches):
            return HeadScales(tuple((int(m[1]), int(m[2]), float(m[3])) for m in matches if m))
    except ExegesisError as error:
        problems.append(str(error))
        return HeadScales()
    allowed, next_step = "heads with their scales such as 3.7x0,2.1x0.5", "No head is changed."
    problems.append(str(not_allowed("switched", allowed, given[-1][:40], next_step)))
    return HeadScales()


def write_switched(scales: HeadScales) -> str:
    """Write the heads switched off or scaled as a value of a link."""
    return ",".join(f"{layer}.{head}x{scale:g}" for layer, head, scale in scales.scales)


@dataclass(frozen=True)
class FlowOptions:
    """Options of the flow.

    `threshold`: smallest share of the prediction that a step carries to be drawn, None for a readable default.
    """

    kind: str = option(FLOW_KINDS[0], choices=FLOW_KINDS, link="flow")
    residual: float = option(RESIDUAL, low=0, high=1, digits=4, fallback=USUAL)
    start_layer: int = option(0, high=MAX_NUMBER, fallback=USUAL)
    threshold: float | None = option(None, low=0, high=1, digits=4, fallback=USUAL)


DEFAULT_FLOW = FlowOptions()


@dataclass(frozen=True, kw_only=True)
class AttentionState:
    """State of the Attention page.

    `method`: the method whose map is drawn with and without the switched heads. `opened`: the sections that are open.
    """

    kind: str
    focus: Focus
    target: str | None = target_option()
    seed: int = seed_option()
    board: BoardOptions
    switched: HeadScales = option(PLAIN, read=read_switched, write=write_switched)
    method: str = METHOD
    flow: FlowOptions = DEFAULT_FLOW
    opened: tuple[str, ...] = opened_option("switch", "flow")

    @property
    def model(self) -> str:
        return self.focus.model

    @property
    def input(self) -> Input | None:
        """The text or picture; None if there is none."""
        return self.focus.input

    def request(
        self, method: str, params: Mapping[str, Plain] | None = None, heads: HeadScales | None = None
    ) -> Request:
        """Return a request to the engine. `heads`: None for the heads switched on the page. Errors: no picture."""
        if self.input is None:
            raise UsageError("picture: must be chosen. Pick one above.")
        scales = self.switched if heads is None else heads
        target = None if isinstance(self.input, Prompt) else self.target  # a prompt has its own target token
        return Request(self.model, method, self.input, dict(params or {}), target, self.seed, heads=scales)


def read_state(
    kind: str, query: Query, models: list[str], methods: Mapping[str, Explainer], opened: Opened
) -> tuple[AttentionState, list[str]]:
    """Return the state of a link to an input of the given kind, and a sentence for each unknown value."""
    problems: list[str] = []
    last, choice = last_values(query), CHOICES[kind]
    focus = choice.from_link(last, models, opened, problems)
    if choice.is_other(last, focus, opened):  # positions of another input mean nothing
        query = {name: values for name, values in query.items() if name not in INPUT_FIELDS}
    state = AttentionState(kind=kind, focus=focus, board=default_options(kind))
    state = read_record(state, query, problems, kind, ["target", "seed", "board", "switched"])
    names = [name for name in query.get("method", [])[-1:] if name]
    method = next(iter(read_methods(names, methods, [METHOD], problems)), METHOD)
    return read_record(replace(state, method=method), query, problems, kind, ["flow", "opened"]), problems


def write(state: AttentionState) -> Query:
    """Return the link that reopens the state: the kind, and values that differ from the defaults."""
    query = {"input": [state.kind]} | CHOICES[state.kind].to_link(state.focus)
    query |= write_record(state.board, default_options(state.kind))
    return query | write_record(state, names=["target", "seed", "switched", "method", "opened", "flow"])


def discard_stale(before: AttentionState, now: AttentionState) -> AttentionState:
    """Return the state without values that belong to the earlier model or input."""
    board, query = now.board, default_options(now.kind).query
    if now.model != before.model:
        flow = replace(now.flow, start_layer=0)
        board = replace(board, head=None, alone=False, layers=(), heads=(), query=query)
        return replace(now, target=None, switched=PLAIN, flow=flow, board=board)
    if now.input != before.input:
        board = replace(board, query=query)
    return replace(now, board=board)


def load(kind: str, models: list[str], methods: Mapping[str, Explainer]) -> tuple[AttentionState, Opened, list[str]]:
    """Fill widgets that have no value. Returns the state of the last link, the open data set and problems."""
    session, choice = SESSIONS[kind], CHOICES[kind]
    link, fresh = session.follow()
    opened = choice.open(link)
    state, problems = read_state(kind, link, models, methods, opened)
    choice.fill(state.focus, opened)
    now = discard_stale(state, replace(state, focus=choice.controls(opened)))
    if now != replace(state, focus=now.focus):
        for name, value in _control_values(now).items():
            session.put(name, value)
    else:
        session.fill(_control_values(state))
    return state, opened, session.tell(problems, fresh, lambda: write(state), state)


def from_widgets(loaded: AttentionState, opened: Opened) -> AttentionState:
    """The state of the controls; a control that is not drawn keeps its loaded value."""
    session = SESSIONS[loaded.kind]
    return replace(
        loaded,
        focus=CHOICES[loaded.kind].controls(opened),
        target=session.value("target") or None,
        method=session.value("method") or loaded.method,
        board=session.read_record(BOARD_KEYS, loaded.board),
        flow=session.read_record(FLOW_KEYS, loaded.flow),
        switched=read_switched([session.value("switched") or ""], []),
        opened=session.opened_sections(loaded),
    )


def save(state: AttentionState, loaded: AttentionState) -> None:
    """Remember the state and write it to the address if it changed."""
    SESSIONS.remember(state, loaded, write)


def correct(state: AttentionState, problems: Sequence[str]) -> NoReturn:
    """Rerun the page with this state instead of that of its controls, and report why."""
    session = SESSIONS[state.kind]
    for name, value in _control_values(state).items():
        if session.value(name) != value:
            # Deleted, not set, because some are already drawn. The next run fills them from the link.
            del st.session_state[session.key(name)]
    session.correct(write(state), problems)
    st.rerun()


def lock(kind: str, head: Head | None, alone: bool = False) -> None:
    """Lock a head; None unlocks it, so that the strongest is shown.

    Call it in a callback or before the board is drawn.
    """
    SESSIONS[kind].put(f"{BOARD_KEYS}head", head)
    SESSIONS[kind].put(f"{BOARD_KEYS}alone", alone)


def choose_query(kind: str, query: int | None) -> None:
    """Show the attention from this position; None is the position that the model reads."""
    SESSIONS[kind].put(f"{BOARD_KEYS}query", query)
    SESSIONS[kind].put(f"{BOARD_KEYS}view", "query")


def switch(kind: str, scales: HeadScales) -> None:
    """Set the scales of the heads; heads without a scale are restored."""
    SESSIONS[kind].put("switched", write_switched(scales))


def fit_to_classes(state: AttentionState, prediction: Prediction) -> None:
    """Replace a target that is not a class of the model by the predicted class."""
    if target_index(prediction, state.target) is None:
        problem = f"{unknown('target', state.target, prediction.labels)} The predicted class is explained."
        correct(replace(state, target=None), [problem])


def fit_to_reading(state: AttentionState, reading: HeadReading) -> None:
    """Replace a head, layers, position, texts or first layer that do not exist by the defaults."""
    fitted, problems = fit_state(state, reading)
    if problems:
        correct(fitted, problems)


def fit_state(state: AttentionState, reading: HeadReading) -> tuple[AttentionState, list[str]]:
    """Return the state with only values that exist, and a sentence for each one that does not."""
    (layers, heads), problems = reading.slope.shape, describe_missing_heads(state.board, reading)
    head = locked_head(state.board, reading)
    board = replace(
        state.board,
        head=head,
        alone=state.board.alone and (head is not None or state.board.head is None),
        layers=tuple(layer for layer in state.board.layers if layer < layers),
        heads=tuple(number for number in state.board.heads if number < heads),
        query=_fit_query(state.board.query, len(reading.explanation.tokens), problems),
        between=_fit_between(state.board.between, reading, problems),
    )
    start_layer = state.flow.start_layer
    if start_layer >= layers:
        allowed = f"from 0 to {layers - 1} for this model"
        problems.append(str(not_allowed("start_layer", allowed, start_layer, "All layers count.")))
        start_layer = DEFAULT_FLOW.start_layer
    return replace(state, board=board, flow=replace(state.flow, start_layer=start_layer)), problems


def describe_missing_heads(options: BoardOptions, reading: HeadReading) -> list[str]:
    """Return a sentence for each head or layer that the model does not have, which says what is shown instead."""
    layers, heads = reading.slope.shape
    size = f"it has layers 0 to {layers - 1} with heads 0 to {heads - 1} each."
    problems = []
    if options.head and locked_head(options, reading) is None:
        problems.append(f"This model has no head {head_name(options.head)}: {size} The strongest is shown.")
    for name, chosen, count in (("layer", options.layers, layers), ("head", options.heads, heads)):
        if missing := [number for number in chosen if number >= count]:
            rest = "The others are shown." if len(missing) < len(chosen) else "All are shown."
            problems.append(f"This model has no {name} {', '.join(map(str, missing))}: {size} {rest}")
    return problems


def _fit_query(query: int | None, length: int, problems: list[str]) -> int | None:
    if query is None or query < length:
        return query
    next_step = "The one that the model reads is shown."
    problems.append(str(not_allowed("query", f"a position from 0 to {length - 1} of this input", query, next_step)))
    return None


def _fit_between(between: str, reading: HeadReading, problems: list[str]) -> str:
    try:
        select_positions(reading, between)
    except UsageError:
        allowed, next_step = (
            f"'{BETWEEN[0]}' where there is no second text",
            "Attention between all positions is shown.",
        )
        problems.append(str(not_allowed("between", allowed, between, next_step)))
    except ExegesisError as error:
        problems.append(str(error))
    else:
        return between
    return BETWEEN[0]


def _control_values(state: AttentionState) -> dict[str, object]:
    return {
        "target": state.target or "",
        "method": state.method,
        "switched": write_switched(state.switched),  # as a string, because a code reload replaces classes
        **control_values(BOARD_KEYS, state.board),
        **control_values(FLOW_KEYS, state.flow),
        **{f"open.{name}": name in state.opened for name in sections_of(state)},
    }
