"""The Attention page's answer: the prediction, then the board of all heads, then the questions to them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import streamlit as st

from components.attention.board import board_area
from components.attention.controls import board_controls
from components.attention.fitting import fitted, fitted_to_classes
from components.attention.head_switches import restore_button, switch_area
from components.attention.keep import keep_area
from components.attention.look import INPUTS
from components.attention.reading import reading_area
from components.attention.scores import HeadMap, is_pending, score_map
from components.attention.session import correct, key
from components.attention.state import AttentionState
from components.attention.words import words_area
from components.engine_room import explain, is_cached
from components.flow.area import flow_area
from components.prediction_area import PROBE, prediction_area
from engine.errors import ExegesisError
from engine.heads.readings import HeadReading
from engine.registry import Explainer
from engine.request import Example, Request
from engine.result import Prediction

MOST_CLASSES = 5


def attention_area(state: AttentionState, methods: Mapping[str, Explainer]) -> None:
    """Everything below the choice of model and input."""
    if missing := _missing(state):
        st.info(missing)
    if missing or state.input is None:  # the controls of pictures have said why there is none
        return
    word, target = INPUTS[state.kind], key(state.kind, "target")
    if prediction_area(_probe(state), state.target, target, word, MOST_CLASSES) is None:
        if (prediction := _predicted(state)) is not None:
            _keep_to(*fitted_to_classes(state, prediction))
        restore_button(state)
        return
    reading = reading_area(state)
    if reading is None:
        return
    _keep_to(*fitted(state, reading))
    board_controls(state, reading)
    place, pending = st.empty(), is_pending(state)
    scores = None if pending else score_map(state, reading, place)
    _sections(state, reading, scores)
    # After them, so that nobody waits for the page: what takes long is computed in its place above the board.
    if pending and score_map(state, reading, place) is not None:
        st.rerun()
    keep_area(state, reading, scores)  # files never lack the score that is still to come


def _sections(state: AttentionState, reading: HeadReading, scores: HeadMap | None) -> None:
    board_area(state, reading, scores)
    words_area(state, reading, scores)
    switch_area(state, reading, scores)
    flow_area(state, reading)


def _probe(state: AttentionState) -> Request:
    return dataclasses.replace(state.request(PROBE), target=None)


def _predicted(state: AttentionState) -> Prediction | None:
    """The prediction, at once where it is there."""
    request = _probe(state)
    try:
        return explain(request).prediction if is_cached(request) else None
    except ExegesisError:  # the prediction's place has said why
        return None


def _keep_to(state: AttentionState, said: list[str]) -> None:
    if said:
        correct(state, said)


def _missing(state: AttentionState) -> str:
    if not state.model:
        return "Pick a model above, or type the folder of a checkpoint or a hub id."
    if not isinstance(state.input, Example):
        return ""
    if not state.input.text.strip():
        return "Type a text above, or pick an example, to see what the heads look at."
    if state.input.text_pair is not None and not state.input.text_pair.strip():
        return "Type the second text, or switch it off."
    return ""
