"""Maps as rows of a table with a column for each unit, and the human rationale as such a row.

The table scrolls sideways in a box of its own. A list below it describes each method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape

import numpy as np

from components.method_row import MethodRow, Placeholder, check_html, footer_html
from components.numbers import count, plain
from components.widgets.token_map import TokenMap
from components.widgets.token_map.html import class_of, direction, facts_of, modes, place_classes, tone, unit_direction
from components.widgets.view_options import DEFAULT_VIEW, ViewOptions
from engine.data.examples import Dataset, LabeledExample
from engine.data.labels import match_classes
from engine.metrics.plausibility import overlaps, spans_of
from engine.result import Explanation, Prediction, Token
from engine.word_units import Unit, units

TABLE_LABEL = "Maps, one column for each unit"
RATIONALE = "Rationale"
RATIONALE_CAUTION = "It shows what convinces people, which may not be what the model used."
EXACT = "These words determine the label by construction. The model may have used others."


def aligned_html(head: TokenMap, lines: Sequence[str], described: Sequence[MethodRow]) -> str:
    """The table and the list below it. `head` is any map of the example: it names the columns.

    `lines`: of `line_html` and `quiet_line_html`. `described`: the methods of the list below.
    """
    return f'<div class="xg">{grid_html(head, lines)}<div class="xg-list">{"".join(map(_item, described))}</div></div>'


def grid_html(head: TokenMap, lines: Sequence[str]) -> str:
    """The table in its box, which the keyboard can scroll. It runs in the direction of the first text."""
    return (
        f'<div class="xg-map xg-scroll" tabindex="0" role="region" aria-label="{TABLE_LABEL}">'
        f'<table class="xg-grid" dir="{direction(head.texts[0])}">'
        f'<thead><tr><th scope="col">Method</th>{_heads(head)}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def line_html(row: MethodRow) -> str:
    """A method's line in the table."""
    view = row.view
    colors = ["xg-special" if unit.special else tone(view, position) for position, unit in enumerate(view.units)]
    cells = "".join(
        f"<td{class_of(color, *place_classes(position))}{facts_of(view, position)}></td>"
        for position, color in enumerate(colors)
    )
    return f"<tr{class_of(*modes(view).split())} style=\"--n:'{view.ranked}'\">{_name(row)}{cells}</tr>"


def quiet_line_html(row: Placeholder, columns: int) -> str:
    """The line of a method without a map; the sentence stays in sight while the table is scrolled."""
    kind = " xg-error" if row.failed else ""
    return (
        f'<tr class="xg-quiet"><th scope="row"><p class="xg-title">{escape(row.title)}</p></th>'
        f'<td colspan="{columns}"><p class="xg-sentence{kind}">{escape(row.sentence)}</p></td></tr>'
    )


def _heads(view: TokenMap) -> str:
    ways = [unit_direction(view, position) for position in range(len(view.units))]
    whole = direction(view.texts[0])
    return "".join(
        f"<th{class_of(_kind(view, position), *place_classes(position))}{'' if way == whole else f' dir={way}'}>"
        f"{escape(unit.text)}</th>"
        for position, (unit, way) in enumerate(zip(view.units, ways, strict=True))
    )


def _kind(view: TokenMap, position: int) -> str:
    """Special tokens are gray, and a unit that goes on with the word before it has no line between them."""
    unit, before = view.units[position], view.units[max(0, position - 1)]
    if unit.special:
        return "xg-gray"
    inside = not before.special and before.segment == unit.segment and 0 < unit.start <= before.end
    return "xg-inside" if inside else ""


def _name(row: MethodRow) -> str:
    mark = "" if row.check is None else "✓" if row.check.ok else "✗"
    cost = row.cost.rpartition(" · ")[2].replace("from the cache", "cached")
    summary = " · ".join(filter(None, (" ".join(filter(None, (mark, _ends(row.view)))), cost)))
    return f'<th scope="row"><p class="xg-title">{escape(row.title)}</p><p class="xg-small">{escape(summary)}</p></th>'


def _ends(view: TokenMap) -> str:
    """The scale in short; the legend in the list says it in full."""
    if view.marks or view.largest == 0:
        return ""
    return f"±{plain(view.scale)}" if view.signed else f"0 to {plain(view.scale)}"


def _item(row: MethodRow) -> str:
    return (
        f'<div class="xg-item"><div class="xg-side"><p class="xg-title">{escape(row.title)}</p>'
        f'{check_html(row.check)}<p class="xg-small">{escape(row.cost)}</p></div>{footer_html(row)}</div>'
    )


def rationale_rows(
    data: Dataset, index: int | None, explanation: Explanation, unit: str, look: ViewOptions = DEFAULT_VIEW
) -> list[MethodRow]:
    """The row, where the text is a data set's own example and somebody marked it; else nothing.

    Nothing for a model of another task either: the marks are no reasons for its classes.
    `explanation` is any explanation of the example: the row has its tokens, so that it lines up with every other.
    """
    marked = index is not None and (data[index].rationale or data[index].rationale_pair)
    if index is None or not marked or describe_mismatch(data, explanation.prediction):
        return []
    row = rationale_row(data, index, explanation, unit)
    return [replace(row, view=replace(row.view, look=look))]


def describe_mismatch(data: Dataset, prediction: Prediction) -> str:
    """A sentence for a model of another task than the data set's; empty where they fit or nothing is labeled."""
    scores, title = prediction.regression, data.title or "The data set"
    if data.task == "regression":
        return "" if scores else f"This model predicts classes, but {title} has scores. Choose another model."
    if not data.label_names or (not scores and match_classes(data.label_names, prediction.labels).indices is not None):
        return ""
    predicted = "a score" if scores else ", ".join(prediction.labels)
    labels = ", ".join(data.label_names)
    return f"This model predicts {predicted}, but {title} has the labels {labels}. Choose another model."


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
        ("license", data.card.licence),
    )
    caution = EXACT if data.exact else f"Marked by the authors of {data.title}. {RATIONALE_CAUTION}"
    return MethodRow(RATIONALE, view, None, cost, (), caution, "", facts)


def mark_units(tokens: Sequence[Token], labeled: LabeledExample, unit: str) -> tuple[Unit, ...]:
    """The units of the text, each with 1 where a person marked a part of it, else 0."""
    drawn = units(tokens, np.zeros(len(tokens)), labeled.example, unit)
    return tuple(
        one if one.special else replace(one, score=float(overlaps(one, spans_of(labeled, one.segment))))
        for one in drawn
    )
