"""The gallery: cards of examples with shipped explanations, each with a method's map and a sentence about it."""

from __future__ import annotations

from dataclasses import replace
from html import escape

import streamlit as st

from components.inputs.datasets import DEFAULT_PROMPTS
from components.inputs.text_choice import TextFocus, write_text_focus
from components.links import Query
from components.method_row import token_map
from components.navigation import TEXT
from components.numbers import percent
from components.styles import use_sheet
from components.widgets.token_map import TokenMap, token_map_html
from engine.data.datasets import load
from engine.explain import shipped_explanation
from engine.format import visible_token
from engine.input_kinds import list_models
from engine.models.summary import chance_note
from engine.next_token import is_causal
from engine.registry import explainer
from engine.request import Prompt
from engine.result import Explanation, Prediction
from engine.shipped.gallery import GALLERY, GalleryCard

COLUMNS = 3


def draw_gallery() -> None:
    """Draw a card on how to read a map, then a card for each example; each opens the Text page with all its methods."""
    use_sheet("gallery")
    cards = [None, *GALLERY]
    with st.container(key="gallery", gap="small"):
        for start in range(0, len(cards), COLUMNS):
            for place, card in zip(st.columns(COLUMNS, gap="small"), cards[start : start + COLUMNS], strict=False):
                with place.container(border=True, height="stretch", gap="xxsmall"):
                    _draw(card)


def link(card: GalleryCard) -> Query:
    """Return the link to the Text page with this example and its default methods."""
    example = card.example
    focus = TextFocus(card.model, example.text, None, card.index, card.dataset)
    if isinstance(example, Prompt):
        focus = replace(focus, target=example.target, contrast=example.contrast)
    return write_text_focus(focus)


def prompt_link() -> Query | None:
    """Return the link to the Text page with the first language model and its first prompt, or None without a model."""
    model = next((name for name in list_models("text") if is_causal(name)), None)
    if model is None:
        return None
    prompt = load(DEFAULT_PROMPTS)[0]
    focus = TextFocus(model, prompt.text, None, 0, DEFAULT_PROMPTS, target=prompt.answer, contrast=prompt.foil)
    return write_text_focus(focus)


def card_html(card: GalleryCard, made: Explanation | None) -> str:
    """HTML of a card: prediction, map and sentence. Without a current result (None), the bare text and the sentence."""
    text = f'<p class="xg-text">{escape(card.example.text)}</p><p class="xg-small">Computed when you open it.</p>'
    parts = text if made is None else _explained(card, made)
    chance = "" if card.index is None else chance_note(card.model, card.dataset)
    about = f"<p>{escape(card.see)}</p>" + (f'<p class="xg-small">{escape(chance)}</p>' if chance else "")
    return f'<div class="xg"><div class="xg-card">{parts}{about}</div></div>'


def reading_html() -> str:
    """HTML of the card that explains how to read the others."""
    return (
        '<div class="xg"><div class="xg-card"><p class="xg-title">How to read a map</p>'
        "<p>A method gives each token a score, shown as a color. Signed scores: against the explained class"
        '<i class="xg-scale xg-signed"></i>for it. Unsigned: low<i class="xg-scale xg-amount"></i>high.</p>'
        "<p>A map is a claim about the model, not about the world. Compare several maps, and compare each with "
        "<b>Random</b>, a baseline that knows nothing about the model.</p>"
        '<p class="xg-small">Attention weights, in particular, do not necessarily explain a prediction <cite>(Jain '
        "and Wallace, Attention is not Explanation, NAACL 2019)</cite>.</p></div></div>"
    )


def _draw(card: GalleryCard | None) -> None:
    if card is None:
        st.html(reading_html())
        return
    icon = ":material/arrow_forward:"
    st.page_link(TEXT.path, label=f"**{card.title}**", icon=icon, icon_position="right", query_params=link(card))
    st.html(card_html(card, shipped_explanation(card.request(card.method))))


def _explained(card: GalleryCard, made: Explanation) -> str:
    method = explainer(card.method)
    whole = token_map(method, made, card.example, "token")
    view = replace(whole, units=tuple(unit for unit in whole.units if not unit.special))
    return (
        f'<p class="xg-small">{_verdict(card, made.prediction)}</p>{token_map_html(view)}'
        f'<p class="xg-small">{escape(method.title)}:{_scale(view)}</p>'
    )


def _verdict(card: GalleryCard, prediction: Prediction) -> str:
    """HTML of the prediction, with the label if it differs; for a prompt, the likelier of its two tokens."""
    share = escape(percent(prediction.confidence))
    wrong = None if card.label == prediction.label else card.label
    if prediction.of_two_tokens:
        more, other = (
            f"<bdi>{escape(visible_token(label))}</bdi>"
            for label in (prediction.label, prediction.labels[1 - prediction.index])
        )
        answer = "" if wrong is None else f", answer: <bdi>{escape(visible_token(wrong))}</bdi>"
        return f"<b>{more}</b> rather than {other} ({share} of the two){answer}"
    label = "" if wrong is None else f", label: {escape(wrong)}"
    return f"Predicted <b>{escape(visible_token(prediction.label))}</b> ({share}){label}"


def _scale(view: TokenMap) -> str:
    if not view.signed:
        return ' low<i class="xg-scale xg-amount"></i>high'
    return f' against<i class="xg-scale xg-signed"></i>for {escape(view.target)}'
