"""A significance test of the words of a text against uninformative replacements, on request."""

from __future__ import annotations

from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.compute import Tick, run_cached
from components.controls import PERSIST
from components.errors import show_note
from components.export import command_line, text_arguments
from components.method_row import rather_than
from components.numbers import count, fixed, plain
from components.progress import run_with_progress
from components.significance import (
    METHOD,
    draw_test_controls,
    export_significance,
    parts_csv,
    parts_table,
    significance_arguments,
    sorted_parts,
)
from components.tables import draw_table
from components.text.state import REPLACEMENTS, SignificanceView, TextState, key
from components.widgets.token_map import TokenMap, legend_html, token_map_html
from components.widgets.view_options import ViewOptions
from engine.format import visible_token
from engine.lazy import LazyModule
from engine.progress import CancelToken, cancellable
from engine.significance.false_discovery import survives
from engine.word_units import Unit

if TYPE_CHECKING:
    import pandas as pd

    from engine.significance import texts as significance
    from engine.significance.texts import SignificanceQuery, TextSignificance
else:  # it loads torch, which most visits do not need
    significance = LazyModule("engine.significance.texts")

NAMED = 6
"""Maximum number of words that the sentence names."""
MOSTLY = 0.5
"""Share of draws that are the word itself, above which they are named as the reason why it is not significant."""
REPLACED_BY = {"masked": "A masked language model", "dataset": "Words of the data set"}
CAUTIONS = {
    "masked": "The masked language model has read generated reviews only. In other kinds of text a word can be "
    "significant only because that model did not expect it. `exegesis significance` takes other masked models.",
    "dataset": "Words picked at random rarely fit their place, so a change can be due to an ungrammatical text.",
}
ASSUMPTION = (
    f"{METHOD} Benjamini and Hochberg’s procedure keeps the rate if "
    "the replacements are distributed as unimportant words are, "
    "and the tests are independent or positively dependent."
)


def draw_significance(state: TextState) -> None:
    """Draw the switch and, if it is on, the significant words."""
    st.subheader("Test the words", anchor=False)
    if not st.toggle(
        "Words that are statistically significant", key=key("open.significance"), persist_state=PERSIST,
        help="Replaces each word many times and runs the model on request.",
    ):  # fmt: skip
        return
    _draw_controls()
    view = state.significance
    found = run_with_progress(
        st.empty(), lambda: query_of(state).key, "Testing the words", "Stopped before all words were tested.",
        partial(_test, state),
    )  # fmt: skip
    if found is None:
        return
    texts = (state.example.text, state.example.text_pair)
    st.html(significance_html(found, view, texts, state.view.gamma, rather_than(state.example)))
    if found.unread:
        show_note(found.unread_note)
    if shortage := found.shortage(view.rate / 100):
        show_note(f"{shortage} The command takes more draws.")
    st.caption(CAUTIONS[view.replacements])
    with st.expander("Numbers of all words"):
        draw_table(words_table(found, view), "significance")
        st.caption(ASSUMPTION)
    export_significance(
        found, view, lambda: words_csv(found, view), state.focus, command_line(_arguments(state), state.example), key,
        "text",
    )  # fmt: skip


def _draw_controls() -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        draw_test_controls("word", key)
        st.selectbox(
            "Replaced by", REPLACEMENTS, key=key("significance.replacements"), persist_state=PERSIST, width=260,
            format_func=REPLACED_BY.__getitem__,
            help="What a masked language model expects in the place, or words picked at random, which needs more time.",
        )  # fmt: skip


def query_of(state: TextState) -> SignificanceQuery:
    """Return the engine's query."""
    words_from = state.focus.data if state.significance.replacements == "dataset" else None
    return significance.SignificanceQuery(
        state.model, state.example, state.target, words_from=words_from, seed=state.seed
    )


def _test(state: TextState, tick: Tick) -> TextSignificance:
    query = query_of(state)

    def compute(token: CancelToken) -> TextSignificance:
        with cancellable(token):
            return significance.text_significance(query)

    return run_cached(query.key, compute, tick)


def _arguments(state: TextState) -> list[str]:
    query = query_of(state)
    target = [] if query.target is None else ["--target", str(query.target)]
    words = [] if query.words_from is None else ["--words-from", query.words_from]
    own = ["--model", state.model, *text_arguments(state.example), *target]
    return significance_arguments(own, state.significance, state.seed, *words)


def significance_html(
    found: TextSignificance,
    view: SignificanceView,
    texts: tuple[str, str | None],
    gamma: float = 1.0,
    contrast: str = "",
) -> str:
    """HTML of the answer in a sentence, and of the text with the significant words in color.

    `contrast`: see `components.method_row.rather_than`.
    """
    drawn = survivors_map(found, view, texts, gamma)
    survivors = sorted((unit for at, unit in enumerate(drawn.units) if not drawn.remark(at)), key=_size)
    total = count(len(found.words), "word")
    listed = ", ".join(
        f"“<bdi>{escape(unit.text)}</bdi>” {fixed(unit.score, 3, sign=True)}" for unit in survivors[:NAMED]
    )
    more = f" and {len(survivors) - NAMED} more" if len(survivors) > NAMED else ""
    verb = "is" if len(survivors) == 1 else "are"
    answer = (
        f"{len(survivors)} of {total} {verb} significant at a false discovery rate of {view.rate}%: {listed}{more}."
        if survivors
        else f"None of {total} is significant at a false discovery rate of {view.rate}%."
    )
    what = "score" if found.regression else f"probability of <bdi>{escape(visible_token(found.label) + contrast)}</bdi>"
    legend = f'<p class="xg-small">{legend_html(drawn)}</p>' if survivors else ""
    return (
        f'<div class="xg"><p class="xg-summary">{answer}</p>{token_map_html(drawn)}'
        f'{legend}<p class="xg-small">A word’s score is the {what}, {plain(found.value)}, minus its mean over '
        f"{found.count:,} replacements. Gray words do not survive: hover one for the reason.</p></div>"
    )


def _size(unit: Unit) -> float:
    return -abs(unit.score)


def survivors_map(
    found: TextSignificance, view: SignificanceView, texts: tuple[str, str | None], gamma: float = 1.0
) -> TokenMap:
    """Return a map of the words' changes. Words that are not significant have a reason instead of color and score."""
    adjusted = found.adjusted(view.alternative)
    alive = survives(adjusted, view.rate / 100).tolist()
    units = tuple(
        Unit(word.text, word.start, word.end, word.segment, False, change if here else 0.0, (at,))
        for at, (word, change, here) in enumerate(zip(found.words, found.changes.tolist(), alive, strict=True))
    )
    remarks = tuple("" if here else _reason(found, at, float(adjusted[at])) for at, here in enumerate(alive))
    shown = tuple(text for text in texts if text is not None)
    return TokenMap(units, shown, True, found.label, look=ViewOptions(gamma), remarks=remarks)


def _reason(found: TextSignificance, at: int, adjusted: float) -> str:
    repeats = float(found.repeats[at])
    expected = f", as {repeats:.0%} of its replacements are the word itself" if repeats > MOSTLY else ""
    return f"{found.words[at].text}: not significant, adjusted p = {plain(adjusted)}{expected}"


def words_table(found: TextSignificance, view: SignificanceView) -> pd.DataFrame:
    """Return a row for each word, the smallest p-value first."""
    return parts_table(
        _sorted_words(found, view), {"Word": "text"},
        lambda row: {"Often replaced by": ", ".join(row["replacements"]) or "itself only"},
    )  # fmt: skip


def words_csv(found: TextSignificance, view: SignificanceView) -> str:
    """Return a row for each word, the smallest p-value first."""
    return parts_csv(_sorted_words(found, view))


def _sorted_words(found: TextSignificance, view: SignificanceView) -> list[dict[str, Any]]:
    return sorted_parts(found, view, "segment", "start")
