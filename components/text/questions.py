"""Questions to the maps of one text."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from components.question_words import TEXT_WORDS
from components.questions import Made, Questioned, questions
from components.text.results import request_for
from components.text.session import key
from components.text.state import TextState
from engine.registry import Explainer
from engine.result import Explanation
from engine.word_units import unit_scores


def question_area(state: TextState, methods: Mapping[str, Explainer], made: Made, probe: Explanation) -> None:
    """Below the maps: removal curves or the agreement of the maps, computed only once it is asked for."""
    scores = partial(unit_scores, example=state.example, kind=state.unit)
    page = Questioned("text", state, TEXT_WORDS, state.unit, partial(request_for, state), key, scores)
    questions(page, methods, made, probe)
