"""The next token of a prompt: its distribution, and the choice of the explained token and of its contrast."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

import streamlit as st

from components.controls import PERSIST
from components.inputs.text_choice import SELECTION, TOKENS
from components.numbers import hundredths, percent, plain, signed
from engine.errors import UsageError
from engine.format import hidden_token, visible_token
from engine.next_token import NamedToken, NextTokens, spacing_notes_of
from engine.result import OTHERS

ANY = ""
"""The value of a choice without a token."""
TOKEN_HELP = "A dot stands for a space. Type a token that is not in the list: as a rule it starts with the dot."
LABELS = {
    TOKENS[0]: ("Explain", "The most probable token", f"The token that the maps explain. {TOKEN_HELP}"),
    TOKENS[1]: (
        "Rather than",
        "No other token",
        "The maps then explain the difference of the two logits: why this token rather than that one "
        f"(Yin and Neubig, 2022). {TOKEN_HELP}",
    ),
}


def next_token_html(tokens: NextTokens, explained: bool) -> str:
    """HTML sentences on how the model continues and how uncertain it is.

    `explained`: whether to add the explained token and notes on its spacing.
    """
    first, share = tokens.labels[0], tokens.probabilities[0]
    choices = plain(2**tokens.entropy)
    dot = " The dot stands for a space." if first.startswith(" ") else ""
    sentence = (
        f"The model continues with <b>{name_html(first)}</b> ({escape(percent(share))}).{dot} Entropy: "
        f"{hundredths(tokens.entropy)} bits, like a choice among {choices} equally likely tokens "
        f"(the vocabulary has {tokens.vocabulary:,})."
    )
    notes = "".join(f" {escape(note)}" for note in (spacing_notes_of(tokens) if explained else ()))
    return f'<div class="xg"><p>{sentence}{_explained_html(tokens) if explained else ""}{notes}</p></div>'


def distribution_html(tokens: NextTokens) -> str:
    """HTML of a bar for each of the most probable tokens, for those that the prompt names, and one for all others."""
    shares = dict(zip(tokens.labels, tokens.probabilities, strict=True))
    others = shares.pop(OTHERS, 0.0)
    for named in filter(None, (tokens.target, tokens.contrast)):
        if named.label not in shares:
            shares[named.label] = named.probability
            others = max(0.0, others - named.probability)
    contrast = None if tokens.contrast is None else tokens.contrast.label
    marks = {tokens.target.label: " xg-chosen", contrast: " xg-contrast"}
    bars = [_bar(name_html(label), share, marks.get(label, "")) for label, share in shares.items()]
    bars.append(_bar(escape(OTHERS), others, ""))
    return f'<div class="xg"><div class="xg-next">{"".join(bars)}</div></div>'


def name_html(label: str) -> str:
    """HTML of a token whose text direction is isolated, with leading spaces as dots."""
    return f"<bdi>{escape(visible_token(label))}</bdi>"


def draw_token_pickers(labels: Iterable[str]) -> None:
    """Draw the choice of the explained token and of its contrast, from `labels` or typed."""
    likely = [label for label in labels if label != OTHERS]
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        for name, (label, none, help) in LABELS.items():
            _draw_picker(name, label, none, help, likely)


def _draw_picker(name: str, label: str, none: str, help: str, likely: list[str]) -> None:
    key = SELECTION.key(name)
    chosen = hidden_token(str(st.session_state.get(key) or ANY))
    st.session_state[key] = chosen  # a typed token has the form in which tokens are shown
    st.selectbox(
        label, list(dict.fromkeys([ANY, *likely, chosen])), key=key, accept_new_options=True, width=260, help=help,
        on_change=prefer_likely, args=(key, likely),
        # The browser sends these labels back, so they must not change with the prompt.
        format_func=lambda token: visible_token(token) or none, persist_state=PERSIST,
    )  # fmt: skip


def prefer_likely(key: str, likely: list[str]) -> None:
    """Replace a typed token that lacks its leading space by the likely token that has it."""
    spaced = f" {st.session_state[key] or ANY}"
    if st.session_state[key] not in likely and spaced in likely:
        st.session_state[key] = spaced


def name_controls(error: UsageError) -> UsageError:
    """Return the error with the argument named like its control on the page."""
    argument, separator, rest = str(error).partition(": ")
    labels = {"target": LABELS[TOKENS[0]][0], "contrast": LABELS[TOKENS[1]][0]}
    return UsageError(f"{labels.get(argument, argument)}{separator}{rest}")


def _explained_html(tokens: NextTokens) -> str:
    target, contrast = tokens.target, tokens.contrast
    if contrast is None:
        return f" Explained: {_named_html(target, tokens)}."
    return (
        f" Explained: why {_named_html(target, tokens)} rather than {_named_html(contrast, tokens)}. The difference of "
        f"their logits is {signed(target.log_probability - contrast.log_probability)}."
    )


def _named_html(token: NamedToken, tokens: NextTokens) -> str:
    rank = f"rank {token.rank:,} of {tokens.vocabulary:,}"
    return f"<b>{name_html(token.label)}</b> ({escape(percent(token.probability))}, {rank})"


def _bar(name: str, share: float, mark: str) -> str:
    return (
        f'<div><span class="xg-label{mark}">{name}</span>'
        f'<span class="xg-track"><span class="xg-fill" style="width:{100 * share:.2f}%"></span></span>'
        f'<span class="xg-number{mark}">{escape(percent(share))}</span></div>'
    )
