"""Similarity of the two texts of a pair: links between their tokens, by a sentence encoder and on request."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import quote

import streamlit as st

from components.compute import run_cached
from components.controls import PERSIST
from components.errors import describe_error, show_error, show_note
from components.export import command_line, file_button, how_to_repeat, input_button, text_arguments
from components.method_row import check_html
from components.numbers import fixed, hundredths, plain
from components.palette import PALETTES, STEPS, Theme, browser_theme, color
from components.styles import use_sheet
from components.svg import clean_xml
from components.text.state import ENCODER, TextState, key
from engine.lazy import LazyModule
from engine.progress import CancelToken, cancellable
from engine.table_io import to_csv

if TYPE_CHECKING:
    from engine import similarity
    from engine.similarity import TextSimilarity
else:  # it loads torch, which most visits do not need
    similarity = LazyModule("engine.similarity")

MOST_LINKS, LISTED = 30, 5
"""Maximum number of pairs that have a link, and of those that are listed next to it."""
MOST_CHARACTERS = 16
"""Maximum characters of a token in the picture."""
ROW, WIDTH, LEFT, RIGHT = 24, 420, 150, 270
"""In pixels: height of a token and width of the picture; where the links begin and end."""
ALT = "Lines between the tokens of both texts. The strongest pairs are listed above."
LEGEND = "less to more similar. The wider a line, the more a pair contributes."
SOURCE = (
    "BiLRP (Vasileiou and Eberle, 2024, Explaining text similarity in transformer models) on a sentence encoder, "
    "another model than the one above. Special tokens have no links."
)

Rows = Sequence[Mapping[int, int]]
"""For both texts, the row of each token that is not special, by its position."""


def draw_similarity(state: TextState) -> None:
    """Draw the switch and, if it is on, the links; nothing for a single text."""
    text, pair = state.example.text, state.example.text_pair
    if pair is None:
        return
    st.subheader("Compare both texts", anchor=False)
    if not st.toggle(
        "Words that make both texts similar", key=key("open.similarity"), persist_state=PERSIST,
        help="Runs a sentence encoder on request.",
    ):  # fmt: skip
        return
    encoder = state.encoder
    st.text_input(
        "Sentence encoder", key=key("encoder"), persist_state=PERSIST, width=420,
        help="`minilm`, a hub ID, or a folder that sentence-transformers has saved.",
    )  # fmt: skip
    try:
        found = run_cached(similarity.similarity_key(text, pair, encoder), partial(_compute, text, pair, encoder))
    except Exception as error:
        show_error(describe_error(error))
        return
    use_sheet("questions")
    st.html(similarity_html(found, browser_theme()))
    for name, lost in zip(("first", "second"), found.truncated, strict=True):
        if lost:
            show_note(f"The last {lost:,} tokens of the {name} text were not read: it is too long for the encoder.")
    with st.popover("Export similarity"):
        file_button(
            "CSV", "similarity.csv", "text/csv", lambda: pairs_csv(found), "A row for each pair.", key("pairs_csv")
        )
        file_button(
            "JSON", "similarity.json", "application/json", lambda: json.dumps(found.as_json(), indent=1),
            "All pairs, special tokens included, and the check.", key("pairs_json"),
        )  # fmt: skip
        input_button(state.focus, key("pairs_text"))
        st.caption(how_to_repeat(state.focus))
        named = [] if encoder == ENCODER else ["--model", encoder]
        command = command_line(["similarity", *named, *text_arguments(state.example)], state.example)
        st.code(command, language="bash", wrap_lines=True)


def _compute(text: str, pair: str, encoder: str, token: CancelToken) -> TextSimilarity:
    with cancellable(token):
        return similarity.text_similarity(text, pair, encoder)


def similarity_html(found: TextSimilarity, theme: Theme) -> str:
    """HTML of the similarity, the strongest pairs, the links, the relevance outside the pairs, and the check."""
    pairs = found.pairs(MOST_LINKS)
    listed = "; ".join(f"{_name(found, one, two)} {fixed(value, 3, sign=True)}" for one, two, value in pairs[:LISTED])
    sums = (
        f"All pairs sum to {plain(float(found.relevance.sum()))}. Biases, positions and softmax, alone or with a "
        f"token, hold {plain(found.rest)}."
    )
    picture = f"data:image/svg+xml,{quote(links_svg(found, theme))}"
    return (
        f'<div class="xg"><p class="xg-summary">Their similarity is {hundredths(found.value)}. The pairs with the most '
        f'relevance: {listed}.</p><p><img class="xg-links" alt="{ALT}" src="{picture}"></p>'
        f'<p class="xg-small"><span class="xg-scale xg-signed" aria-hidden="true"></span>{LEGEND}</p>'
        f'<p class="xg-small">{sums}</p>{check_html(found.check)}<p class="xg-small">{SOURCE}</p></div>'
    )


def _name(found: TextSimilarity, one: int, two: int) -> str:
    return f"“<bdi>{escape(found.first[one].text)}</bdi>” and “<bdi>{escape(found.second[two].text)}</bdi>”"


def links_svg(found: TextSimilarity, theme: Theme) -> str:
    """Return an SVG of both texts' tokens in two columns, with a line for each of the strongest pairs."""
    rows = [
        {place: at for at, place in enumerate(place for place, token in enumerate(tokens) if not token.special)}
        for tokens in (found.first, found.second)
    ]
    height = ROW * max(map(len, rows))
    parts = [*_links(found, rows, theme), *_words(found, rows)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'font-family="system-ui, sans-serif" font-size="14" fill="{PALETTES[theme].text}">{"".join(parts)}</svg>'
    )


def _links(found: TextSimilarity, rows: Rows, theme: Theme) -> Iterator[str]:
    pairs = found.pairs(MOST_LINKS)
    largest = max((abs(value) for *_, value in pairs), default=0.0) or 1.0
    middle = (LEFT + RIGHT) / 2
    for one, two, value in reversed(pairs):  # the strongest on top
        share = abs(value) / largest
        start, end = (ROW * (rows[side][at] + 0.5) for side, at in ((0, one), (1, two)))
        yield (
            f'<path d="M{LEFT} {start:g}C{middle:g} {start:g} {middle:g} {end:g} {RIGHT} {end:g}" fill="none" '
            f'stroke="{color(theme, "for" if value > 0 else "against", STEPS)}" stroke-width="{0.5 + 6 * share:.2f}" '
            f'stroke-opacity="{0.2 + 0.8 * share:.2f}"/>'
        )


def _words(found: TextSimilarity, rows: Rows) -> Iterator[str]:
    sides = ((found.first, LEFT - 8, "end"), (found.second, RIGHT + 8, "start"))
    for own, (tokens, x, anchor) in zip(rows, sides, strict=True):
        for place, row in own.items():
            text = clean_xml(tokens[place].text)
            shown = text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"
            yield f'<text x="{x}" y="{ROW * (row + 0.5) + 5:g}" text-anchor="{anchor}">{escape(shown)}</text>'


def pairs_csv(found: TextSimilarity) -> str:
    """Return the pairs of tokens that are not special as CSV, the largest relevance first."""
    return to_csv(
        {
            "first_position": one,
            "first": found.first[one].text,
            "second_position": two,
            "second": found.second[two].text,
            "relevance": value,
        }
        for one, two, value in found.pairs()
    )
