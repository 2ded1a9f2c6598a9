"""The Attention page between runs: a link fills the widgets, they write the link, a page change keeps both.

A text and a picture have a session of their own each, so that switching between them loses nothing. Values of a link
that the model or the input does not have are reported, and taken out of the link: a model's size is known only once
the heads are read, its classes once it has predicted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import streamlit as st

from components.attention.state import (
    DEFAULT_FLOW,
    INPUT_FIELDS,
    MODEL_FIELDS,
    SECTIONS,
    AttentionState,
    discard_stale,
    read_picture,
    read_switched,
    read_text,
    write,
    write_switched,
)
from components.inputs import picture_choice, text_choice
from components.inputs.datasets import OpenPictures, OpenTexts, open_pictures, open_texts
from components.inputs.picture_choice import PictureFocus
from components.inputs.text_choice import TextFocus
from components.links import Query
from components.prediction import target_index
from components.state import KindSwitch, PageSession, control_values
from components.widgets.attention_board.options import BoardOptions, Head, head_name, locked_head
from engine.errors import ExegesisError, UsageError, not_allowed, unknown
from engine.heads.matrices import BETWEEN, select_positions
from engine.heads.readings import HeadReading
from engine.heads.scales import HeadScales
from engine.registry import Explainer
from engine.result import Prediction

BOARD_KEYS, FLOW_KEYS = "look.", "flow."
"""Prefixes of the names of controls."""
LOOKINGS = {"text": text_choice.LOOKING, "image": picture_choice.LOOKING}
SESSIONS = {
    kind: PageSession(f"attention_{kind}", looking, (*INPUT_FIELDS, *MODEL_FIELDS))
    for kind, looking in LOOKINGS.items()
}
INPUT_KIND = KindSwitch("attention", LOOKINGS)
KIND, chosen_kind, kind_switch = INPUT_KIND.switched, INPUT_KIND.chosen, INPUT_KIND.switch
Opened = OpenTexts | OpenPictures


def key(kind: str, name: str) -> str:
    """The widget key of a control."""
    return SESSIONS[kind].key(name)


def load(kind: str, models: list[str], methods: Mapping[str, Explainer]) -> tuple[AttentionState, Opened, list[str]]:
    """Fill the widgets that have no value yet. Returns the state of the last link and its problems."""
    session = SESSIONS[kind]
    link, fresh = session.follow()
    opened, (state, problems) = _open(kind, link, models, methods)
    _fill_focus(state, opened)
    now = discard_stale(state, replace(state, focus=_read_focus(opened)))
    if now != replace(state, focus=now.focus):
        for name, value in _control_values(now).items():
            session.put(name, value)
    else:
        session.fill(_control_values(state))
    sentences = session.tell(problems, fresh)
    if fresh and problems:
        session.correct(write(state), [])  # unknown values of a link are not passed on
    return state, opened, sentences


def from_widgets(loaded: AttentionState, opened: Opened) -> AttentionState:
    """The state of the controls; a control that is not drawn keeps its loaded value."""
    session = SESSIONS[loaded.kind]
    return replace(
        loaded,
        focus=_read_focus(opened),
        target=session.value("target") or None,
        method=session.value("method") or loaded.method,
        board=_read_options(session, BOARD_KEYS, loaded.board, nullable=("head", "query")),
        flow=_read_options(session, FLOW_KEYS, loaded.flow, nullable=("threshold",)),
        switched=read_switched({"switched": session.value("switched") or ""}, []),
        opened=tuple(name for name in SECTIONS if session.value(f"open.{name}")),
    )


def save(state: AttentionState, loaded: AttentionState) -> None:
    """Remember the state and put it into the address, unless the address has it already."""
    changed = state != loaded or INPUT_KIND.unsaid(state.kind)
    SESSIONS[state.kind].save(write(state) if changed else {}, changed)


def correct(state: AttentionState, problems: Sequence[str]) -> NoReturn:
    """Run the page again with this state instead of that of its controls, and report why."""
    session = SESSIONS[state.kind]
    for name, value in _control_values(state).items():
        if session.value(name) != value:
            # Deleted, and not set: some are drawn already. The next run fills them from the link.
            del st.session_state[session.key(name)]
    session.correct(write(state), problems)
    st.rerun()


def lock(kind: str, head: Head | None, alone: bool = False) -> None:
    """Lock a head until another is chosen; None is the strongest. In a callback, or before the board is drawn."""
    SESSIONS[kind].put(f"{BOARD_KEYS}head", head)
    SESSIONS[kind].put(f"{BOARD_KEYS}alone", alone)


def choose_query(kind: str, query: int | None) -> None:
    """Draw the attention of this position; None is the one that the model reads."""
    SESSIONS[kind].put(f"{BOARD_KEYS}query", query)
    SESSIONS[kind].put(f"{BOARD_KEYS}view", "query")


def switch(kind: str, scales: HeadScales) -> None:
    """Scale these heads and no others from now on."""
    SESSIONS[kind].put("switched", write_switched(scales))


def fit_to_classes(state: AttentionState, prediction: Prediction) -> None:
    """Correct a target that is no class of the model to the predicted class."""
    if target_index(prediction, state.target) is None:
        problem = f"{unknown('target', state.target, prediction.labels)} The predicted class is explained."
        correct(replace(state, target=None), [problem])


def fit_to_reading(state: AttentionState, reading: HeadReading) -> None:
    """Correct a head, layers, position, texts or first layer that are not there to the defaults."""
    fitted, problems = fit_state(state, reading)
    if problems:
        correct(fitted, problems)


def fit_state(state: AttentionState, reading: HeadReading) -> tuple[AttentionState, list[str]]:
    """The state with values that are there, and a sentence for each one that is not."""
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
    """A sentence for each head or layer that the model does not have, with the one that is drawn instead."""
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


def _open(kind: str, link: Query, models: list[str], methods: Mapping[str, Explainer]) -> tuple[Opened, Any]:
    if kind == "text":
        data = open_texts(text_choice.requested_dataset(link))
        return data, read_text(link, models, methods, data)
    pictures = open_pictures(*picture_choice.requested_dataset(link))
    return pictures, read_picture(link, models, methods, pictures)


def _fill_focus(state: AttentionState, opened: Opened) -> None:
    if isinstance(state.focus, TextFocus) and isinstance(opened, OpenTexts):
        text_choice.fill_controls(state.focus, opened)
    elif isinstance(state.focus, PictureFocus) and isinstance(opened, OpenPictures):
        picture_choice.fill_controls(state.focus, opened)


def _read_focus(opened: Opened) -> TextFocus | PictureFocus:
    if isinstance(opened, OpenTexts):
        return text_choice.read_controls(opened)
    return picture_choice.read_controls(opened)


def _control_values(state: AttentionState) -> dict[str, object]:
    return {
        "target": state.target or "",
        "method": state.method,
        "switched": write_switched(state.switched),  # as text: a reload of the code replaces classes
        **control_values(BOARD_KEYS, state.board),
        **control_values(FLOW_KEYS, state.flow),
        **{f"open.{name}": name in state.opened for name in SECTIONS},
    }


def _read_options(session: PageSession, prefix: str, loaded: Any, nullable: tuple[str, ...]) -> Any:
    """The dataclass of the controls' values. `nullable`: fields for which None is a value."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(loaded):
        value = session.value(f"{prefix}{field.name}")
        values[field.name] = getattr(loaded, field.name) if value is None and field.name not in nullable else value
    return type(loaded)(**{name: tuple(one) if isinstance(one, list) else one for name, one in values.items()})
