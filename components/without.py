"""The prediction without what is pinned, by each removal operator, beside what the methods say it is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from components.numbers import percent, plain, points, signed
from components.question_styles import use_question_styles
from components.question_words import QuestionWords, plural
from components.trouble import say_error, sentence
from engine.registry import Explainer
from engine.request import Request
from engine.result import Explanation, Prediction, Token

if TYPE_CHECKING:
    from engine.metrics.ablation import AblatedPrediction

NAMED_CHARACTERS = 60
LEAST_SCALE = 0.01
"""The change that a bar is measured by is never less: a percentage point, or this share of a score."""


@dataclass(frozen=True)
class Claim:
    """What a method says of some features: the sum of their scores, and their part of the sizes of all scores.

    `share` is from 0 to 1, None where all scores are zero.
    """

    title: str
    total: float
    share: float | None
    signed: bool


def without_pinned(
    request: Request,
    pins: Sequence[int],
    names: Sequence[str],
    words: QuestionWords,
    methods: Mapping[str, Explainer],
    made: Mapping[str, Explanation],
    probe: Explanation,
) -> None:
    """What becomes of the prediction without the pinned positions, or how to pin one. `names`: what they are called."""
    chosen = pinned(pins, probe.tokens)
    if not chosen:
        st.caption(words.nothing if pins else words.hint)
        return
    from engine.metrics.ablation import ablated_predictions

    try:
        answers = ablated_predictions(request, chosen)
    except Exception as error:
        say_error(sentence(error))
        return
    use_question_styles()
    said = [claim(methods[id], one, chosen) for id, one in made.items()]
    st.html(without_html(words, len(probe.features), chosen, answers, said, names))


def pinned(pins: Sequence[int], tokens: Sequence[Token]) -> tuple[int, ...]:
    """The pins that can be removed; a link may name others."""
    return tuple(pin for pin in pins if pin < len(tokens) and not tokens[pin].special)


def claim(method: Explainer, made: Explanation, chosen: Sequence[int]) -> Claim:
    """What the map says of the chosen positions. Special tokens count for nothing."""
    sizes = np.abs(made.scores[made.features]).sum()
    mine = made.scores[list(chosen)]
    share = float(np.abs(mine).sum() / sizes) if sizes else None
    return Claim(method.title, float(mine.sum()), share, method.is_signed(made.provenance.params))


def without_html(
    words: QuestionWords,
    features: int,
    chosen: Sequence[int],
    answers: Sequence[AblatedPrediction],
    claims: Sequence[Claim],
    names: Sequence[str],
) -> str:
    """Heading, both tables and the caution. Everything that is not ours is escaped.

    `features`: how many can be removed. `names`: what the heading calls the chosen.
    """
    counted = f"{features:,} {words.unit if features == 1 else plural(words.unit)}"
    part = f"{len(chosen)} of {counted}, {percent(len(chosen) / features)} of them"
    return (
        f'<div class="xg"><h3 class="xg-heading">Without {names_html(names)}</h3>'
        f'<p class="xg-small">{part}.</p><div class="xg-beside">{_answers(answers, words)}{_claims(claims)}</div>'
        f'<p class="xg-small">{words.caution}</p></div>'
    )


def names_html(texts: Sequence[str], most: int = NAMED_CHARACTERS) -> str:
    """«one», «two» and 3 more: as many as fit, at least one, each isolated and escaped."""
    shown: list[str] = []
    for text in texts:
        if shown and sum(map(len, shown)) + len(text) > most:
            break
        shown.append(text if len(text) <= most else f"{text[: most - 1]}…")
    left = len(texts) - len(shown)
    named = ", ".join(f"«<bdi>{escape(text)}</bdi>»" for text in shown)
    return named + (f" and {left} more" if left else "")


def _answers(answers: Sequence[AblatedPrediction], words: QuestionWords) -> str:
    whole, target = answers[0].whole, answers[0].target
    name = f"<bdi>{escape(whole.labels[target])}</bdi>"
    value = f"score {name}" if whole.regression else f"probability of {name}"
    predicted = "" if whole.regression else "<th>predicted</th>"
    change = "change" if whole.regression else "change, percentage points"
    least = LEAST_SCALE * (abs(whole.probabilities[target]) if whole.regression else 1)
    largest = max(least, *(abs(answer.change) for answer in answers))
    rows = "".join(_answer(answer, largest, words) for answer in answers)
    return (
        f'<table class="xg-table"><thead><tr><th>a removed {words.unit} is</th><th class="xg-number">{value}</th>'
        f"<th>{change}</th>{predicted}</tr></thead><tbody>"
        f'<tr><th>not removed: the whole {words.kind}</th><td class="xg-number">{_value(whole, target)}</td><td></td>'
        f"{_class(whole, False)}</tr>{rows}</tbody></table>"
    )


def _answer(answer: AblatedPrediction, largest: float, words: QuestionWords) -> str:
    change = signed(answer.change) if answer.whole.regression else points(answer.change)
    return (
        f'<tr><th>{words.removals[answer.removal]}</th><td class="xg-number">{_value(answer.left, answer.target)}</td>'
        f'<td class="xg-change">{change_bar(answer.change, largest)}<span class="xg-number">{change}</span></td>'
        f"{_class(answer.left, answer.flipped)}</tr>"
    )


def change_bar(change: float, largest: float) -> str:
    """A bar from the middle: to the right in the colour of "for" when the value rises, else to the left."""
    share = 0.0 if largest == 0 else 50 * abs(change) / largest
    side, start = ("for", 50.0) if change > 0 else ("against", 50 - share)
    fill = f'<i class="xg-bar-{side}" style="inset-inline-start:{start:.1f}%;width:{share:.1f}%"></i>'
    return f'<span class="xg-change-bar" aria-hidden="true">{fill}</span>'


def _value(prediction: Prediction, target: int) -> str:
    share = prediction.probabilities[target]
    return signed(share) if prediction.regression else escape(percent(share))


def _class(prediction: Prediction, flipped: bool) -> str:
    if prediction.regression:
        return ""
    label = f"<bdi>{escape(prediction.label)}</bdi>"
    return f"<td><b>{label}, changed</b></td>" if flipped else f"<td>{label}</td>"


def _claims(claims: Sequence[Claim]) -> str:
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
