"""Maps as HTML: what is shown, in which color, and that text stays text."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from components.palette import STEPS
from components.styles import DIGITS, place_classes, same_unit_rules, unit_selector
from components.widgets.token_map import TokenMap, direction, legend_html, tip, token_map_html
from components.widgets.token_map.svg import maps_svg
from engine.request import Example
from engine.word_units import units
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
    assert set(seen.tags) == {"div", "p", "bdi", "span", "b"}
    assert seen.names - {"data-x"} == {"class", "style", "dir", "data-v", "data-r"}
    assert seen.text == f"[CLS] {text} [SEP]{text} [SEP]"


def test_the_class_name_is_escaped_in_the_legend() -> None:
    html = legend_html(drawn("a b", target="<i>x</i>"))
    assert "<i>x" not in html
    assert "&lt;i&gt;x" in html


def test_colors_are_centerd_at_zero_and_the_largest_scores_end_the_scale() -> None:
    html = token_map_html(drawn("a b c d", [0.5, -0.5, 1.0, 0.0]))
    tones = re.findall(r'<b class="?(?:(\w\d+) )?j\w\b', html)
    assert tones == [f"f{STEPS // 2}", f"a{STEPS // 2}", f"f{STEPS}", ""]


def test_an_unsigned_map_has_one_color() -> None:
    view = drawn("a b", [1.0, 3.0], signed=False)
    assert re.findall(r'<b class="(\w)(\d+) ', token_map_html(view)) == [("m", "7"), ("m", str(STEPS))]
    assert "0 to 3, without sign" in legend_html(view)


def test_the_legend_names_both_ends_and_the_class() -> None:
    assert "\u22120.25 against, +0.25 for <bdi>good</bdi>" in legend_html(drawn("a b", [0.25, -0.1]))


def test_a_map_of_zeros_says_so_in_words() -> None:
    view = drawn("a b", [0.0, 0.0])
    assert "All scores are zero" in legend_html(view)
    assert re.findall(r"<b class=(\S+)", token_map_html(view)) == ["j1", "j2"]


def test_special_tokens_are_grey_unranked_and_do_not_stretch_the_scale() -> None:
    example = Example("a b")
    made = explanation(example, [1.0, -2.0])
    scores = made.scores.copy()
    scores[0] = 99.0
    view = TokenMap(units(made.tokens, scores, example), ("a b",), True, "good")
    assert view.largest == 2.0
    assert view.ranks == (0, 2, 1, 0)
    assert '<span class=xi0><bdi class="xg-special j0" data-v="[CLS]: +99">' in token_map_html(view)
    assert tip(view, 0) == "[CLS]: +99 · special token, not ranked · index 0"


def test_hovering_says_the_token_its_value_rank_and_index() -> None:
    view = drawn("a b c", [0.1234, -2.0, 0.1234])
    assert tip(view, 2) == "b: \u22122 · rank 1 of 3 · index 2"
    assert tip(view, 1) == "a: +0.123 · rank 2 of 3 · index 1"
    assert tip(view, 3) == "c: +0.123 · rank 2 of 3 · index 3", "equal scores share the better rank"


def test_the_parts_of_the_hover_text_are_with_the_unit() -> None:
    """The style sheet puts them together; that they give `tip` is tested in a browser."""
    view = drawn("a b c", [0.1234, -2.0, 0.1234])
    html = token_map_html(view)
    assert "style=\"--n:'3'\"" in html
    parts = re.findall(r'data-v="(\w: \S+)" data-r=(\d)>', html)
    assert [f"{value} · rank {rank} of 3 · index {at}" for at, (value, rank) in enumerate(parts, start=1)] == [
        tip(view, position) for position in (1, 2, 3)
    ]


def test_an_index_that_is_not_the_position_is_spelled_out() -> None:
    example = Example("films are re made")
    made = explanation(example, pieces=r"film|s|are|re|made")
    view = TokenMap(units(made.tokens, made.scores, example, "word"), (example.text,), True, "good")
    html = token_map_html(view)
    assert re.findall(r'<b[^>]*?(?: data-x="?([^">]*)"?)?>(\w+)<', html) == [
        ("1 to 2, 2 tokens", "films"), ("3", "are"), ("4", "re"), ("5", "made"),
    ]  # fmt: skip
    assert tip(view, 1).endswith("index 1 to 2, 2 tokens")


def test_marks_need_no_number() -> None:
    marks = replace(drawn("a b", [0.0, 1.0], signed=False), marks=True)
    assert set(re.findall("data-[a-z]", token_map_html(marks))) == {"data-v"}
    assert [tip(marks, n) for n in range(3)] == [
        "[CLS]: special token · index 0", "a: not marked · index 1", "b: marked · index 2",
    ]  # fmt: skip


def test_a_unit_has_the_same_place_in_every_map_and_no_two_share_one() -> None:
    text = "word " * 600
    first, second = (token_map_html(drawn(text, [score] * 600)) for score in (1.0, -2.0))
    assert places_of(first) == places_of(second) == [divmod(n, DIGITS) for n in range(602)]
    assert all(f".{name}" in same_unit_rules() for n in range(DIGITS * DIGITS) for name in place_classes(n))


def places_of(html: str) -> list[tuple[int, int]]:
    """What a listener reads: the high digit around units, the low one on each."""
    highs = [int(digit) for digit in re.findall(r"\bxi(\d+)\b", html)]
    lows = [int(digit, DIGITS) for digit in re.findall(r"[ =]j(\w)\b", html)]
    assert len(highs) == -(-len(lows) // DIGITS)
    return [(highs[n // DIGITS], low) for n, low in enumerate(lows)]


def test_a_text_of_thousands_of_units_is_spelled_shortly() -> None:
    """Nine maps of 512 tokens, with values of both signs and full length."""
    text = " ".join(f"word{n % 7}" for n in range(510))
    html = token_map_html(drawn(text, [(-1) ** n * 1.2345e-3 / (n + 1) for n in range(510)]))
    assert html.count("<b ") == 510
    assert 9 * len(html.encode()) < 300_000


def test_a_last_special_token_hangs_and_the_others_do_not() -> None:
    html = token_map_html(drawn("a", pair="b"))
    assert re.findall(r'<bdi class="xg-special (?:(xg-hang) )?j\w\b', html) == ["", "xg-hang", "xg-hang"]
    cut = replace(drawn("a and a rest"), truncated=3)
    assert "xg-hang" in token_map_html(cut), "all of this text was read"


@pytest.mark.parametrize(("position", "selector"), [(0, ":is(.xi0 .j0, .xi0.j0)"), (37, ":is(.xi1 .j5, .xi1.j5)")])
def test_a_unit_is_found_by_its_position(position: int, selector: str) -> None:
    assert unit_selector(position) == selector
    assert unit_selector(DIGITS * DIGITS) == ":not(*)"


def test_what_has_no_place_of_its_own_is_not_lit() -> None:
    assert place_classes(DIGITS * DIGITS - 1) == (f"xi{DIGITS - 1}", "jv")
    assert place_classes(DIGITS * DIGITS) == ("", "")


def test_a_pair_has_a_paragraph_a_text_each_in_its_direction() -> None:
    html = token_map_html(drawn("a premise", pair="שלום"))
    assert re.findall(r'<p class="xg-text" dir="(\w+)">', html) == ["ltr", "rtl"]


@pytest.mark.parametrize(
    ("text", "expected"), [("abc", "ltr"), ("123 שלום abc", "rtl"), ("«مكتبة»", "rtl"), ("…!?", "ltr"), ("", "ltr")]
)
def test_the_first_letter_gives_the_direction(text: str, expected: str) -> None:
    assert direction(text) == expected


def test_a_cut_prompt_begins_in_words_and_not_with_what_was_not_read() -> None:
    text = "a very long start a b"
    made = explanation(Example("a b"))
    read = [
        replace(unit, start=unit.start + 18, end=unit.end + 18)
        for unit in units(made.tokens, made.scores, Example("a b"))
        if not unit.special
    ]
    view = TokenMap(tuple(read), (text,), True, "good", 4)
    html = token_map_html(view)
    assert re.sub("<[^>]*>", "", html).startswith("4 tokens not read … a b")
    assert "very" not in html
    drawn_file = maps_svg([("Title", view)], [], dark=False)
    assert "cut off …" in drawn_file
    assert "very" not in drawn_file
    whole = token_map_html(replace(view, truncated=0))
    assert "not read" not in whole
    assert "a very long start" in whole, "what no token covers stays"


def test_a_cut_text_ends_in_words_and_not_in_its_rest() -> None:
    example = Example("a b and a very long rest")
    made = explanation(Example("a b"), truncated=6)
    view = TokenMap(units(made.tokens, made.scores, example), (example.text,), True, "good", made.truncated)
    html = token_map_html(view)
    assert "the rest was cut off" in html
    assert "not read" not in html
    assert "very long rest" not in html
