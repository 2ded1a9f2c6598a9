"""The cards of the gallery: their text, what they say, and where their links lead."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import pytest

from components.gallery import card_html, link, reading_html
from components.inputs.datasets import OpenTexts
from components.text.state import START, read_state
from engine import shipped
from engine.data.datasets import load
from engine.explain import key_of, shipped_explanation
from engine.models.catalog import embedded_models
from engine.registry import all_explainers
from engine.request import Request
from engine.shipped.gallery import GALLERY, GalleryCard


def drawn(piece: GalleryCard) -> str:
    return card_html(piece, shipped_explanation(piece.request(piece.method)))


def words(html: str) -> str:
    return unescape(re.sub(r"<[^>]*>", "", html))


@pytest.mark.parametrize("piece", GALLERY, ids=lambda piece: piece.title)
def test_a_card_shows_the_whole_text_and_what_to_see(piece: GalleryCard) -> None:
    shown = words(drawn(piece))
    assert piece.example.text in shown
    assert piece.see in shown
    share = r"\((\d\d\.\d|>\s99\.9)\s?%"
    assert re.search(rf"Predicted (positive|negative) {share}\)|·\w+ rather than ·\w+ {share} of the two\)", shown)
    assert "[CLS]" not in shown
    assert "xg-map" in drawn(piece)


def test_a_card_says_the_label_only_where_the_model_is_wrong() -> None:
    wrong = {piece.title for piece in GALLERY if ", label: " in words(drawn(piece))}
    assert wrong == {"Cheap is praise here", "Irony", "Praise, then the battery", "One word decides"}
    by_title = {piece.title: words(drawn(piece)) for piece in GALLERY}
    assert "·goat rather than ·cow (75.5% of the two), answer: ·cow" in by_title["The wrong animal"]
    assert "answer:" not in by_title["To whom?"]


def test_a_card_says_where_its_model_hardly_does_better_than_guessing() -> None:
    told = {piece.title for piece in GALLERY if "guessing: 50.0%), by its card." in words(drawn(piece))}
    assert told == {"The wrong animal"}
    own = replace(GALLERY[0], model="tiny-llama", dataset="facts")
    assert own.index is None
    assert "guessing" not in card_html(own, None), "a text of our own is of no data set"


def test_a_card_says_how_its_map_is_read() -> None:
    by_title = {piece.title: drawn(piece) for piece in GALLERY}
    signed, amount = by_title["Irony"], by_title["Attention to a period"]
    assert "xg-signed" in signed
    assert "Kernel SHAP: againstfor positive" in words(signed)
    assert "xg-amount" in amount
    assert "Attention rollout: lowhigh" in words(amount)
    assert {"xg-signed", "xg-amount"} <= set(re.findall(r"xg-[a-z]+", reading_html()))


def test_a_card_without_a_current_result_shows_the_text_alone_and_escapes_it() -> None:
    piece = replace(GALLERY[0], text="<b>bold</b> & more", see="<i>look</i>")
    html = card_html(piece, None)
    assert "&lt;b&gt;bold&lt;/b&gt; &amp; more" in html
    assert "&lt;i&gt;look&lt;/i&gt;" in html
    assert "Computed when you open it." in html
    assert "xg-map" not in html


@pytest.mark.parametrize("piece", GALLERY, ids=lambda piece: piece.title)
def test_a_link_opens_what_is_shipped(piece: GalleryCard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.runtime.device_type", lambda: "cpu")
    state, said = read_state(
        link(piece), embedded_models(), all_explainers(), OpenTexts(piece.dataset, load(piece.dataset))
    )
    assert not said
    assert (state.model, state.example) == (piece.model, piece.example)
    assert state.methods == piece.methods
    assert sorted(state.methods) == sorted(START)
    asked = [Request(state.model, method, state.example, {}, state.target, state.seed) for method in state.methods]
    assert all(shipped.find(key_of(request)) for request in asked)
