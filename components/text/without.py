"""The prediction without the pinned tokens of a text."""

from __future__ import annotations

from collections.abc import Mapping

from components.prediction_area import PROBE
from components.question_words import TEXT_WORDS
from components.text.pins import pinned_names
from components.text.results import request_for
from components.text.state import TextState
from components.without import without_pinned
from engine.registry import Explainer
from engine.result import Explanation


def without_area(
    state: TextState, methods: Mapping[str, Explainer], made: Mapping[str, Explanation], probe: Explanation
) -> None:
    """Below the maps: what becomes of the prediction without the pinned tokens, or how to pin one."""
    names = pinned_names(state, probe)
    without_pinned(request_for(state, PROBE), state.pins, names, TEXT_WORDS, methods, made, probe)
