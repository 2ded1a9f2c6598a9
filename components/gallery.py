"""The gallery: examples that are explained already, each a card with one method's map and what to see in it."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from pathlib import Path

import streamlit as st

from components.compact import compact_css
from components.frame import TEXT
from components.inputs.link import Query
from components.inputs.text_choice import TextFocus, write_text_focus
from components.method_row import token_map
from components.numbers import percent
from components.widgets.token_map import TokenMap, token_map_html
from engine.explain import shipped_explanation
from engine.registry import explainer
from engine.result import Explanation, Prediction
from engine.shipped.gallery import DATASET, GALLERY, MODEL, GalleryCard

LAYOUT = Path(__file__).resolve().parent / "assets" / "gallery.css"
COLUMNS = 3


def gallery() -> None:
    """How to read a map, then a card for each example; each opens the Text page with all its methods."""
    st.html(f"<style>{compact_css(LAYOUT.read_text(encoding='utf-8'))}</style>")
    cards = [None, *GALLERY]
    with st.container(key="gallery", gap="small"):
        for start in range(0, len(cards), COLUMNS):
            for place, piece in zip(st.columns(COLUMNS, gap="small"), cards[start : start + COLUMNS], strict=False):
                with place.container(border=True, height="stretch", gap="xxsmall"):
                    _draw(piece)


def link(piece: GalleryCard) -> Query:
    """What the Text page is asked for: this example, and its usual methods."""
    return write_text_focus(TextFocus(MODEL, piece.example.text, None, piece.index, DATASET))


def card_html(piece: GalleryCard, made: Explanation | None) -> str:
    """Prediction, map and sentence. Without a current result (None) the text stands alone."""
    parts = _bare(piece) if made is None else _explained(piece, made)
    return f'<div class="xg"><div class="xg-card">{parts}<p>{escape(piece.see)}</p></div></div>'


def reading_html() -> str:
    """The card that says how to read the others."""
    return (
        '<div class="xg"><div class="xg-card"><p class="xg-title">How to read a map</p>'
        "<p>A method gives every token one number, drawn as a colour. With sign: against the explained class"
        '<i class="xg-scale xg-signed"></i>for it. Without: little<i class="xg-scale xg-amount"></i>much.</p>'
        "<p>A map is a claim about the model, not about the world. Compare several, and each with <b>Random</b>, "
        "the baseline that knows nothing.</p>"
        '<p class="xg-small">Attention weights in particular need not say why a model decides as it does <cite>(Jain '
        "and Wallace, Attention is not Explanation, NAACL 2019)</cite>.</p></div></div>"
    )


def _draw(piece: GalleryCard | None) -> None:
    if piece is None:
        st.html(reading_html())
        return
    icon = ":material/arrow_forward:"
    st.page_link(TEXT.file, label=f"**{piece.title}**", icon=icon, icon_position="right", query_params=link(piece))
    st.html(card_html(piece, shipped_explanation(piece.request(piece.method))))


def _bare(piece: GalleryCard) -> str:
    return f'<p class="xg-text">{escape(piece.example.text)}</p><p class="xg-small">Computed when you open it.</p>'


def _explained(piece: GalleryCard, made: Explanation) -> str:
    method = explainer(piece.method)
    whole = token_map(method, made, piece.example, "token")
    view = replace(whole, units=tuple(unit for unit in whole.units if not unit.special))
    return (
        f'<p class="xg-small">{_verdict(piece, made.prediction)}</p>{token_map_html(view)}'
        f'<p class="xg-small">{escape(method.title)}:{_scale(view)}</p>'
    )


def _verdict(piece: GalleryCard, prediction: Prediction) -> str:
    """The prediction, and what the reviewer meant where that is another."""
    share = escape(percent(max(prediction.probabilities)))
    meant = f", meant {escape(piece.label)}" if piece.label not in (None, prediction.label) else ""
    return f"Predicted <b>{escape(prediction.label)}</b> ({share}){meant}"


def _scale(view: TokenMap) -> str:
    if not view.signed:
        return ' little<i class="xg-scale xg-amount"></i>much'
    return f' against<i class="xg-scale xg-signed"></i>for {escape(view.target)}'
