"""The row of a method: its map, with check and cost beside it, the caution below it, and the provenance on a click.

Rows are stacked, or aligned in a table with a column for each unit. The table scrolls sideways in a box; a list below
it describes each method. The human rationale is also such a row.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np

from components.numbers import count, plain, seconds, small
from components.styles import place_classes
from components.widgets.token_map import (
    TokenMap,
    class_of,
    direction,
    facts_of,
    legend_html,
    modes,
    token_map_html,
    tone,
    unit_direction,
)
from components.widgets.view_options import DEFAULT_VIEW, ViewOptions, scale_group
from engine.data.examples import Dataset, LabeledExample
from engine.data.labels import match_classes
from engine.format import shorten, visible_token
from engine.metrics.plausibility import overlaps, spans_of
from engine.params import LOGIT
from engine.registry import Explainer
from engine.request import Example, Input, Prompt
from engine.result import OTHERS, Check, Explanation, Prediction, Token
from engine.word_units import Unit, units, units_of

Facts = tuple[tuple[str, str], ...]

TABLE_LABEL = "Maps, one column for each unit"
RATIONALE = "Rationale"
RATIONALE_CAUTION = "It shows what convinces people, which may not be what the model used."
EXACT = "These words determine the label by construction. The model may have used others."
LONGEST_WORD = 40
"""Maximum number of characters shown of the word that a token is a piece of."""


@dataclass(frozen=True)
class MethodRow:
    """The content of a row, as plain values."""

    title: str
    view: TokenMap
    check: Check | None
    cost: str
    notes: tuple[str, ...]
    caution: str
    citation: str
    facts: Facts


@dataclass(frozen=True)
class Placeholder:
    """The row of a method without a map, which is still to be computed or has failed."""

    title: str
    sentence: str
    failed: bool = False


def method_row(
    method: Explainer,
    made: Explanation,
    example: Example,
    unit: str,
    said: Iterable[str] = (),
    look: ViewOptions = DEFAULT_VIEW,
    ends: Mapping[str, float] | None = None,
) -> MethodRow:
    """Return the row of an explanation. Notes in `said`, which the page shows elsewhere, are left out.

    `ends`: ends of the scales that maps share, by group (`view_options.shared_ends`).
    """
    view = replace(token_map(method, made, example, unit), look=look)
    group = scale_group(method, made.provenance.params)
    if ends and group is not None and group in ends:
        view = replace(view, end=ends[group], sharing=group)
    notes = tuple(note for note in made.remarks if note not in set(said))
    return MethodRow(
        method.title, view, made.check, cost_line(made), notes, method.caution, method.citation, facts(method, made)
    )


def token_map(method: Explainer, made: Explanation, example: Example, unit: str) -> TokenMap:
    """Return the map of an explanation, on its own scale."""
    drawn, origin = units_of(made, example, unit), made.provenance
    return TokenMap(
        drawn, example.texts, method.is_signed(origin.params), explained_name(made, example), made.truncated
    )


def explained_name(made: Explanation, example: Input | None) -> str:
    """Return the name of the explained class; for a prompt, the token with its contrast, if any."""
    return f"{visible_token(made.provenance.target_label)}{rather_than(example)}"


def rather_than(example: Input | None) -> str:
    """Return the contrast of a prompt, to be appended to its target, or an empty string."""
    contrast = example.contrast if isinstance(example, Prompt) else None
    return "" if contrast is None else f" rather than {visible_token(contrast)}"


def quoted_html(text: str, word: str = "") -> str:
    """HTML of a quoted unit and the word that it is a piece of, if any: “vent” of “inventive”. Both are escaped."""
    quoted = f"“<bdi>{escape(text)}</bdi>”"
    return f"{quoted} of {quoted_html(shorten(word, LONGEST_WORD))}" if word else quoted


def facts(method: Explainer, made: Explanation) -> Facts:
    """Return everything that the scores depend on, as names and values."""
    origin, axes = made.provenance, method.axes_at(made.provenance.params)
    label, prediction = visible_token(origin.target_label), made.prediction
    explained = "the score" if prediction.regression else f"{prediction.class_word} {origin.target}: {label}"
    if prediction.of_two_tokens:
        explained += f" rather than {visible_token(prediction.labels[1 - origin.target])}"
    chosen = ", ".join(f"{name} = {value}" for name, value in origin.params.items()) or "none"
    return (
        ("method", f"{origin.method}, version {origin.version}"),
        ("parameters", chosen),
        ("model", f"{origin.model}, revision {origin.revision}"),
        ("explained", explained),
        ("run", f"{origin.dtype} on {origin.device}, seed {origin.seed}"),
        ("cost", f"{count(made.evaluations, 'model evaluation')}, {seconds(made.seconds)} when computed"),
        ("removed by", axes.removal),
        ("explains", _behaviour(axes.behaviour, prediction)),
        ("summarized as", axes.summary),
        *_shares(made),
        ("source", method.citation),
    )


def _behaviour(behaviour: str, prediction: Prediction) -> str:
    """Describe the explained behavior, with "class" replaced for a score, a token, or a token and its contrast."""
    kind, of_class, rest = behaviour.partition(" of the class")
    if not of_class:
        return behaviour
    if prediction.regression:
        return f"score{rest}"
    if prediction.of_two_tokens:
        return f"{'difference of the two logits' if kind == LOGIT else f'{kind} of the token among the two'}{rest}"
    return f"{kind} of the {prediction.class_word}{rest}"


def _shares(made: Explanation) -> Facts:
    """Return the parts of the logit, for a method that distributes all of it: not all of it reaches the input."""
    parts = made.extras.get("relevance")
    if parts is None:
        return ()
    input = "tokens" if made.grid is None else "patches and special tokens"
    named = {"tokens": input, "biases": "biases", "positions": "positions", "softmax": "softmax of attention"}
    terms = " + ".join(f"{plain(parts[part])} ({name})" for part, name in named.items())
    return (("score" if made.prediction.regression else "logit", f"{plain(parts['logit'])} = {terms}"),)


def cost_line(made: Explanation) -> str:
    """Describe the cost of an explanation in one line."""
    source = "cached" if made.cached else seconds(made.seconds)
    return f"{count(made.evaluations, 'evaluation')} · {source}"


@functools.lru_cache(maxsize=128)
def method_row_html(row: MethodRow) -> str:
    """HTML of a row; external text is escaped. Memoized, since most reruns of a page draw the same rows."""
    return (
        f'<div class="xg"><div class="xg-row"><div class="xg-side"><p class="xg-title">{escape(row.title)}</p>'
        f'{check_html(row.check)}<p class="xg-small">{escape(row.cost)}</p></div>'
        f"<div>{token_map_html(row.view)}{footer_html(row)}</div></div></div>"
    )


def footer_html(row: MethodRow) -> str:
    """HTML of the lines below a map: its scale, details on a click, its notes and its caution."""
    notes = "".join(f'<p class="xg-note">{escape(note)}</p>' for note in row.notes)
    return (
        f'<div class="xg-small xg-foot">{legend_html(row.view)}{details_html(row.facts)}'
        f'{notes}<p class="xg-caution">{escape(row.caution)}</p></div>'
    )


def check_html(check: Check | None) -> str:
    """HTML of the method's own check, with one line for each part: its name, its value, and whether it is good."""
    return "" if check is None else "".join(map(_check_part_html, check.parts))


def _check_part_html(part: Check) -> str:
    name, value, limit = escape(part.name), escape(small(part.value)), plain(part.limit)
    if part.ok:
        return f'<p class="xg-small" title="good: at most {limit}">✓ {name}: {value}</p>'
    return f'<p class="xg-small xg-bad">✗ {name}: {value}, not good (above {limit})</p>'


def details_html(facts: Facts) -> str:
    """HTML of the facts, shown on a click."""
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    return f'<details class="xg-details"><summary>Details</summary><dl class="xg-facts">{rows}</dl></details>'


def waiting_placeholder(title: str, now: bool) -> Placeholder:
    """Return the row of a method that is still to be computed. `now`: whether its computation is running."""
    return Placeholder(title, "being computed …" if now else "waiting …")


def placeholder_html(row: Placeholder) -> str:
    """HTML of the row of a method without a map."""
    kind = " xg-error" if row.failed else ""
    return (
        f'<div class="xg"><div class="xg-row xg-quiet"><p class="xg-title">{escape(row.title)}</p>'
        f'<p class="xg-sentence{kind}">{escape(row.sentence)}</p></div></div>'
    )


def aligned_html(head: TokenMap, lines: Sequence[str], described: Sequence[MethodRow]) -> str:
    """HTML of the table and the list below it. `head`: any map of the example; it names the columns.

    `lines`: rows from `line_html` and `quiet_line_html`. `described`: the methods of the list.
    """
    return f'<div class="xg">{grid_html(head, lines)}<div class="xg-list">{"".join(map(_item, described))}</div></div>'


def grid_html(head: TokenMap, lines: Sequence[str], corner: str = "Method", label: str = TABLE_LABEL) -> str:
    """HTML of the table in a box that can be scrolled by keyboard. It runs in the direction of the first text.

    `corner`: heading of the first column. `label`: name of the box for screen readers. Both are inserted unescaped.
    """
    return (
        f'<div class="xg-map xg-scroll" tabindex="0" role="region" aria-label="{label}">'
        f'<table class="xg-grid" dir="{direction(head.texts[0])}">'
        f'<thead><tr><th scope="col">{corner}</th>{_heads(head)}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def line_html(row: MethodRow) -> str:
    """HTML of a method's row in the table."""
    view = row.view
    colors = ["xg-special" if unit.special else tone(view, position) for position, unit in enumerate(view.units)]
    cells = "".join(
        f"<td{class_of(color, *place_classes(position))}{facts_of(view, position)}></td>"
        for position, color in enumerate(colors)
    )
    return f"<tr{class_of(*modes(view).split())} style=\"--n:'{view.ranked}'\">{_name(row)}{cells}</tr>"


def quiet_line_html(row: Placeholder, columns: int) -> str:
    """HTML of the table row of a method without a map; its sentence stays in view while the table is scrolled."""
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
    """Return the CSS class of a heading: gray for special tokens, without a dividing line for a unit inside a word."""
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
    """Return a short form of the scale; the legend in the list has the full form."""
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
    """Return the row of the rationale if the text is an annotated example of the data set, else an empty list.

    The list is also empty for a model of another task, because the marks do not justify its classes. `explanation`: any
    explanation of the example; the row uses its tokens, so that it aligns with all others.
    """
    marked = index is not None and (data[index].rationale or data[index].rationale_pair)
    if index is None or not marked:
        return []
    if not isinstance(data[index].example, Prompt) and describe_mismatch(data, explanation.prediction):
        return []
    row = rationale_row(data, index, explanation, unit)
    return [replace(row, view=replace(row.view, look=look))]


def describe_mismatch(data: Dataset, prediction: Prediction) -> str:
    """Return a sentence if the model has another task than the data set; empty if they fit or nothing is labeled."""
    scores, title = prediction.regression, data.title or "The data set"
    if data.task == "regression":
        return "" if scores else f"This model predicts classes, but {title} has scores. Choose another model."
    if not data.label_names or (not scores and match_classes(data.label_names, prediction.labels).indices is not None):
        return ""
    if OTHERS in prediction.labels:
        return match_classes(data.label_names, prediction.labels).note
    predicted = "a score" if scores else ", ".join(prediction.labels)
    labels = ", ".join(data.label_names)
    return f"This model predicts {predicted}, but {title} has the labels {labels}. Choose another model."


def rationale_row(data: Dataset, index: int, explanation: Explanation, unit: str) -> MethodRow:
    """Return the row of the rationale: units that share a character with a marked span have score 1, others 0."""
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
    """Return the units of the text, with score 1 if they overlap a span that a person marked, else 0."""
    drawn = units(tokens, np.zeros(len(tokens)), labeled.example, unit)
    return tuple(
        one if one.special else replace(one, score=float(overlaps(one, spans_of(labeled, one.segment))))
        for one in drawn
    )
