"""The prediction of a model: a bar for each class, and the choice of the explained class."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.compute import Tick, explain, run_cached
from components.controls import PERSIST
from components.errors import show_error, show_note
from components.inputs.next_token import distribution_html, draw_token_pickers, name_controls, next_token_html
from components.links import Query
from components.navigation import ATTENTION
from components.prediction_bars import MOST_BARS as MOST_BARS
from components.prediction_bars import prediction_html as prediction_html
from components.progress import run_with_progress
from engine.errors import UsageError, unknown
from engine.explain import key_of
from engine.next_token import NextTokens, next_tokens, next_tokens_key
from engine.request import Prompt, Request
from engine.result import Explanation, Prediction

PROBE = "random"
"""The method from which the prediction is taken, because it needs no model evaluation of its own."""
PREDICTED = ""
HEADS_LINK = "See the heads"


def prediction_area(
    request: Request,
    target: str | None,
    key: str,
    kind: str,
    most: int = MOST_BARS,
    control_place: DeltaGenerator | None = None,
) -> Explanation | None:
    """Draw the prediction and return its explanation, or draw an error and return None.

    `request`: request of `PROBE` for the predicted class. `target`: the class to explain, by label or index. `key`:
    widget key of its control. `kind`: noun for the input. `most`: number of bars. `control_place`: container of the
    control, which is not drawn without it. A prompt has the distribution of its next token, and its own controls.
    """
    if isinstance(request.example, Prompt):
        return _prompt_area(request, request.example)
    probe = _probe(request, kind)
    return probe if probe is not None and _draw_prediction(probe, target, key, most, control_place) else None


def _prompt_area(request: Request, prompt: Prompt) -> Explanation | None:
    """Draw the next token's distribution and its controls; return the explanation of the prompt's target."""
    likely = _next_tokens(request, replace(prompt, target=None, contrast=None))
    if likely is None:
        return None
    answer = st.empty()
    draw_token_pickers(likely.labels)
    named = _next_tokens(request, prompt) if prompt.target or prompt.contrast else likely
    probe = None if named is None else _probe(request, "prompt")
    shown = likely if named is None else named
    answer.html(next_token_html(shown, shown is not likely))
    st.html(distribution_html(shown))
    for note in () if probe is None else probe.notes:
        show_note(note)
    return probe


def _next_tokens(request: Request, prompt: Prompt) -> NextTokens | None:
    """Return the distribution of the next token, or draw an error and return None."""

    def key() -> str:
        return next_tokens_key(request.model, prompt, request.heads)

    def compute(tick: Tick) -> NextTokens:
        try:
            return run_cached(key(), lambda cancel: next_tokens(request.model, prompt, request.heads), tick)
        except UsageError as error:
            raise name_controls(error) from error

    return run_with_progress(st.empty(), key, "Reading the prompt", "Stopped before the prompt was read.", compute)


def target_index(prediction: Prediction, chosen: str | None) -> int | None:
    """Return the index of a class by its label or index, or None if the model has no such class."""
    if chosen is None or prediction.regression:
        return prediction.index
    if chosen in prediction.labels:
        return prediction.labels.index(chosen)
    numbers = [str(index) for index in range(len(prediction.labels))]
    return numbers.index(chosen) if chosen in numbers else None


def class_control(prediction: Prediction, target: str | None, key: str) -> None:
    """Draw the choice of the explained class. A regression head has none, only its score."""
    if prediction.regression:
        return
    options = [PREDICTED, *prediction.labels]
    if (target or PREDICTED) not in options:
        options.append(str(target))
    st.selectbox(
        "Explained class",
        options,
        key=key,
        persist_state=PERSIST,
        # The browser sends these labels back, so they must not change with the example.
        format_func=lambda label: label or "As predicted",
        help="Signed maps speak for or against this class. Attention is the same for every class.",
    )


def _probe(request: Request, kind: str) -> Explanation | None:
    """Return the explanation with the prediction, or draw an error and return None."""
    stopped = f"Stopped before the {kind} was read."
    return run_with_progress(
        st.empty(), lambda: key_of(request), f"Reading the {kind}", stopped, lambda tick: explain(request, tick)
    )


def _draw_prediction(
    probe: Explanation, chosen: str | None, key: str, most: int, control_place: DeltaGenerator | None
) -> bool:
    """Draw the bars and the control. Return whether the model has the class to explain."""
    prediction, target = probe.prediction, target_index(probe.prediction, chosen)
    if control_place is not None:
        with control_place:
            class_control(prediction, chosen, key)
    st.html(prediction_html(prediction, prediction.index if target is None else target, most=most))
    for note in probe.notes:
        show_note(note)
    if target is None:
        show_error(str(unknown("target", chosen, prediction.labels)))
    return target is not None


def heads_link(kind: str, focus: Query, target: str | None, key: str) -> None:
    """Draw a button that opens the Attention page. `kind`: text or image. `focus`: the model and input as in a link."""
    if st.button(HEADS_LINK, key=key, type="tertiary", icon=":material/arrow_forward:", help=ATTENTION.question):
        query = {"input": [kind]} | focus | ({"target": [target]} if target else {})
        st.switch_page(ATTENTION.path, query_params=query)
