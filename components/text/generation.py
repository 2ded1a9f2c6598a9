"""The text that a language model generates after a prompt: what each token depends on, and context use."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.compute import Tick, run_cached
from components.controls import PERSIST
from components.errors import escape_label, show_note
from components.export import command_line, file_button, how_to_repeat, input_button, text_arguments
from components.inputs.text_choice import SELECTION, TOKENS
from components.method_row import MethodRow, cost_line, grid_html, line_html, method_row, method_row_html
from components.numbers import count, fixed, percent
from components.progress import run_with_progress
from components.tables import draw_table
from components.text.state import TextState, key, put, value
from components.widgets.token_map import legend_html
from components.widgets.view_options import ViewOptions
from engine.data.tasks import NEXT_TOKEN, task_of_dataset
from engine.errors import ExegesisError
from engine.format import visible_token
from engine.lazy import LazyModule, pandas
from engine.next_token import MOST_GENERATED, token_count
from engine.progress import CancelToken, cancellable
from engine.registry import Explainer
from engine.request import Prompt
from engine.table_io import to_csv

if TYPE_CHECKING:
    import pandas as pd

    from engine import generation
    from engine.generation import GeneratedText, GenerationQuery
else:  # it loads torch, which most visits do not need
    generation = LazyModule("engine.generation")

LISTED = 5
"""Number of links that the sentence names."""
DECODINGS = {"greedy": "Most probable token", "sample": "Sampled", "given": "Your text"}
DECODING_HELP = (
    "At each step: the most probable token, or one sampled from the model’s distribution with the page’s seed. Or the "
    "tokens of a text that you type."
)
CONTINUATION_HELP = "A space is put between the prompt and a first word."
MOST_CHARACTERS = 500
"""Maximum characters of a text that the user types."""
TABLE_LABEL = "Scores of all tokens for each generated token"
SHARING = "generated tokens"
CAUTION = (
    "A generated text can be wrong. A score says what a token depends on, not whether it is true. Deleting a sentence "
    "can also make the rest unusual, which lowers the probability too (context use: Sarti et al., 2024, Quantifying "
    "the plausibility of context reliance in neural machine translation)."
)


def draw_generation(state: TextState, methods: Mapping[str, Explainer]) -> None:
    """Draw the switch and, if it is on, the generated text; nothing for a classifier."""
    if not state.focus.causal:
        return
    st.subheader("Generate", anchor=False)
    if not st.toggle(
        "Continue the prompt and explain every token", key=key("open.generation"), persist_state=PERSIST,
        help="Generates a text on request, explains each token, and deletes each sentence of the prompt.",
    ):  # fmt: skip
        return
    _draw_controls(methods)
    if state.generation.decoding == "given" and not state.generation.text:
        show_note("Type the text that follows the prompt, to see what each of its tokens depends on.")
        return
    generated = run_with_progress(
        st.empty(), lambda: query_of(state).key, "Generating", "Stopped before every token was explained.",
        partial(_generate, state),
    )  # fmt: skip
    if generated is None:
        return
    rows = step_rows(generated, methods[state.generation.method], state.view.gamma)
    st.html(generated_html(generated, state))
    st.html(matrix_html(rows, "Your text" if generated.is_given else "Generated"))
    step = _draw_step(generated, state.generation.step)
    st.html(method_row_html(replace(rows[step - 1], cost=cost_line(generated.explanations[step - 1]))))
    _draw_sentences(generated)
    st.caption(CAUTION)
    _draw_export(generated, state)


def _draw_controls(methods: Mapping[str, Explainer]) -> None:
    chosen = str(value("generation.method"))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if value("generation.decoding") == "given":
            st.text_input(
                "Text after the prompt", key=key("generation.text"), width=260, max_chars=MOST_CHARACTERS,
                persist_state=PERSIST, help=CONTINUATION_HELP,
            )  # fmt: skip
        else:
            st.number_input(
                "Tokens", 1, MOST_GENERATED, key=key("generation.tokens"), step=1, width=120, persist_state=PERSIST,
                help="The largest number of generated tokens. The model may end the text before.",
            )  # fmt: skip
        st.segmented_control(
            "Next token", list(DECODINGS), key=key("generation.decoding"), required=True, persist_state=PERSIST,
            format_func=DECODINGS.__getitem__, help=DECODING_HELP,
        )  # fmt: skip
        st.selectbox(
            "Explained by", list(dict.fromkeys([*methods, chosen])), key=key("generation.method"), width=260,
            format_func=lambda name: methods[name].title if name in methods else name, persist_state=PERSIST,
        )  # fmt: skip


def query_of(state: TextState) -> GenerationQuery:
    """Return the engine's query. Errors: those of the query."""
    view = state.generation
    seed = state.seed if view.decoding == "sample" else None
    return generation.GenerationQuery(
        state.model, state.example.text, view.tokens, seed, method=view.method, chat=state.focus.chat,
        continuation=continuation_of(state) if view.decoding == "given" else None,
    )  # fmt: skip


def continuation_of(state: TextState) -> str:
    """Return the user's text, with a leading space if it starts with a word and the prompt does not end in a space."""
    text, prompt = state.generation.text, state.example.text
    apart = state.focus.chat or prompt[-1:].isspace() or not text[:1].isalnum()
    return text if apart else f" {text}"


def offer_continuation(state: TextState) -> None:
    """Draw a button that explains all tokens of a text that was typed as the token to explain."""
    token = state.focus.target
    if not state.focus.causal or token is None or not state.example.text.strip():
        return
    try:
        if token_count(state.model, token) < 2:
            return
    except ExegesisError:
        return  # the page already says what is wrong with the model
    text = token.strip()
    st.button(
        f"Explain “{escape_label(text)}” as a continuation", key=key("continuation"), on_click=_explain_continuation,
        args=(text,), help="Each of its tokens is explained, in the order of the text.",
    )  # fmt: skip


def _explain_continuation(text: str) -> None:
    """Explain the most probable token above, and the tokens of the text below."""
    for name in TOKENS:
        SELECTION.put(name, "")
    put("generation.text", text)
    put("generation.decoding", "given")
    put("open.generation", True)


def _generate(state: TextState, tick: Tick) -> GeneratedText:
    query = query_of(state)

    def compute(token: CancelToken) -> GeneratedText:
        with cancellable(token):
            return generation.generate_text(query)

    return run_cached(query.key, compute, tick)


def generated_html(generated: GeneratedText, state: TextState) -> str:
    """HTML of the generated text, labeled as such, its probability, the deciding sentence and the strongest links."""
    decoding = f"sampled with seed {state.seed}" if state.generation.decoding == "sample" else "greedy"
    kind = "Your text" if generated.is_given else f"Generated ({decoding})"
    shown = f"“<bdi>{escape(visible_token(generated.text))}</bdi>”"
    links = "; ".join(_link_html(generated, *link) for link in generated.links(LISTED))
    return (
        f'<div class="xg"><p class="xg-summary">{kind}: {shown}.{_end_html(generated, state)} '
        f'{_deciding_html(generated)}</p><p class="xg-small">Strongest links: {links}.</p></div>'
    )


def _end_html(generated: GeneratedText, state: TextState) -> str:
    """HTML that says why the text ends early and how to get a longer one; empty if it does not."""
    if not generated.ended:
        return ""
    sentence = f" The model ended the text after {count(len(generated.labels), 'token')}: its end token came next."
    if state.focus.index is not None and task_of_dataset(state.focus.data) == NEXT_TOKEN:
        name = escape(state.focus.data)
        sentence += f" Prompts of {name} ask for one token. Type the start of a sentence to get a longer text."
    return sentence


def _deciding_html(generated: GeneratedText) -> str:
    whole = f"Its probability is {share(generated.probability)}."
    deciding = generated.deciding
    if deciding is None:
        return f"{whole} The prompt is one sentence, so none can be deleted."
    if deciding.log_probability >= generated.log_probability:
        return f"{whole} It falls with no deleted sentence."
    return (
        f"{whole} It depends most on “<bdi>{escape(deciding.text)}</bdi>”: without that sentence, it is "
        f"{share(deciding.probability)}."
    )


def share(probability: float) -> str:
    """Format a probability as a percentage; the small one of a long text has three digits and an exponent."""
    return percent(probability) if probability >= 0.001 else f"{probability:.2e}"


def _link_html(generated: GeneratedText, step: int, place: int, score: float) -> str:
    names = (visible_token(generated.labels[step]), visible_token(generated.names[place]))
    token, source = (f"“<bdi>{escape(name)}</bdi>”" for name in names)
    return f"{token} (token {step + 1}) on {source} (index {place}) {fixed(score, 3, sign=True)}"


def step_rows(generated: GeneratedText, method: Explainer, gamma: float = 1.0) -> list[MethodRow]:
    """Return the map of each generated token as a row, all on one scale."""
    look = ViewOptions(gamma, "shared")
    rows = [
        replace(
            method_row(method, one, _prompt_before(generated, step), "token", look=look),
            title=f"{step + 1} {visible_token(label)}",
            cost=share(probability),
        )
        for step, (one, label, probability) in enumerate(
            zip(generated.explanations, generated.labels, generated.probabilities, strict=True)
        )
    ]
    end = max(row.view.largest for row in rows)
    sharing = "tokens of your text" if generated.is_given else SHARING
    return [replace(row, view=replace(row.view, end=end, sharing=sharing)) for row in rows]


def _prompt_before(generated: GeneratedText, step: int) -> Prompt:
    """Return the prompt with the text generated before the step; for a chat, with the whole response."""
    if generated.chat:
        return Prompt(generated.prompt, chat=True, response=generated.text)
    end = generated.explanations[step].tokens[-1].end
    return Prompt((generated.prompt + generated.text)[: max(end, len(generated.prompt))])


def matrix_html(rows: list[MethodRow], kind: str = "Generated") -> str:
    """HTML of the heatmap: a row for each token of the text, a column for each token before it."""
    head = rows[-1].view
    grid = grid_html(head, [line_html(row) for row in rows], f"{kind}, probability", TABLE_LABEL)
    return f'<div class="xg">{grid}<p class="xg-small">{legend_html(head)}</p></div>'


def _draw_step(generated: GeneratedText, step: int) -> int:
    """Draw the choice of a generated token, whose map is drawn below. Returns its number, from 1."""
    last = len(generated.labels)
    if step > last:
        put("generation.step", last)
    chosen = st.pills(
        "Map of the token", range(1, last + 1), key=key("generation.step"), required=True,
        format_func=lambda at: escape_label(f"{at} {visible_token(generated.labels[at - 1])}"), persist_state=PERSIST,
    )  # fmt: skip
    return chosen or 1  # a run that a click interrupted returns an empty control


def _draw_sentences(generated: GeneratedText) -> None:
    if generated.sentences:
        st.markdown("**Context use**: the probability of the whole generated text when a sentence is deleted.")
        draw_table(sentences_table(generated), "generation")
        if not generated.chat:
            st.caption("The last sentence of the prompt is the one that the text continues, so it is never deleted.")


def sentences_table(generated: GeneratedText) -> pd.DataFrame:
    """Return a row for the whole prompt and for each sentence, in reading order."""
    return pandas.DataFrame(
        [
            {
                "Without": row["without"] or "nothing (the whole prompt)",
                "Probability": share(row["probability"]),
                "Log-probability": round(row["log_probability"], 3),
                "Change": round(row["change"], 3),
            }
            for row in _sentence_rows(generated)
        ]
    )


def _sentence_rows(generated: GeneratedText) -> Iterator[dict[str, Any]]:
    whole = generated.log_probability
    yield {"without": "", "probability": generated.probability, "log_probability": whole, "change": 0.0}
    for one in generated.sentences:
        change = one.log_probability - whole
        yield {
            "without": one.text, "probability": one.probability, "log_probability": one.log_probability,
            "change": change,
        }  # fmt: skip


def links_csv(generated: GeneratedText) -> str:
    """Return the links as CSV, strongest first.

    One row for each generated token and each earlier token that is not special.
    """
    return to_csv(
        {
            "step": step + 1,
            "generated": generated.labels[step],
            "log_probability": generated.log_probabilities[step],
            "index": place,
            "token": generated.names[place],
            "score": score,
        }
        for step, place, score in generated.links()
    )


def _draw_export(generated: GeneratedText, state: TextState) -> None:
    with st.popover("Export generated text"):
        file_button(
            "CSV of links", "generated_links.csv", "text/csv", lambda: links_csv(generated), "A row for each link.",
            key("generated_links"),
        )  # fmt: skip
        file_button(
            "CSV of sentences", "generated_sentences.csv", "text/csv", lambda: to_csv(_sentence_rows(generated)),
            "A row for each deleted sentence.", key("generated_sentences"),
        )  # fmt: skip
        file_button(
            "JSON", "generated.json", "application/json", lambda: json.dumps(generated.as_json(), indent=1),
            "The output of `--json`.", key("generated_json"),
        )  # fmt: skip
        input_button(state.focus, key("generated_text"))
        st.caption(how_to_repeat(state.focus))
        st.code(command_line(_arguments(state), state.example), language="bash", wrap_lines=True)


def _arguments(state: TextState) -> list[str]:
    view = state.generation
    arguments = ["generate", "--model", state.model, *text_arguments(Prompt(state.example.text, chat=state.focus.chat))]
    if view.decoding == "given":
        return [*arguments, "--continuation", continuation_of(state), "--method", view.method]
    arguments += ["--tokens", str(view.tokens), "--method", view.method]
    return [*arguments, *(["--seed", str(state.seed)] if view.decoding == "sample" else [])]
