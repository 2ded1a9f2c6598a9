"""Which tokens or patches could only leak a label, not explain it: punctuation, stop words, ends, borders."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool

from engine.models.classifier import EncodedInput
from engine.request import Example, Input
from engine.result import Token

PUNCTUATION, STOP, FIRST, LAST, BORDER = "punctuation", "stop_words", "first", "last", "border"
OF_TEXTS = (PUNCTUATION, STOP, FIRST, LAST)
OF_PICTURES = (BORDER,)

# Negations and comparisons are left out on purpose: they can decide a label.
_GRAMMAR = """
a an the this that these those i me my mine we us our ours you your yours he him his she her hers it its they
them their theirs who whom whose which what am is are was were be been being have has had having do does did doing
will would shall should can could may might must and or if then than as of at by for with about into through to from
in on out over under up down again further once here there when where why how some such so own same just also
"""
STOP_WORDS = frozenset(_GRAMMAR.split())
"""English words that carry grammar and little meaning."""
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")

Kinds = Mapping[str, Bool[np.ndarray, "feature"]]


def kinds_of(coded: EncodedInput, given: Input) -> Kinds:
    """Of each kind, which of the features belong to it. A piece of a stop word belongs to it."""
    if coded.grid is not None:
        return {BORDER: border_of(coded.grid)}
    assert isinstance(given, Example)
    tokens = [coded.tokens[position] for position in coded.features]
    spans = [_stop_spans(text) for text in (given.text, given.text_pair or "")]
    places = np.arange(len(tokens))
    return {
        PUNCTUATION: np.array([_is_punctuation(_own(one, given)) for one in tokens], dtype=bool),
        STOP: np.array([_inside(one.start, one.end, spans[one.segment]) for one in tokens], dtype=bool),
        FIRST: places == 0,
        LAST: places == len(tokens) - 1,
    }


def border_of(grid: tuple[int, int]) -> Bool[np.ndarray, "patch"]:
    """The patches at the edge of the picture, row by row."""
    inside = np.ones(grid, dtype=bool)
    inside[1:-1, 1:-1] = False
    return inside.ravel()


def _own(token: Token, given: Example) -> str:
    text = (given.text, given.text_pair or "")[token.segment]
    return text[token.start : token.end]


def _is_punctuation(text: str) -> bool:
    """Neither a letter nor a digit; white space alone is not."""
    return bool(text.strip()) and not any(character.isalnum() for character in text)


def _stop_spans(text: str) -> list[tuple[int, int]]:
    return [found.span() for found in _WORD.finditer(text) if found.group().lower() in STOP_WORDS]


def _inside(start: int, end: int, spans: list[tuple[int, int]]) -> bool:
    return end > start and any(low <= start and end <= high for low, high in spans)
