"""Safe Markdown for text written by an organizer: no HTML, no pictures, and links that show their address.

Streamlit's own Markdown fetches pictures from anywhere and turns plain words into icons, colors and formulas. This
module renders CommonMark only.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from html import escape
from typing import Any

import streamlit as st
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from streamlit.delta_generator import DeltaGenerator

LEADS_TO = re.compile(r"https?://|mailto:", re.IGNORECASE)
"""Allowed beginnings of a link; any other link stays plain text."""
LOWEST = 6


def markdown(text: str, place: DeltaGenerator | None = None) -> None:
    """Draw Markdown in `place` or at the end of the page."""
    (st.html if place is None else place.html)(markdown_html(text))


def markdown_html(text: str) -> str:
    """Render CommonMark as HTML. A picture becomes its alt text; a link shows its address and opens in a new tab."""
    return f'<div class="xg"><div class="xg-prose">{_parser().render(text)}</div></div>'


@functools.cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer)
    parser.validateLink = lambda url: bool(LEADS_TO.match(url))  # type: ignore[method-assign]
    return parser


class _Renderer(RendererHTML):
    """A renderer that changes pictures, links and headings, which become one level lower than the page's own."""

    def image(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        return escape(self.renderInlineAsText(tokens[place].children, options, env))

    def link_open(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        return f'<a href="{escape(_address(tokens, place))}" target="_blank" rel="noopener noreferrer nofollow">'

    def link_close(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        address, said = _address(tokens, place), tokens[place - 1].content
        told = address.removeprefix("mailto:")
        return "</a>" if said in (address, told) else f"</a> (<bdi>{escape(told)}</bdi>)"

    def heading_open(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        return f"<{_lower(tokens[place].tag)}>"

    def heading_close(self, tokens: Sequence[Token], place: int, options: Any, env: Any) -> str:
        return f"</{_lower(tokens[place].tag)}>\n"


def _address(tokens: Sequence[Token], place: int) -> str:
    """Return the address of the link that opens or closes here; links do not nest."""
    opening = next(token for token in reversed(tokens[: place + 1]) if token.type == "link_open")
    return str(opening.attrs["href"])


def _lower(tag: str) -> str:
    return f"h{min(LOWEST, int(tag[1:]) + 1)}"
