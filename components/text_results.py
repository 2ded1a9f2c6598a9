"""The Text page's answer: the prediction, then a row a method, the quick ones first, each as soon as it is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from components.engine_room import explain, key_of
from components.filling import Place, fill
from components.look import scale_group, shared_ends
from components.map_stack import Flow, Stack, Table
from components.method_row import MethodRow, method_row, token_map
from components.prediction import prediction_html
from components.stopping import ProgressLine, go_on_button
from components.text_controls import class_control
from components.text_state import TextState
from components.trouble import say_error, say_note, sentence
from engine.errors import Cancelled, unknown
from engine.registry import Explainer
from engine.request import Request
from engine.result import Explanation, Prediction
from engine.store import result_store

PROBE = "random"
"""Costs no model evaluation, and its explanation carries the prediction."""


def request_for(state: TextState, method: str) -> Request:
    """What is asked of the engine for one row."""
    params = state.params.get(method, {})
    return Request(state.model, method, state.example, dict(params), state.target, state.seed)


def prediction_area(state: TextState) -> Explanation | None:
    """The prediction as bars beside the choice of the class; None after saying why there is none."""
    missing = _missing(state)
    if missing:
        st.info(missing)
        return None
    probe = _probe(Request(state.model, PROBE, state.example, {}, None, state.seed))
    return probe if probe is not None and _draw_prediction(state, probe) else None


def method_rows(
    state: TextState, methods: Mapping[str, Explainer], probe: Explanation, above: Sequence[MethodRow] = ()
) -> dict[str, Explanation]:
    """A row for each chosen method in the order chosen, the costly last, `above` them all; what succeeded."""
    if not state.methods:
        st.info("Pick at least one method above.")
        return {}
    progress, stack = st.empty(), _stack(state, methods, probe, above)
    places = [
        Place(methods[id], request_for(state, id), stack.slot(methods[id].title), quiet=stack.quiet)
        for id in state.methods
    ]
    fill(places, lambda method, made: stack.draw(_row(method, made, state, probe, {})), progress, stack.show)
    if state.look.shared:
        _share_scales(places, state, probe, stack)
    stack.show()
    if trouble := result_store().status:
        say_note(trouble)
    return {place.method.id: place.made for place in places if place.made is not None}


def _missing(state: TextState) -> str:
    if not state.model:
        return "Pick a model above, or type the folder of a checkpoint or a hub id."
    if not state.example.text.strip():
        return "Type a text above, or pick an example, to see what its prediction rests on."
    if state.example.text_pair is not None and not state.example.text_pair.strip():
        return "Type the second text, or switch it off."
    return ""


def _probe(request: Request) -> Explanation | None:
    """What carries the prediction; None after saying why there is none."""
    progress = st.empty()
    try:
        line = ProgressLine(progress, [key_of(request)], "Reading the text")
        probe = explain(request, line.tick)
        line.clear()
        return probe
    except Cancelled:
        go_on_button(progress, key_of(request), "Stopped before the text was read.")
    except Exception as error:
        say_error(sentence(error), progress)
    return None


def _draw_prediction(state: TextState, probe: Explanation) -> bool:
    """Whether the class to explain is one of the model's."""
    prediction, target = probe.prediction, _target(probe.prediction, state.target)
    left, right = st.columns([2, 1], gap="medium", vertical_alignment="center")
    with right:
        class_control(prediction, state.target)
    left.html(prediction_html(prediction, prediction.index if target is None else target))
    for note in probe.notes:
        say_note(note)
    if target is None:
        say_error(str(unknown("target", state.target, prediction.labels)))
    return target is not None


def _target(prediction: Prediction, asked: str | None) -> int | None:
    """The class to explain, by its label or its number; None when the model has no such class."""
    if asked is None or prediction.regression:
        return prediction.index
    if asked in prediction.labels:
        return prediction.labels.index(asked)
    numbers = [str(index) for index in range(len(prediction.labels))]
    return numbers.index(asked) if asked in numbers else None


def _stack(state: TextState, methods: Mapping[str, Explainer], probe: Explanation, above: Sequence[MethodRow]) -> Stack:
    place = st.container(gap=None, key="text_rows")
    if not state.look.aligned:
        return Flow(place, above)
    return Table(place, above, token_map(methods[PROBE], probe, state.example, state.unit))


def _share_scales(places: Sequence[Place], state: TextState, probe: Explanation, stack: Stack) -> None:
    """Draws the rows again, once it is known where the scales end that they share."""
    made = [(place, place.made) for place in places if place.made is not None]
    maps = [(place.method, token_map(place.method, found, state.example, state.unit)) for place, found in made]
    ends = shared_ends((scale_group(method, view.signed), view.largest) for method, view in maps)
    for place, found in made:
        place.slot.html(stack.draw(_row(place.method, found, state, probe, ends)))


def _row(
    method: Explainer, made: Explanation, state: TextState, probe: Explanation, ends: dict[str, float]
) -> MethodRow:
    return method_row(method, made, state.example, state.unit, probe.notes, state.look, ends)
