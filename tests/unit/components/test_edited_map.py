"""An edited text beside its parent: columns, frames, one scale, what changed in words, that text stays text."""

from __future__ import annotations

import re
from html import unescape

import pytest

from components.palette import STEPS
from components.widgets.token_map.edited import (
    EditedMap,
    change_html,
    edited_map,
    edited_map_html,
    how_to_read_html,
    largest_html,
    order_words,
    predictions_html,
)
from components.widgets.view_options import ViewOptions
from engine.registry import explainer
from engine.request import Example, Prompt
from engine.result import Prediction
from tests.unit.components.making import explanation
from tests.unit.components.test_token_map import HARD, Reader

Pair = tuple[str | None, str | None]
ARROW = "\u2192"


def view(
    old: str, new: str, before: list[float] | None = None, after: list[float] | None = None, *,
    method: str = "occlusion", unit: str = "token", look: ViewOptions | None = None, pairs: Pair = (None, None),
) -> EditedMap:  # fmt: skip
    parent, child = Example(old, pairs[0]), Example(new, pairs[1])
    made = explanation(parent, before), explanation(child, after)
    return edited_map(explainer(method), *made, parent, child, unit, look or ViewOptions())


def columns(html: str) -> list[tuple[str, str]]:
    """What stands above and below in each column; special tokens and the names of the lines included."""
    found = re.findall(r'<span class="?(?:xg-col[^>"]*)"?>(.*?)</span>', html)
    cells = [re.findall(r"<[bi][^>]*>(.*?)</[bi]>", column) for column in found]
    return [(unescape(above), unescape(below)) for above, below in cells]


def test_both_versions_share_their_columns() -> None:
    html = edited_map_html(view("a warm film", "a really cold film"))
    assert columns(html) == [
        ("before", "after"),
        ("[CLS]", "[CLS]"),
        ("a", "a"),
        ("warm", "really"),
        ("–", "cold"),
        ("film", "film"),
        ("[SEP]", "[SEP]"),
    ]
    assert html.count("xg-changed") == 2


def test_one_scale_for_both_lines() -> None:
    html = edited_map_html(view("a b", "a c", [1.0, -0.5], [-2.0, 0.0]))
    tones = re.findall(r"<b(?: class=(\w+))? data-tip=\"[^\"]*\">(\w)</b>", html)
    assert tones == [(f"f{STEPS // 2}", "a"), (f"a{STEPS}", "a"), (f"a{STEPS // 4}", "b"), ("", "c")]
    assert "\u22122 against, +2 for" in html


def test_a_shared_scale_of_the_page_is_not_claimed_here() -> None:
    html = edited_map_html(view("a b", "a c", look=ViewOptions(scale="shared")))
    assert "own scale" not in html
    assert "one scale for both lines" in html


def test_pieces_of_a_word_stand_together() -> None:
    html = edited_map_html(view("one, two", "one two"))
    apart = re.findall(r'<span class="?xg-col( xg-apart)?[^>]*><b[^>]*>([^<]*)<', html)
    assert apart == [
        (" xg-apart", "[CLS]"),
        (" xg-apart", "one"),
        ("", ","),
        (" xg-apart", "two"),
        (" xg-apart", "[SEP]"),
    ]


def test_hovering_says_what_each_map_says() -> None:
    html = edited_map_html(view("a b", "a b c", [0.5, -1.0], [0.25, 0.0, 1.0]))
    assert "a: +0.5 · rank 2 of 2 · index 1" in html
    assert "a: +0.25 · rank 2 of 3 · index 1" in html


def test_words_and_values_follow_the_page() -> None:
    html = edited_map_html(view("well-made film", "well-made films", unit="word", look=ViewOptions(values=True)))
    assert columns(html)[2:4] == [("well-made", "well-made"), ("film", "films")]
    assert "xg-pair xg-values" in html
    assert html.count("data-b=") == 4
    assert "1 unchanged word" in html


def test_a_pair_has_a_paragraph_a_text() -> None:
    html = edited_map_html(view("a", "a", pairs=("b c", "b d")))
    assert html.count("<p dir=") == 2
    assert html.count("xg-versions") == 2
    assert "xg-changed" not in html[: html.rindex("xg-versions")]
    only = edited_map_html(view("a", "a", pairs=(None, "שלום")))
    assert re.findall(r'<p dir="(\w+)"', only) == ["ltr", "rtl"]
    assert len(re.findall(r"<b[^>]* dir=ltr[^>]*>\[\w+\]", only)) == only.count("xg-special"), "never mirrored"


@pytest.mark.parametrize("text", HARD)
def test_text_stays_text(text: str) -> None:
    seen = Reader(edited_map_html(view(text, f"{text} x", pairs=(text, text))))
    assert set(seen.tags) <= {"div", "p", "bdi", "span", "b", "i"}
    assert seen.names <= {"class", "dir", "data-tip"}


def test_the_order_of_what_was_kept() -> None:
    same = view("a b c", "a b c d", [1.0, 2.0, 3.0], [2.0, 4.0, 6.0, 0.0])
    assert order_words(same) == "ρ = +1 over 3 unchanged tokens"
    turned = view("a b c", "x a b c", [1.0, 2.0, 3.0], [0.0, 3.0, 2.0, 1.0])
    assert order_words(turned) == "ρ = \u22121 over 3 unchanged tokens"


def test_why_there_is_no_order() -> None:
    assert order_words(view("a b", "a b c")) == "2 unchanged tokens: too few to compare their order"
    assert order_words(view("a", "b")) == "no unchanged tokens: too few to compare their order"
    flat = view("a b c", "a b c d", [1.0, 1.0, 1.0], [1.0, 2.0, 3.0, 4.0])
    assert order_words(flat) == "3 unchanged tokens: no order, because all scores are equal"


def test_the_largest_change_names_its_token() -> None:
    changed = view("<a> b", "<a> b c", [1.0, -2.0, 1.0, 0.25], [1.0, -2.0, 1.0, -0.5, 9.0])
    assert largest_html(changed) == f"largest change: “<bdi>b</bdi>” +0.25 {ARROW} \u22120.5"
    assert largest_html(view("a", "b")) == ""
    assert largest_html(view("a b", "a b c", [1.0, 2.0], [1.0, 2.0, 3.0])) == "no score of an unchanged token changed"
    unsigned = view("a", "a c", [0.5], [0.25, 0.0], method="attention_mean")
    assert largest_html(unsigned) == f"largest change: “<bdi>a</bdi>” 0.5 {ARROW} 0.25"


def test_the_largest_change_names_the_word_of_a_piece() -> None:
    parent, child = Example("an inventive film"), Example("an inventive book")
    made = [explanation(one, [0.0, 0.0, last, 0.0, 0.0], pieces=r"\w{1,4}") for one, last in ((parent, 1), (child, 2))]
    for unit, named in (("token", "“<bdi>ntiv</bdi>” of “<bdi>inventive</bdi>”"), ("word", "“<bdi>inventive</bdi>”")):
        changed = edited_map(explainer("occlusion"), *made, parent, child, unit)
        assert largest_html(changed) == f"largest change: {named} +1 {ARROW} +2"


def two(positive: float) -> Prediction:
    return Prediction(("negative", "positive"), (1 - positive, positive), (1 - positive, positive))


def test_the_change_of_the_prediction_in_words() -> None:
    stays, turns = change_html(two(0.9), two(0.6), 1), change_html(two(0.9), two(0.0001), 1)
    assert "90.0% → 60.0%, <b>\u221230.0 percentage points</b>" in stays
    assert "The predicted class stays <bdi>positive</bdi>." in stays
    assert "The more probable of the two tokens stays <bdi>" in change_html(two(0.9), two(0.6), 1, "contrast")
    assert "→ &lt;\u00a00.1%" in turns
    assert "The predicted class changes from <bdi>positive</bdi> to <bdi>negative</bdi>." in turns


def test_a_regression_head_changes_its_score() -> None:
    before, after = (Prediction(("quality",), (value,), (value,), regression=True) for value in (0.5, 0.75))
    assert change_html(before, after, 0) == "The score <bdi>quality</bdi> goes from +0.5 to +0.75, by <b>+0.25</b>."


def test_both_predictions_have_their_classes_in_one_order() -> None:
    html = predictions_html(two(0.9), two(0.2), 1)
    assert re.findall(r"xg-label[^>]*>(\w+)<", html) == ["positive", "negative"] * 2


def test_it_is_said_which_class_both_maps_explain() -> None:
    made = explanation(Example("a b"), labels=("bad", "<good>"))
    html = how_to_read_html(made, Example("a b"), "word")
    assert "the same class, <bdi>&lt;good&gt;</bdi>, even where another is predicted" in html
    assert "the same token, <bdi>&lt;good&gt;</bdi>, even where another is" in how_to_read_html(
        made, Prompt("a"), "word"
    )
    contrast = Prompt("a b", target=" good", contrast=" bad")
    assert "the same contrast, <bdi>&lt;good&gt; rather than ·bad</bdi>, so" in how_to_read_html(made, contrast, "word")
