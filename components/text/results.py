"""The Text page's answer: the prediction, then a row a method, the quick ones first, each as soon as it is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import streamlit as st

from components.filling import Place, fill
from components.inputs.text_choice import write_text_focus
from components.method_row import MethodRow, method_row, token_map
from components.prediction_area import PROBE
from components.prediction_area import prediction_area as draw_prediction
from components.scales import Ends, share_scales
from components.text.map_stack import Flow, Stack, Table
from components.text.session import key
from components.text.state import TextState
from components.trouble import say_note
from components.widgets.heads_link import heads_link
from engine.registry import Explainer
from engine.request import Request
from engine.result import Explanation
from engine.store import result_store


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
    probe = Request(state.model, PROBE, state.example, {}, None, state.seed)
    see = partial(heads_link, "text", write_text_focus(state.focus), state.target, key("heads"))
    return draw_prediction(probe, state.target, key("target"), "text", beside=see)


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
        share_scales(
            places,
            lambda method, made: _extent(method, made, state),
            lambda method, made, ends: stack.draw(_row(method, made, state, probe, ends)),
        )
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


def _stack(state: TextState, methods: Mapping[str, Explainer], probe: Explanation, above: Sequence[MethodRow]) -> Stack:
    place = st.container(gap=None, key="text_rows")
    if not state.look.aligned:
        return Flow(place, above)
    return Table(place, above, token_map(methods[PROBE], probe, state.example, state.unit))


def _row(method: Explainer, made: Explanation, state: TextState, probe: Explanation, ends: Ends) -> MethodRow:
    return method_row(method, made, state.example, state.unit, probe.notes, state.look, ends)


def _extent(method: Explainer, made: Explanation, state: TextState) -> float:
    """The largest score that its map shows."""
    return token_map(method, made, state.example, state.unit).largest
