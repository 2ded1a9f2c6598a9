"""The prediction of what a page looks at as bars, beside the choice of the class that is explained."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.awaiting import awaited
from components.engine_room import explain, key_of
from components.kept import KEPT
from components.prediction import MOST_BARS, prediction_html
from components.trouble import say_error, say_note
from engine.errors import unknown
from engine.request import Request
from engine.result import Explanation, Prediction

PROBE = "random"
"""Costs no model evaluation, and its explanation carries the prediction."""
PREDICTED = ""


def prediction_area(
    request: Request,
    target: str | None,
    key: str,
    kind: str,
    most: int = MOST_BARS,
    stacked: bool = False,
    beside: Callable[[], None] | None = None,
) -> Explanation | None:
    """Draws the prediction; None after saying why there is none. `request` asks for `PROBE`, of the predicted class.

    `target`: the class to explain, by its label or number. `key`: of the control that chooses it. `kind`: what is
    looked at, in a word. `most`: classes that have a bar. `stacked`: the choice of the class below the bars. `beside`
    draws what stands below that choice.
    """
    probe = _probe(request, kind)
    return probe if probe is not None and _draw_prediction(probe, target, key, most, stacked, beside) else None


def _probe(request: Request, kind: str) -> Explanation | None:
    """What carries the prediction; None after saying why there is none."""
    stopped = f"Stopped before the {kind} was read."
    return awaited(
        st.empty(), lambda: key_of(request), f"Reading the {kind}", stopped, lambda tick: explain(request, tick)
    )


def _draw_prediction(
    probe: Explanation, asked: str | None, key: str, most: int, stacked: bool, beside: Callable[[], None] | None
) -> bool:
    """Whether the class to explain is one of the model's."""
    prediction, target = probe.prediction, target_index(probe.prediction, asked)
    bars, choice = _stacked() if stacked else st.columns([2, 1], gap="medium", vertical_alignment="center")
    with choice:
        class_control(prediction, asked, key)
        if beside is not None:
            beside()
    bars.html(prediction_html(prediction, prediction.index if target is None else target, most=most))
    for note in probe.notes:
        say_note(note)
    if target is None:
        say_error(str(unknown("target", asked, prediction.labels)))
    return target is not None


def _stacked() -> list[DeltaGenerator]:
    return [st.container(), st.container()]


def target_index(prediction: Prediction, asked: str | None) -> int | None:
    """The class to explain, by its label or its number; None when the model has no such class."""
    if asked is None or prediction.regression:
        return prediction.index
    if asked in prediction.labels:
        return prediction.labels.index(asked)
    numbers = [str(index) for index in range(len(prediction.labels))]
    return numbers.index(asked) if asked in numbers else None


def class_control(prediction: Prediction, target: str | None, key: str) -> None:
    """Which class is explained. A regression head has only its score."""
    if prediction.regression:
        return
    options = [PREDICTED, *prediction.labels]
    if (target or PREDICTED) not in options:
        options.append(str(target))
    st.selectbox(
        "Explained class",
        options,
        key=key,
        persist_state=KEPT,
        # The browser answers with these words, so they must not change with the example.
        format_func=lambda label: label or "As predicted",
        help="Signed maps speak for or against this class. Attention is the same for every class.",
    )
