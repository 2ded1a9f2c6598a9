"""What a link asks for and the model or the input does not have: said in words, and taken out of the link.

Its size is known only once the heads are read, its classes once it has predicted.
"""

from __future__ import annotations

from dataclasses import replace

from components.attention.look import BETWEEN, PLAIN_FLOW
from components.attention.state import AttentionState
from components.attention.told import locked_of, missing
from components.prediction_area import target_index
from engine.errors import ExegesisError, UsageError, not_allowed, unknown
from engine.heads.matrices import select_positions
from engine.heads.readings import HeadReading
from engine.result import Prediction

Fitted = tuple[AttentionState, list[str]]
"""The state with what is there, and a sentence for each thing that is not."""


def fitted_to_classes(state: AttentionState, prediction: Prediction) -> Fitted:
    """The predicted class where the model has no such class."""
    if target_index(prediction, state.target) is not None:
        return state, []
    said = f"{unknown('target', state.target, prediction.labels)} The predicted class is explained."
    return replace(state, target=None), [said]


def fitted(state: AttentionState, reading: HeadReading) -> Fitted:
    """The usual head, layers, position, texts and first layer where those that are asked for are not there."""
    (layers, heads), said = reading.slope.shape, missing(state.look, reading)
    head = locked_of(state.look, reading)
    look = replace(
        state.look,
        head=head,
        alone=state.look.alone and (head is not None or state.look.head is None),
        layers=tuple(at for at in state.look.layers if at < layers),
        heads=tuple(at for at in state.look.heads if at < heads),
        query=_query(state.look.query, len(reading.of.tokens), said),
        between=_between(state.look.between, reading, said),
    )
    return replace(state, look=look, flow=replace(state.flow, start_layer=_start(state, layers, said))), said


def _query(asked: int | None, length: int, said: list[str]) -> int | None:
    if asked is None or asked < length:
        return asked
    next_step = "The one that the model reads is shown."
    said.append(str(not_allowed("query", f"a position from 0 to {length - 1} of this input", asked, next_step)))
    return None


def _between(asked: str, reading: HeadReading, said: list[str]) -> str:
    try:
        select_positions(reading, asked)
    except UsageError:
        next_step = "Attention between all positions is shown."
        said.append(str(not_allowed("between", f"'{BETWEEN[0]}' where there is no second text", asked, next_step)))
    except ExegesisError as error:
        said.append(str(error))
    else:
        return asked
    return BETWEEN[0]


def _start(state: AttentionState, layers: int, said: list[str]) -> int:
    asked = state.flow.start_layer
    if asked < layers:
        return asked
    allowed = f"from 0 to {layers - 1} for this model"
    said.append(str(not_allowed("start_layer", allowed, asked, "All layers count.")))
    return PLAIN_FLOW.start_layer
