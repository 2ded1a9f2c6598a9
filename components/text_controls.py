"""The Text page's controls: the model, the text, the methods with their parameters, how it is shown."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from components.look import LEAST_GAMMA, MOST_GAMMA, SCALES, STYLES
from components.parameters import parameters
from components.text_session import key, put, value
from engine.data.datasets import Dataset
from engine.registry import Explainer
from engine.request import Example
from engine.result import Prediction
from engine.words import UNITS

LABEL_CHARACTERS = 110
PREDICTED = ""
MOST_SEED = 2**31 - 1


def text_controls(models: list[str], data: Dataset) -> None:
    """Which model reads which text: picked from the data set, then edited at will, or typed."""
    left, right = st.columns([1, 2], gap="medium")
    left.selectbox(
        "Model",
        list(dict.fromkeys([*models, *filter(None, [value("model")])])),
        key=key("model"),
        accept_new_options=True,
        placeholder="Pick one, or type a folder or hub id",
        help="An embedded model, the folder of a saved checkpoint, or a hub id such as owner/name.",
        on_change=_forget_target,
    )
    right.selectbox(
        f"Example from {data.title}" if data.title else "Example",
        range(len(data)),
        key=key("pick"),
        format_func=lambda index: _example_label(data, index),
        placeholder="Your own text; pick a review to replace it",
        on_change=_take_example,
        args=(data,),
    )
    st.text_area("Text", key=key("text"), height=90, placeholder="Type a text, or pick a review above.")
    if st.toggle("Second text, for models that read pairs", key=key("has_pair")):
        st.text_area("Second text", key=key("pair"), height=68)


def method_controls(methods: Mapping[str, Explainer]) -> None:
    """Which methods, with which parameters, drawn as tokens or words."""
    chosen = st.multiselect(
        "Methods",
        list(methods),
        key=key("methods"),
        format_func=lambda id: methods[id].title,
        placeholder="Pick at least one",
        help="random is the baseline that knows nothing: a map that looks no better says nothing.",
    )
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key=key("options")):
        st.segmented_control("Unit", UNITS, key=key("unit"), required=True, format_func=lambda kind: f"{kind.title()}s")
        st.number_input(
            "Seed", 0, MOST_SEED, key=key("seed"), step=1, width=120, help="For the methods that draw at random."
        )
        with st.popover("View", key=key("view")):
            _look_controls()
        with st.popover("Parameters", key=key("popover")):
            parameters([methods[id] for id in chosen])


def _look_controls() -> None:
    st.slider(
        "Gamma",
        LEAST_GAMMA,
        MOST_GAMMA,
        key=key("gamma"),
        step=0.1,
        help="The colour is this power of the score's share of the scale: 1 is linear, less reveals weak tokens.",
    )
    st.segmented_control(
        "Scale",
        SCALES,
        key=key("scale"),
        required=True,
        format_func=str.capitalize,
        help="Shared: one scale for the maps that have the same unit. Logits, probabilities, sensitivities and "
        "attention are different units, so they never share one; ensembles and random always keep their own.",
    )
    st.segmented_control("Style", STYLES, key=key("style"), required=True, format_func=str.capitalize)
    st.toggle(
        "Values under the tokens", key=key("values"), help="Units then stand apart: joined letters are not joined."
    )


def class_control(prediction: Prediction, target: str | None) -> None:
    """Which class is explained. A regression head has only its score."""
    if prediction.regression:
        return
    options = [PREDICTED, *prediction.labels]
    if (target or PREDICTED) not in options:
        options.append(str(target))
    st.selectbox(
        "Explained class",
        options,
        key=key("target"),
        format_func=lambda label: f"Predicted: {prediction.label}" if label == PREDICTED else label,
        help="Signed maps speak for or against this class. Attention is the same for every class.",
    )


def _example_label(data: Dataset, index: int) -> str:
    example = data[index]
    known = isinstance(example.label, int) and example.label < len(data.label_names)
    label = f"{data.label_names[int(example.label or 0)]} · " if known else ""
    return f"{index} · {label}{example.text}"[:LABEL_CHARACTERS]


def _take_example(data: Dataset) -> None:
    index = value("pick")
    if not isinstance(index, int):
        return
    example: Example = data[index].example
    put("text", example.text)
    put("has_pair", example.text_pair is not None)
    put("pair", example.text_pair or "")


def _forget_target() -> None:
    put("target", PREDICTED)
