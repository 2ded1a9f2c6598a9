"""The human rationale as a row like any other: the words that people marked as the reason for the label."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from components.method_row import MethodRow
from components.numbers import count
from components.widgets.token_map import TokenMap
from components.widgets.view_options import DEFAULT_VIEW, ViewOptions
from engine.data.examples import Dataset, LabeledExample
from engine.metrics.plausibility import overlaps, spans_of
from engine.result import Explanation, Token
from engine.word_units import Unit, units

TITLE = "Rationale"
CAUTION = "It says what convinces a person, which need not be what the model used."
EXACT = "The label follows from these words, by how the text was made; the model may still have used others."


def rationale_rows(
    data: Dataset, index: int | None, explanation: Explanation, unit: str, look: ViewOptions = DEFAULT_VIEW
) -> list[MethodRow]:
    """The row, where the text is a data set's own example and somebody marked it; else nothing.

    `explanation` is any explanation of the example: the row has its tokens, so that it lines up with every other.
    """
    if index is None or not (data[index].rationale or data[index].rationale_pair):
        return []
    row = rationale_row(data, index, explanation, unit)
    return [replace(row, view=replace(row.view, look=look))]


def rationale_row(data: Dataset, index: int, explanation: Explanation, unit: str) -> MethodRow:
    """Units that share a character with a marked span are 1, others 0."""
    labeled = data[index]
    drawn = mark_units(explanation.tokens, labeled, unit)
    texts = tuple(text for text in (labeled.text, labeled.text_pair) if text is not None)
    view = TokenMap(drawn, texts, signed=False, target="", truncated=explanation.truncated, marks=True)
    spans = len(labeled.rationale) + len(labeled.rationale_pair)
    cost = f"{count(spans, 'span')} · from {data.title}"
    facts = (
        ("data set", f"{data.title}, example {index}, revision {data.revision[:12]}"),
        ("how it was made", data.card.made),
        ("limits", data.card.limits),
        ("licence", data.card.licence),
    )
    caution = EXACT if data.exact else f"Marked by the authors of {data.title}. {CAUTION}"
    return MethodRow(TITLE, view, None, cost, (), caution, "", facts)


def mark_units(tokens: Sequence[Token], labeled: LabeledExample, unit: str) -> tuple[Unit, ...]:
    """The units of the text, each with 1 where a person marked a part of it, else 0."""
    drawn = units(tokens, np.zeros(len(tokens)), labeled.example, unit)
    return tuple(one if one.special else replace(one, score=_score(one, labeled)) for one in drawn)


def _score(unit: Unit, labeled: LabeledExample) -> float:
    return float(overlaps(unit, spans_of(labeled, unit.segment)))
