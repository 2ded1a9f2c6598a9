"""Counterfactuals on the Text page: the fewest changes of words that flip the prediction, on request."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from typing import TYPE_CHECKING

import streamlit as st

from components.compute import run_cached
from components.controls import PERSIST
from components.errors import escape_label
from components.export import command_line, file_button, how_to_repeat, input_button, text_arguments
from components.numbers import count, percent, plain, signed
from components.progress import run_with_progress
from components.styles import use_sheet
from components.text.results import set_edit
from components.text.state import LARGEST_SCORE, TextState, key, put
from engine.format import join_names, visible_token
from engine.lazy import LazyModule
from engine.progress import CancelToken, cancellable
from engine.request import Prompt
from engine.result import OTHERS, Explanation, Prediction, Token

if TYPE_CHECKING:
    from engine.counterfactuals import search as counterfactual_search
    from engine.counterfactuals import texts as counterfactuals
    from engine.counterfactuals.search import Changes, SearchOptions
    from engine.counterfactuals.texts import Counterfactual, CounterfactualResult
else:  # they load torch, which most visits do not need
    counterfactuals = LazyModule("engine.counterfactuals.texts")
    counterfactual_search = LazyModule("engine.counterfactuals.search")

SHORT = 64
"""Maximum number of tokens for a search as wide as that of the command."""
CONTEXT = 120
"""Characters shown around a change in a long text."""
DELETED = "(deleted)"
ADVICE = (
    "Choose another {goal}, or search further with the command under Export: more changes (--most-changes), candidates "
    "(--candidates) or words (--words), or another --masked-model."
)
CAUTION = (
    "A flip shows what the model is sensitive to. The changed text may be unusual, or may deserve its new class. "
    "Wachter et al. (2018), Counterfactual explanations without opening the black box; search as in MiCE (Ross et al., "
    "2021), word by word."
)


def draw_counterfactuals(state: TextState, probe: Explanation) -> None:
    """Draw the switch and, if it is on, the counterfactuals and a description of the search."""
    st.subheader("Flip the prediction", anchor=False)
    if not st.toggle(
        "Counterfactuals: the fewest changed words", key=key("open.counterfactuals"), persist_state=PERSIST,
        help="Replaces and deletes words until the prediction flips. Runs the model some hundred times on request.",
    ):  # fmt: skip
        return
    _draw_goal(state, probe.prediction)
    if probe.prediction.regression and state.threshold is None:
        st.info(f"The score is {signed(probe.prediction.logits[0])}. Enter a threshold that it has to cross.")
        return
    threshold = state.threshold if probe.prediction.regression else None
    target = None if probe.prediction.regression else state.flip_to
    options = search_options(len(probe.tokens))
    arguments = (state.model, state.example, target, threshold, options)

    def compute(token: CancelToken) -> CounterfactualResult:
        with cancellable(token):
            return counterfactuals.counterfactuals(*arguments)

    def result_key() -> str:
        return counterfactuals.counterfactuals_key(*arguments)

    result = run_with_progress(
        st.empty(), result_key, "Searching", "Stopped before the search ended.",
        lambda tick: run_cached(result_key(), compute, tick),
    )  # fmt: skip
    if result is not None:
        _draw_result(state, probe.tokens, result)


def _draw_goal(state: TextState, prediction: Prediction) -> None:
    """Draw the choice of the target class if there are several, or of the threshold of a score."""
    if prediction.regression:
        st.number_input(
            "Threshold", key=key("threshold"), value=None, width=220, persist_state=PERSIST, format="%.3f",
            min_value=-LARGEST_SCORE, max_value=LARGEST_SCORE, placeholder="Score to cross",
        )  # fmt: skip
        return
    others = [label for at, label in enumerate(prediction.labels) if at != prediction.index and label != OTHERS]
    if len(others) > 1 or state.flip_to is not None:
        options = list(dict.fromkeys(["", *others, state.flip_to or ""]))
        st.selectbox(
            "To the class", options, key=key("flip_to"), width=220, persist_state=PERSIST,
            format_func=lambda label: visible_token(label) or "Any other",
        )  # fmt: skip


def _draw_result(state: TextState, tokens: Sequence[Token], result: CounterfactualResult) -> None:
    use_sheet("questions")
    st.html(summary_html(result))
    for at, one in enumerate(result.results or filter(None, [result.closest])):
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key=key(f"flip_row.{at}")):
            st.html(counterfactual_html(result, one))
            changed = ", ".join(change.word.text for change in one.changes)
            st.button(
                "Edit this", key=key(f"flip_edit.{at}"), on_click=set_edit, args=(one.example,), width="content",
                help=f"Compare the maps before and after this edit: {escape_label(changed)}.",
            )  # fmt: skip
            st.button(
                "Pin", key=key(f"flip_pin.{at}"), on_click=put, args=("pins", changed_tokens(tokens, one.changes)),
                width="content", help=f"Pin in every map: {escape_label(changed)}.",
            )  # fmt: skip
    st.html(search_html(result))
    with st.popover("Export counterfactuals"):
        file_button(
            "CSV", "counterfactuals.csv", "text/csv", result.as_csv, "A row for each change.",
            key("flips_csv"),
        )  # fmt: skip
        file_button(
            "JSON", "counterfactuals.json", "application/json", lambda: json.dumps(result.as_json(), indent=1),
            "Texts, changes, predictions and what was searched.", key("flips_json"),
        )  # fmt: skip
        input_button(state.focus, key("flips_text"))
        st.caption(how_to_repeat(state.focus))
        st.code(command(state, result), language="bash", wrap_lines=True)


def search_options(length: int) -> SearchOptions:
    """Return the default search, or a smaller one for a text of many tokens, which would take minutes."""
    usual = counterfactual_search.SearchOptions()
    return usual if length <= SHORT else dataclasses.replace(usual, words=10, candidates=3, beam=3, branches=12)


def changed_tokens(tokens: Sequence[Token], changes: Changes) -> list[int]:
    """Return the positions of the tokens in the changed words."""
    return [
        position
        for position, token in enumerate(tokens)
        if any(counterfactual_search.overlaps(token, change.word) for change in changes)
    ]


def command(state: TextState, result: CounterfactualResult) -> str:
    """The command that finds the same counterfactuals."""
    goal = [] if result.threshold is None else ["--threshold", repr(result.threshold)]
    goal += [] if result.target is None else ["--target", state.flip_to or str(result.target)]
    usual, options = asdict(counterfactual_search.SearchOptions()), asdict(result.options)
    for name in (name for name in usual if options[name] != usual[name]):
        goal += [f"--{name.replace('_', '-')}", str(options[name])]
    example = state.example
    if isinstance(example, Prompt) and example.contrast is None:  # its target is the class to reach
        example = dataclasses.replace(example, target=None)
    arguments = ["counterfactuals", "--model", state.model, *text_arguments(example), *goal]
    return command_line(arguments, example)


def summary_html(result: CounterfactualResult) -> str:
    """HTML sentence on the smallest flip, or on how close the search came."""
    score = result.original.regression
    flips = "crosses the threshold" if score else "flips the prediction"
    if result.target is not None:
        flips += f" to <bdi>{escape(visible_token(result.original.labels[result.target]))}</bdi>"
    advice = ADVICE.format(goal="threshold" if score else "class")
    if result.results:
        one = result.results[0]
        changed = count(len(one.changes), "word")
        sentence = f"Changing {changed} {flips}: {_changes_html(one.changes)} ({_moved_html(result, one)})."
        if len(one.changes) > 1 and result.is_smallest:
            sentence += " No smaller set of the candidates does."
    elif result.closest is not None:
        near = f"{_changes_html(result.closest.changes)} ({_moved_html(result, result.closest)})"
        sentence = f"Nothing that was tried {flips}. The closest: {near}. {advice}"
    else:
        sentence = f"There was nothing to try. {advice}"
    return f'<div class="xg"><p class="xg-summary">{sentence}</p></div>'


def counterfactual_html(result: CounterfactualResult, one: Counterfactual) -> str:
    """HTML of the text with its changes marked, and its prediction; a pair has both texts. All text is escaped."""
    texts = (result.example.text, result.example.text_pair)
    marked = "".join(
        f'<p class="xg-flip" dir="auto">{_marked_html(text, segment, one.changes)}</p>'
        for segment, text in enumerate(texts)
        if text is not None
    )
    value = _value_html(one.prediction, _indexes(result, one)[1])
    return f'<div class="xg">{marked}<p class="xg-small"><b>{value}</b>{_facts_html(one)}</p></div>'


def _marked_html(text: str, segment: int, changes: Changes) -> str:
    """HTML of a text with its deletions and insertions; a long text is cut to the surroundings of its changes."""
    own = [change for change in changes if change.word.segment == segment]
    place, parts = 0, list[str]()
    for change in own:
        parts += [_between_html(text, place, change.word.start, bool(place)), f"<del>{escape(change.word.text)}</del>"]
        parts += [f" <ins>{escape(change.replacement)}</ins>"] if change.replacement else []
        place = change.word.end
    return "".join([*parts, _between_html(text, place, len(text), bool(own), last=True)])


def _between_html(text: str, start: int, end: int, after: bool, last: bool = False) -> str:
    """HTML of the text between two changes, without the middle of a long one.

    `after`: whether it follows a change. `last`: whether it ends the text.
    """
    head = CONTEXT if after else 0
    tail = 0 if last and after else CONTEXT
    if end - start <= head + tail + CONTEXT:
        return escape(text[start:end])
    return f"{escape(text[start : start + head])} … {escape(text[end - tail : end] if tail else '')}"


def _changes_html(changes: Changes) -> str:
    return join_names([
        f"“<bdi>{escape(change.word.text)}</bdi>” → " + (
            f"“<bdi>{escape(change.replacement)}</bdi>”" if change.replacement else DELETED
        )
        for change in changes
    ])  # fmt: skip


def _value_html(prediction: Prediction, index: int) -> str:
    if prediction.regression:
        return f"score {signed(prediction.logits[0])}"
    label = visible_token(prediction.labels[index])
    return f"<bdi>{escape(label)}</bdi> {escape(percent(prediction.probabilities[index]))}"


def _moved_html(result: CounterfactualResult, one: Counterfactual) -> str:
    before, after = _indexes(result, one)
    return f"{_value_html(result.original, before)} → {_value_html(one.prediction, after)}"


def _indexes(result: CounterfactualResult, one: Counterfactual) -> tuple[int, int]:
    """Return the classes to show before and after.

    If nothing flips, both are the target class or, without a target, the predicted one.
    """
    if result.results:
        return result.original.index, one.prediction.index
    shown = result.original.index if result.target is None else result.target
    return shown, shown


def _facts_html(one: Counterfactual) -> str:
    """HTML of the replacements' log-probabilities, and of how many other replacements of these words also flip."""
    facts = list[str]()
    logs = [change.log_probability for change in one.changes if change.log_probability is not None]
    if logs:
        facts.append(f"log-probability by the masked model {', '.join(map(plain, logs))}")
    if one.alternatives:
        here = "this word" if len(one.changes) == 1 else "these words"
        facts.append(
            f"{count(one.alternatives, 'other replacement')} of {here} also flip{'s' * (one.alternatives == 1)} it"
        )
    return "".join(f" · {fact}" for fact in facts)


def search_html(result: CounterfactualResult) -> str:
    """HTML of what was searched, its cost, and how to read it."""
    verified = "Each text was run again after the search. " if result.results else ""
    if any(one.subsets for one in result.results):
        verified += "No smaller part of its changes flips the prediction; every part was tried. "
    cost = (
        f"{count(result.evaluations, 'evaluation')} of the model and {result.masked_evaluations:,} of the masked model."
    )
    statements = " ".join(map(escape, result.statements))
    return (
        f'<div class="xg"><p class="xg-small">{statements} {verified}{cost}</p><p class="xg-small">{CAUTION}</p></div>'
    )
