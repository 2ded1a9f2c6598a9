"""Maps as HTML: what is shown, in which colour, and that text stays text."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser

import pytest

from components.palette import STEPS
from components.styles import same_unit_rules
from components.token_map import DIGITS, TokenMap, direction, legend_html, place_classes, tip, token_map_html
from engine.request import Example
from engine.words import units
from tests.unit.components.making import explanation

HARD = (
    "<script>alert(1)</script>",
    "&lt;b&gt; & \"quotes\" 'single' <!-- no -->",
    '" onmouseover="alert(1)',
    "one",
    "again again again",
    "这部电影 好看",
    "שלום עולם",
    "👨\u200d👩\u200d👧 👍🏽 e\u0301",
)


class Reader(HTMLParser):
    """What a browser would see: tags, visible text, attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.names: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names.update(name for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


def drawn(
    text: str, scores: list[float] | None = None, *, pair: str | None = None, signed: bool = True, target: str = "good"
) -> TokenMap:
    example = Example(text, pair)
    made = explanation(example, scores)
    texts = (text,) if pair is None else (text, pair)
    return TokenMap(units(made.tokens, made.scores, example), texts, signed, target)


@pytest.mark.parametrize("text", HARD)
def test_text_stays_text(text: str) -> None:
    seen = Reader(token_map_html(drawn(text, pair=text)))
    assert set(seen.tags) == {"div", "p", "bdi", "span"}
    assert seen.names == {"class", "dir", "data-tip"}
    assert seen.text == f"[CLS] {text} [SEP]{text} [SEP]"


def test_the_class_name_is_escaped_in_the_legend() -> None:
    html = legend_html(drawn("a b", target="<i>x</i>"))
    assert "<i>x" not in html
    assert "&lt;i&gt;x" in html


def test_colours_are_centred_at_zero_and_the_largest_scores_end_the_scale() -> None:
    html = token_map_html(drawn("a b c d", [0.5, -0.5, 1.0, 0.0]))
    tones = re.findall(r'<span class="xg-t([^"]*) xi0 xj\d"', html)
    assert tones == [f" xg-for-{STEPS // 2}", f" xg-against-{STEPS // 2}", f" xg-for-{STEPS}", ""]


def test_an_unsigned_map_has_one_colour() -> None:
    view = drawn("a b", [1.0, 3.0], signed=False)
    assert re.findall(r"xg-(\w+)-(\d+)", token_map_html(view)) == [("amount", "7"), ("amount", str(STEPS))]
    assert "0 to 3, without sign" in legend_html(view)


def test_the_legend_names_both_ends_and_the_class() -> None:
    assert "\u22120.25 against, +0.25 for <bdi>good</bdi>" in legend_html(drawn("a b", [0.25, -0.1]))


def test_a_map_of_zeros_says_so_in_words() -> None:
    view = drawn("a b", [0.0, 0.0])
    assert "All scores are zero" in legend_html(view)
    assert not re.search(r"xg-(for|against|amount)-", token_map_html(view))


def test_special_tokens_are_grey_unranked_and_do_not_stretch_the_scale() -> None:
    example = Example("a b")
    made = explanation(example, [1.0, -2.0])
    scores = made.scores.copy()
    scores[0] = 99.0
    view = TokenMap(units(made.tokens, scores, example), ("a b",), True, "good")
    assert view.largest == 2.0
    assert view.ranks == (0, 2, 1, 0)
    assert '<bdi class="xg-special xi0 xj0"' in token_map_html(view)
    assert tip(view, 0) == "+99 · special token, not ranked · index 0"


def test_hovering_says_value_rank_and_index() -> None:
    view = drawn("a b c", [0.1234, -2.0, 0.1234])
    assert tip(view, 2) == "\u22122 · rank 1 of 3 · index 2"
    assert tip(view, 1) == "+0.123 · rank 2 of 3 · index 1"
    assert tip(view, 3) == "+0.123 · rank 2 of 3 · index 3", "equal scores share the better rank"
    tips = [unescape(said) for said in re.findall(r'data-tip="([^"]*)"', token_map_html(view))]
    assert tips == [tip(view, position) for position in range(5)]


def test_a_unit_has_the_same_place_in_every_map_and_no_two_share_one() -> None:
    text = "word " * 600
    first, second = (token_map_html(drawn(text, [score] * 600)) for score in (1.0, -2.0))
    places = re.findall(r" (xi\d+ xj\d+)\"", first)
    assert places == re.findall(r" (xi\d+ xj\d+)\"", second)
    assert len(set(places)) == len(places) == 602
    assert all(place_classes(n).split()[0] in same_unit_rules() for n in range(DIGITS * DIGITS))


def test_what_has_no_place_of_its_own_is_not_lit() -> None:
    assert place_classes(DIGITS * DIGITS - 1) == f" xi{DIGITS - 1} xj{DIGITS - 1}"
    assert place_classes(DIGITS * DIGITS) == ""


def test_a_pair_has_a_paragraph_a_text_each_in_its_direction() -> None:
    html = token_map_html(drawn("a premise", pair="שלום"))
    assert re.findall(r'<p class="xg-text" dir="(\w+)">', html) == ["ltr", "rtl"]


@pytest.mark.parametrize(
    ("text", "expected"), [("abc", "ltr"), ("123 שלום abc", "rtl"), ("«مكتبة»", "rtl"), ("…!?", "ltr"), ("", "ltr")]
)
def test_the_first_letter_gives_the_direction(text: str, expected: str) -> None:
    assert direction(text) == expected


def test_a_cut_text_ends_in_words_and_not_in_its_rest() -> None:
    example = Example("a b and a very long rest")
    made = explanation(Example("a b"), truncated=6)
    view = TokenMap(units(made.tokens, made.scores, example), (example.text,), True, "good", made.truncated)
    html = token_map_html(view)
    assert "the rest was cut off" in html
    assert "very long rest" not in html
