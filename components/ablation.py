"""Predictions without the pinned features, and edited texts in which the pinned tokens are replaced.

Each removal operator gives one prediction, shown next to the scores that the methods assign to the pinned features.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape

import numpy as np
import streamlit as st

from components.errors import describe_error, show_error
from components.method_row import rather_than
from components.numbers import percent, plain, plural, points, signed
from components.styles import use_sheet
from engine.format import visible_token
from engine.metrics.ablation import AblatedPrediction, ablated_predictions
from engine.registry import Explainer
from engine.request import Example, Request
from engine.result import Explanation, Prediction, Token
from engine.word_units import align

TIED = "Equal scores at the edge of the top count by their chance to be in it."
NAMED_CHARACTERS = 60
LEAST_SCALE = 0.01
"""Minimum change at the full length of a bar: one percentage point, or for a regression head this share of the
score."""
Span = tuple[int, int, int]
"""Segment (0 or 1), index of the first character, and index after the last character."""


@dataclass(frozen=True)
class QuestionWords:
    """The wording of the tests of maps, for texts or for pictures.

    `kind`: noun for the input. `unit`: noun for a feature. `shortened`: noun for an input with removed features.
    `removals`: descriptions of a removed unit, by operator. `ways`: the page's curves, by their ids in
    `engine.metrics.faithfulness`; `curves`: their common name. `nothing`: message if none of the pins can be removed.
    """

    kind: str
    unit: str
    shortened: str
    removals: Mapping[str, str]
    ways: Sequence[str]
    curves: str
    nothing: str

    @property
    def measures(self) -> Mapping[str, str]:
        """Display names of the agreement measures."""
        return {"spearman": "Rank correlation", "top_k": f"Shared top {plural(self.unit)}"}

    @property
    def caution(self) -> str:
        """The caution below the prediction without the pinned units."""
        units = plural(self.unit)
        return (
            f"The first table shows what the model predicts without the pinned {units}, the second what each method's "
            "scores say about them. Scores have different units, so compare signs and shares, not sizes. Several "
            f"{units} together can count more or less than the sum of each alone. A {self.kind} with removed {units} "
            "is unlike the training data: where the operators disagree, rely on none of them."
        )


TEXT_WORDS = QuestionWords(
    kind="text",
    unit="token",
    shortened="a shortened text",
    removals={
        "mask": "the mask token in its place",
        "pad": "the padding token in its place",
        "delete": "removed from the text",
        "hide": "hidden from attention, position unchanged",
        "zero": "a zero embedding in its place",
        "mean": "the mean embedding in its place",
    },
    ways=("deletion",),
    curves="Removal curves",
    nothing="Special tokens are never removed. Pin a token of the text to see the prediction without it.",
)
PICTURE_WORDS = QuestionWords(
    kind="picture",
    unit="patch",
    shortened="a picture with holes",
    removals={
        "mean": "the mean color in its place",
        "zero": "a zero embedding in its place",
        "blur": "blurred",
        "drop": "hidden from attention",
    },
    ways=("deletion", "insertion"),
    curves="Deletion and insertion curves",
    nothing="The pins are not patches of this picture. Pin a patch to see the prediction without it.",
)


@dataclass(frozen=True)
class MethodClaim:
    """A method's scores of the pinned features: their sum, and their share of the absolute scores of all features.

    `share` is from 0 to 1, or None if all scores are zero.
    """

    title: str
    total: float
    share: float | None
    signed: bool


def ablation_area(
    request: Request,
    pins: Sequence[int],
    names: Sequence[str],
    words: QuestionWords,
    methods: Mapping[str, Explainer],
    made: Mapping[str, Explanation],
    probe: Explanation,
) -> None:
    """Draw the predictions without the pinned positions. `names`: names of the pinned positions."""
    chosen = removable_pins(pins, probe.tokens)
    if not chosen:
        if pins:
            st.caption(words.nothing)
        return
    try:
        predictions = ablated_predictions(request, chosen)
    except Exception as error:
        show_error(describe_error(error))
        return
    use_sheet("questions")
    claims = [measure_claim(methods[id], one, chosen) for id, one in made.items()]
    contrast = rather_than(request.example)
    st.html(ablation_html(words, len(probe.features), chosen, predictions, claims, names, contrast))


def removable_pins(pins: Sequence[int], tokens: Sequence[Token]) -> tuple[int, ...]:
    """Return the pins that can be removed; a link may contain others."""
    return tuple(pin for pin in pins if pin < len(tokens) and not tokens[pin].special)


def measure_claim(method: Explainer, made: Explanation, chosen: Sequence[int]) -> MethodClaim:
    """Return the claim of a map about the chosen positions. Its share does not count special tokens."""
    sizes = np.abs(made.scores[made.features]).sum()
    scores = made.scores[list(chosen)]
    share = float(np.abs(scores).sum() / sizes) if sizes else None
    return MethodClaim(method.title, float(scores.sum()), share, method.is_signed(made.provenance.params))


def ablation_html(
    words: QuestionWords,
    features: int,
    chosen: Sequence[int],
    predictions: Sequence[AblatedPrediction],
    claims: Sequence[MethodClaim],
    names: Sequence[str],
    contrast: str = "",
) -> str:
    """HTML of the heading, both tables and the caution. External text is escaped.

    `features`: number of removable features. `names`: names of the chosen features, for the heading. `contrast`: see
    `components.method_row.rather_than`.
    """
    counted = f"{features:,} {words.unit if features == 1 else plural(words.unit)}"
    part = f"{len(chosen)} of {counted}, {percent(len(chosen) / features)} of them"
    tables = f'<div class="xg-tables">{_predictions_table(predictions, words, contrast)}{_claims_table(claims)}</div>'
    return (
        f'<div class="xg"><h3 class="xg-heading">Without {names_html(names)}</h3>'
        f'<p class="xg-small">{part}.</p>{tables}<p class="xg-small">{words.caution}</p></div>'
    )


def names_html(texts: Sequence[str], most: int = NAMED_CHARACTERS) -> str:
    """HTML of a shortened list: “one”, “two” and 3 more. Names are escaped and isolated.

    The list has as many names as fit into `most` characters, but at least one.
    """
    shown: list[str] = []
    for text in texts:
        if shown and sum(map(len, shown)) + len(text) > most:
            break
        shown.append(text if len(text) <= most else f"{text[: most - 1]}…")
    left = len(texts) - len(shown)
    named = ", ".join(f"“<bdi>{escape(text)}</bdi>”" for text in shown)
    return named + (f" and {left} more" if left else "")


def change_bar(change: float, largest: float) -> str:
    """HTML of a bar that starts in the middle: to the right in the "for" color for an increase, else to the left."""
    share = 0.0 if largest == 0 else 50 * abs(change) / largest
    side, start = ("for", 50.0) if change > 0 else ("against", 50 - share)
    fill = f'<i class="xg-bar-{side}" style="inset-inline-start:{start:.1f}%;width:{share:.1f}%"></i>'
    return f'<span class="xg-change-bar" aria-hidden="true">{fill}</span>'


def pinned_span(tokens: Sequence[Token], pins: Sequence[int]) -> Span | None:
    """Return the span of the pins, or None if they are not adjacent tokens of one text."""
    chosen = removable_pins(pins, tokens)
    if not chosen or len(chosen) != chosen[-1] - chosen[0] + 1:
        return None
    spanned = [tokens[i] for i in chosen]
    if len({token.segment for token in spanned}) > 1:
        return None
    return spanned[0].segment, min(token.start for token in spanned), max(token.end for token in spanned)


def pinned_span_in_edit(edited: Sequence[Token], parent: Sequence[Token], pins: Sequence[int]) -> Span | None:
    """Return the span in the edited text that replaces the parent's pinned tokens, or None if there is none."""
    chosen, places, replaces = removable_pins(pins, parent), list[int](), False
    for column in align(parent, edited):
        # An insertion after a changed token belongs to its replacement.
        replaces = column.parent in chosen or (replaces and column.kind == "inserted")
        if replaces and column.child is not None:
            places.append(column.child)
        replaces = replaces and column.kind != "kept"
    return pinned_span(edited, places)


def substitute(example: Example, span: Span, new: str) -> Example:
    """Return the example with `new` in place of the span.

    A blank `new` deletes the span, together with one of two spaces around it.
    """
    segment, start, end = span
    texts = [example.text, example.text_pair]
    old = texts[segment] or ""
    before, after = old[:start], old[end:]
    if not new.strip():
        new, double = "", (not before or before[-1].isspace()) and after[:1].isspace()
        after = after[1:] if double else after
    texts[segment] = f"{before}{new}{after}"
    return replace(example, text=texts[0] or "", text_pair=texts[1])


def _predictions_table(predictions: Sequence[AblatedPrediction], words: QuestionWords, contrast: str) -> str:
    whole, target = predictions[0].whole, predictions[0].target
    name = f"<bdi>{escape(visible_token(whole.labels[target]) + contrast)}</bdi>"
    value = f"score {name}" if whole.regression else f"probability of {name}"
    predicted = "" if whole.regression else "<th>predicted</th>"
    change = "change" if whole.regression else "change, percentage points"
    least = LEAST_SCALE * (abs(whole.probabilities[target]) if whole.regression else 1)
    largest = max(least, *(abs(one.change) for one in predictions))
    rows = "".join(_prediction_row(one, largest, words) for one in predictions)
    return (
        f'<table class="xg-table"><thead><tr><th>a removed {words.unit} is</th><th class="xg-number">{value}</th>'
        f"<th>{change}</th>{predicted}</tr></thead><tbody>"
        f'<tr><th>not removed: the whole {words.kind}</th><td class="xg-number">{_value(whole, target)}</td><td></td>'
        f"{_class(whole, False)}</tr>{rows}</tbody></table>"
    )


def _prediction_row(one: AblatedPrediction, largest: float, words: QuestionWords) -> str:
    change = signed(one.change) if one.whole.regression else points(one.change)
    return (
        f'<tr><th>{words.removals[one.removal]}</th><td class="xg-number">{_value(one.left, one.target)}</td>'
        f'<td class="xg-change">{change_bar(one.change, largest)}<span class="xg-number">{change}</span></td>'
        f"{_class(one.left, one.flipped)}</tr>"
    )


def _value(prediction: Prediction, target: int) -> str:
    share = prediction.probabilities[target]
    return signed(share) if prediction.regression else escape(percent(share))


def _class(prediction: Prediction, flipped: bool) -> str:
    if prediction.regression:
        return ""
    label = f"<bdi>{escape(visible_token(prediction.label))}</bdi>"
    return f"<td><b>{label}, changed</b></td>" if flipped else f"<td>{label}</td>"


def _claims_table(claims: Sequence[MethodClaim]) -> str:
    if not claims:
        return ""
    rows = "".join(
        f'<tr><th>{escape(one.title)}</th><td class="xg-number">{signed(one.total) if one.signed else plain(one.total)}'
        f'</td><td class="xg-number">{"none" if one.share is None else escape(percent(one.share))}</td></tr>'
        for one in claims
    )
    return (
        '<table class="xg-table"><thead><tr><th>method</th><th class="xg-number">sum of their scores</th>'
        f'<th class="xg-number">share of all, by size</th></tr></thead><tbody>{rows}</tbody></table>'
    )
