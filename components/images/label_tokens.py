"""Explanation of a label's prompt: which of its tokens make a zero-shot model find it similar to the picture."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

import streamlit as st

from components.compute import explain
from components.controls import PERSIST
from components.errors import describe_error, show_error
from components.export import command_line, file_button, input_arguments
from components.images.state import PictureState, key
from components.method_row import method_row, method_row_html
from components.numbers import plain
from components.prediction import target_index
from engine.errors import UsageError
from engine.models.label_prompts import PICTURE_LABELS, base_name, format_labels, label_prompt, split_prompts
from engine.params import Plain
from engine.registry import Explainer, all_explainers
from engine.request import PicturePrompt, Request
from engine.result import Explanation, explanation_to_json

METHODS: Mapping[str, Mapping[str, Plain]] = {
    "occlusion": {"removal": "delete"},
    "kernel_shap": {"removal": "delete"},
    "attn_lrp": {},
    "gradient_x_input": {},
    "attention_rollout": {},
}
"""Methods for a prompt, with parameters that differ from their defaults: a removed token is deleted from the prompt."""
TITLE = "Words of the label"
HELP = "The picture stays the same, and the label's prompt is explained."
MEANING = (
    "Scores are in units of the similarity (the logit of the label). Positive: the token makes the prompt more similar "
    "to the picture."
)


def draw_label_tokens(state: PictureState, probe: Explanation) -> None:
    """Draw the toggle and, once it is on, a map of the explained label's prompt; nothing for models without prompts."""
    if state.picture is None or split_prompts(state.model)[1] is None:
        return
    st.subheader(TITLE, anchor=False)
    if not st.toggle(
        "Tokens of the prompt that match the picture", key=key("open.label"), persist_state=PERSIST, help=HELP
    ):
        return
    target = target_index(probe.prediction, state.target)
    if target is None:
        return
    methods = all_explainers("text")
    chosen = st.selectbox(
        "Method for the prompt", list(METHODS), key=key("label_method"), width=260, persist_state=PERSIST,
        format_func=lambda id: methods[id].title,
    )  # fmt: skip
    request = label_request(state, target, str(chosen))
    try:
        explanation = explain(request)
    except Exception as error:
        show_error(describe_error(error))
        return
    label, score = probe.prediction.labels[target], plain(explanation.prediction.logits[0])
    st.html(prompt_html(methods[request.method], explanation, cast(PicturePrompt, request.example)))
    st.caption(f"The similarity of this prompt with the picture is {score}. {MEANING}")
    with st.popover("Export prompt"):
        file_button(
            "JSON", "prompt.json", "application/json",
            lambda: json.dumps(explanation_to_json(explanation), indent=1), "Tokens and scores.", key("label_json"),
        )  # fmt: skip
        st.code(command_line(label_arguments(state, label, request)), language="bash", wrap_lines=True)


def label_request(state: PictureState, target: int, method: str) -> Request:
    """Return the request for the prompt of the class with index `target`. Errors: no picture can be read."""
    if state.picture is None:
        raise UsageError(f"picture: {state.focus.error}")
    prompt = PicturePrompt(label_prompt(state.model, target), picture=state.picture)
    return Request(state.model, method, prompt, dict(METHODS[method]), None, state.seed)


def prompt_html(method: Explainer, explanation: Explanation, example: PicturePrompt) -> str:
    """HTML of the prompt with its scores as colors. Padding, which has no score of its own, is left out."""
    end = int(explanation.features[-1]) + 2  # with the token that ends the prompt
    shown = replace(explanation, tokens=explanation.tokens[:end], scores=explanation.scores[:end])
    return method_row_html(method_row(method, shown, example, "token"))


def label_arguments(state: PictureState, label: str, request: Request) -> list[str]:
    """Return the arguments of the command that reproduces the scores."""
    prompts = split_prompts(state.model)[1]
    assert prompts is not None
    params = [part for name, value in request.params.items() for part in ("--param", f"{name}={value}")]
    seed = ["--seed", str(state.seed)] if state.seed else []
    return [
        "explain", "--model", base_name(state.model), "--labels", format_labels(prompts.labels),
        "--template", prompts.template or PICTURE_LABELS.template, *input_arguments(state.focus),
        "--side", "prompt", "--target", label, "--method", request.method, *params, *seed,
    ]  # fmt: skip
