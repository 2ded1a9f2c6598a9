"""Hand-made explanations for the tests of what is drawn."""

from __future__ import annotations

import re

import numpy as np

from engine.request import Example
from engine.result import Check, Explanation, Prediction, Provenance, Token

SPECIALS = ("[CLS]", "[SEP]")


def tokens_of(text: str, pieces: str = r"\w+|[^\w\s]", segment: int = 0) -> list[Token]:
    """A token for each match of `pieces` in the text."""
    return [Token(m[0], m.start(), m.end(), segment, False) for m in re.finditer(pieces, text)]


def special(name: str) -> Token:
    return Token(name, 0, 0, -1, True)


def encoded(example: Example, pieces: str = r"\w+|[^\w\s]") -> tuple[Token, ...]:
    """[CLS] text [SEP], or [CLS] text [SEP] pair [SEP]."""
    first = [special("[CLS]"), *tokens_of(example.text, pieces), special("[SEP]")]
    if example.text_pair is None:
        return tuple(first)
    return (*first, *tokens_of(example.text_pair, pieces, segment=1), special("[SEP]"))


def explanation(
    example: Example,
    scores: list[float] | None = None,
    *,
    pieces: str = r"\w+|[^\w\s]",
    labels: tuple[str, ...] = ("negative", "positive"),
    check: Check | None = None,
    notes: tuple[str, ...] = (),
    params: dict[str, object] | None = None,
    method: str = "occlusion",
    cached: bool = False,
    truncated: int = 0,
    extras: dict[str, object] | None = None,
) -> Explanation:
    """Scores are those of the tokens that are not special; by default 1, 2, 3, ... in turn with both signs."""
    tokens = encoded(example, pieces)
    places = [i for i, token in enumerate(tokens) if not token.special]
    given = [(-1) ** i * (i + 1.0) for i in range(len(places))] if scores is None else scores
    values = np.zeros(len(tokens))
    values[places] = given
    shares = tuple(1 / len(labels) for _ in labels)
    return Explanation(
        tokens=tokens,
        scores=values,
        prediction=Prediction(labels, (0.0,) * (len(labels) - 1) + (1.0,), shares),
        provenance=Provenance(
            "model-a", "0123abcd", method, 3, params or {}, len(labels) - 1, labels[-1], 7, "float32", "cpu"
        ),
        evaluations=12,
        seconds=0.25,
        check=check,
        notes=notes,
        truncated=truncated,
        cached=cached,
        extras=extras or {},
    )
