"""The model's answer: a bar a class, the explained one in the colour of "for"."""

from __future__ import annotations

from html import escape

from components.numbers import percent, signed
from engine.result import Prediction

MOST_BARS = 8


def prediction_html(prediction: Prediction, target: int, like: Prediction | None = None, most: int = MOST_BARS) -> str:
    """Probabilities of the `most` likely classes and of the explained one; for a regression head the score.

    The classes of `like`, in its order, stand side by side with it.
    """
    if prediction.regression:
        name, score = escape(prediction.labels[0]), signed(prediction.logits[0])
        return f'<div class="xg"><p>Score <bdi>{name}</bdi>: <b>{score}</b></p></div>'
    order = sorted(range(len(prediction.labels)), key=lambda i: -(like or prediction).probabilities[i])
    shown = sorted({*order[:most], target, prediction.index}, key=order.index)
    bars = "".join(_bar(prediction, i, i == target) for i in shown)
    left = len(order) - len(shown)
    more = f'<p class="xg-small">and {left:,} {"other" if like else "less likely"} classes</p>' if left else ""
    return f'<div class="xg"><div class="xg-prediction">{bars}</div>{more}</div>'


def _bar(prediction: Prediction, index: int, chosen: bool) -> str:
    share = prediction.probabilities[index]
    mark = " xg-chosen" if chosen else ""
    return (
        f'<bdi class="xg-label{mark}">{escape(prediction.labels[index])}</bdi>'
        f'<span class="xg-track"><span class="xg-fill" style="width:{100 * share:.2f}%"></span></span>'
        f'<span class="xg-number{mark}">{escape(percent(share))}</span>'
    )
