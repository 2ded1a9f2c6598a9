"""The bars of a prediction as HTML."""

from __future__ import annotations

from html import escape

from components.numbers import percent, signed
from engine.format import visible_token
from engine.result import OTHERS, Prediction

MOST_BARS = 8


def prediction_html(prediction: Prediction, target: int, like: Prediction | None = None, most: int = MOST_BARS) -> str:
    """HTML of the probabilities of the `most` likely classes and of the explained one, or of a regression's score.

    `like`: another prediction beside this one. Its most likely classes are shown, in its order.
    """
    if prediction.regression:
        name, score = escape(prediction.labels[0]), signed(prediction.logits[0])
        return f'<div class="xg"><p>Score <bdi>{name}</bdi>: <b>{score}</b></p></div>'
    shares = (like or prediction).probabilities
    order = sorted(range(len(shares)), key=lambda i: (prediction.labels[i] == OTHERS, -shares[i]))
    indexes = sorted({*order[:most], target, prediction.index}, key=order.index)
    bars = "".join(_bar(prediction, i, i == target) for i in indexes)
    left = len(order) - len(indexes)
    more = f"and {left:,} {'other' if like else 'less likely'} classes"
    if prediction.labels[-1] == OTHERS:
        more = f"and all other tokens: {escape(percent(1 - sum(prediction.probabilities[i] for i in indexes)))}"
    if prediction.of_two_tokens:
        more = "of these two tokens alone"
    more = f'<p class="xg-small">{more}</p>' if left or prediction.of_two_tokens else ""
    return f'<div class="xg"><div class="xg-prediction">{bars}</div>{more}</div>'


def _bar(prediction: Prediction, index: int, chosen: bool) -> str:
    share = prediction.probabilities[index]
    mark = " xg-chosen" if chosen else ""
    return (
        f'<bdi class="xg-label{mark}">{escape(visible_token(prediction.labels[index]))}</bdi>'
        f'<span class="xg-track"><span class="xg-fill" style="width:{100 * share:.2f}%"></span></span>'
        f'<span class="xg-number{mark}">{escape(percent(share))}</span>'
    )
