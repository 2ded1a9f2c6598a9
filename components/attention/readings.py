"""Readings and scores of all heads as the page gets them: from memory, from the cache, or computed with progress."""

from __future__ import annotations

import threading
from collections import OrderedDict

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.attention.state import AttentionState
from components.compute import Tick, explain, is_stopped, run_cached
from components.numbers import count, plural
from components.prediction import PROBE
from components.progress import run_with_progress
from components.widgets.attention_board.options import (
    UNITS,
    BoardOptions,
    HeadScoreMap,
    describe_view,
    feature_maps,
)
from engine.errors import ExegesisError
from engine.explain import key_of
from engine.heads.readings import HeadAblation, HeadReading, read_heads, reading_key, switch_off_each, switching_key
from engine.heads.scores import AGREEMENT, AGREES, OFF, SCORES, PerHead, agreement_with
from engine.registry import explainer
from engine.request import Request
from engine.result import Explanation
from engine.store import result_store

MAX_READINGS = 3
"""Readings in memory: one of a long text has some 100 MB, and a page draws the same one again and again."""


class ReadingMemory:
    """The most recent readings of all sessions."""

    def __init__(self, size: int = MAX_READINGS) -> None:
        self._size, self._lock = size, threading.Lock()
        self._readings: OrderedDict[str, HeadReading] = OrderedDict()

    def get(self, key: str) -> HeadReading | None:
        with self._lock:
            if key in self._readings:
                self._readings.move_to_end(key)
            return self._readings.get(key)

    def put(self, key: str, reading: HeadReading) -> None:
        with self._lock:
            self._readings[key] = reading
            self._readings.move_to_end(key)
            while len(self._readings) > self._size:
                self._readings.popitem(last=False)


@st.cache_resource(show_spinner=False)
def reading_memory() -> ReadingMemory:
    """The one memory of the server."""
    return ReadingMemory()


def await_reading(state: AttentionState) -> HeadReading | None:
    """The reading of the page's input; None after a message where there is none."""
    request = state.request(PROBE)
    return run_with_progress(
        st.empty(), lambda: reading_key(request), "Reading the heads", "Stopped before the heads were read.",
        lambda tick: load_reading(request, tick),
    )  # fmt: skip


def load_reading(request: Request, tick: Tick) -> HeadReading:
    """The reading, computed where it is missing; `Cancelled` if the person stopped it. `tick` gets the progress."""
    key = reading_key(request)
    reading = reading_memory().get(key)
    if reading is None:
        reading = run_cached(key, lambda token: read_heads(request, token), tick)
        reading_memory().put(key, reading)
    return reading


def await_scores(state: AttentionState, reading: HeadReading, place: DeltaGenerator) -> HeadScoreMap | None:
    """The chosen score of every head; None after a message in `place`, an empty element, where there is none.

    Scores that are not read from the attention are computed here, with their progress in `place`.
    """
    if state.board.score == AGREEMENT:
        attribution = await_attribution(state, place)
        return None if attribution is None else agreement_score_map(reading, attribution, state.board)
    if state.board.score == OFF:
        ablation = await_ablation(state, place)
        return None if ablation is None else ablation_score_map(ablation, reading.explanation.prediction.regression)
    return _build_score_map(state.board.score, reading.scores[state.board.score])


def is_pending(state: AttentionState) -> bool:
    """Whether `await_scores` would have to compute: neither cached nor stopped."""
    keys = {
        OFF: lambda: switching_key(state.request(PROBE)),
        AGREEMENT: lambda: key_of(state.request(state.board.against)),
    }
    if state.board.score not in keys:
        return False
    try:
        key = keys[state.board.score]()
    except ExegesisError:  # `await_scores` reports it
        return False
    return not is_stopped(key) and not result_store().contains(key)


def await_ablation(state: AttentionState, place: DeltaGenerator) -> HeadAblation | None:
    """The model's predictions with each head switched off in turn."""
    request = state.request(PROBE)

    def work(tick: Tick) -> HeadAblation:
        return run_cached(switching_key(request), lambda token: switch_off_each(request, cancel=token), tick)

    stopped = "Stopped before every head was switched off."
    return run_with_progress(place, lambda: switching_key(request), "Switching each head off", stopped, work)


def await_attribution(state: AttentionState, place: DeltaGenerator) -> Explanation | None:
    """The attribution that maps of heads are compared with: of the same input, class and switched heads."""
    request = state.request(state.board.against)
    title = explainer(request.method, state.kind).title
    return run_with_progress(
        place, lambda: key_of(request), f"Computing: {title}", f"Stopped: {title}.", lambda tick: explain(request, tick)
    )


def ablation_score_map(ablation: HeadAblation, regression: bool) -> HeadScoreMap:
    """The fall of the prediction without each head; positive where the head speaks for the class."""
    if regression:
        return _build_score_map(OFF, ablation.fall, unit="score")
    flips = int(ablation.flipped.sum())
    words = (
        f"Without {count(flips, 'head')} another class is predicted." if flips else "No head alone changes the class."
    )
    return _build_score_map(OFF, ablation.fall, words)


def agreement_score_map(reading: HeadReading, attribution: Explanation, options: BoardOptions) -> HeadScoreMap:
    """The rank agreement of each head's map, as the board draws it, with an attribution."""
    title = method_title(attribution)
    return HeadScoreMap(
        AGREEMENT,
        f"Agreement with {title}",
        AGREES.unit,
        AGREES.signed,
        agreement_with(feature_maps(reading, options), attribution.scores[attribution.features]),
        f"Whether a head's map ({describe_view(reading, options)}) orders the {plural(unit_noun(attribution))} as the "
        f"sizes of the scores by {title} do: +1 the same order, 0 no relation. No value where a map is flat.",
        AGREES.citation,
    )


def _build_score_map(id: str, values: PerHead, more: str = "", unit: str | None = None) -> HeadScoreMap:
    score = SCORES[id]
    words = " ".join(filter(None, (score.about, more)))
    return HeadScoreMap(id, score.title, unit or score.unit, score.signed, values, words, score.citation)


def method_title(explanation: Explanation) -> str:
    """The title of the explanation's method."""
    return explainer(explanation.provenance.method, input_kind(explanation)).title


def unit_noun(explanation: Explanation) -> str:
    """The noun for a feature of the explanation's input."""
    return UNITS[input_kind(explanation)]


def input_kind(explanation: Explanation) -> str:
    """Text or image."""
    return "text" if explanation.grid is None else "image"
