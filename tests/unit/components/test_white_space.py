"""White space that a model reads as tokens: the map stays the text, and no name of a tokenizer is drawn."""

from __future__ import annotations

import re
from html import unescape
from xml.etree import ElementTree

import numpy as np
import pytest

from components.method_row import grid_html
from components.text.export import TextExport, export_html, export_svg
from components.widgets.token_map import TokenMap, picker_data, token_map_html
from engine.explain import explain
from engine.models.text_classifier import EncodedText
from engine.registry import explainer
from engine.request import Example, Request
from engine.word_units import UNITS, units
from tests.explaining import checkpoint, classifier

FAMILIES = ("roberta", "gpt2", "xlm-roberta", "t5")
TEXTS = ("good  food", "  good food  ", "good\tfood", "good \t\n food", "good\n\nfood\n", "\n\ngood\r\nfood")
MARKERS = re.compile("[ĠĊĉč▁]|<unk>")


def drawn(family: str, text: str, unit: str) -> TokenMap:
    encoded: EncodedText = classifier(family, 2, "float32").encode(Example(text))
    scores = np.arange(1.0, len(encoded.tokens) + 1)
    return TokenMap(units(encoded.tokens, scores, Example(text), unit), (text,), True, "good")


def text_of(markup: str) -> str:
    """What a browser has as text, without the special tokens and the space that sets them off."""
    without_last = re.sub(r"<bdi[^>]*xg-hang[^>]*>[^<]*</bdi>", "", markup)
    return unescape(re.sub(r"<[^>]*>", "", re.sub(r" ?<bdi[^>]*>[^<]*</bdi> ", "", without_last)))


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_map_is_the_text(family: str, text: str, unit: str) -> None:
    view = drawn(family, text, unit)
    markup = token_map_html(view)
    assert text_of(markup) == text
    assert len(re.findall(r"<b[ >]", markup)) == view.ranked


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_no_name_of_a_tokenizer_is_drawn(family: str, text: str) -> None:
    view = drawn(family, text, "token")
    shown = [unit for unit in view.units if not unit.special]
    assert not any(MARKERS.search(unit.text) for unit in shown)
    assert not MARKERS.search(grid_html(view, []) + token_map_html(view) + str(picker_data(shown, ())))


def test_white_space_has_a_chip_of_its_own() -> None:
    view = drawn("roberta", "good  food", "token")
    [blank] = [unit for unit in view.units if unit.blank]
    assert re.search(r"<b [^>]*data-m=␣></b>  <b", token_map_html(view))
    assert blank.score == 1 + blank.tokens[0]


def test_the_mark_of_a_line_break_stands_before_it() -> None:
    assert re.search(r"data-m=⏎></b><b[^>]*data-m=⏎></b>\n\n<b", token_map_html(drawn("gpt2", "good\n\nfood", "token")))


@pytest.mark.parametrize("family", FAMILIES)
def test_files_are_free_of_them_too(family: str) -> None:
    example = Example("good  \n\tfood")
    made = explain(Request(str(checkpoint(family, 2)), "random", example))
    kept = TextExport(example, "token", ((explainer("random"), made),))
    assert not MARKERS.search(export_html(kept).partition("</section>")[2].partition("Cite this")[0])
    assert not MARKERS.search("".join(ElementTree.fromstring(export_svg(kept)).itertext()))
