"""What a participant sees of an explanation: colors of one scale, and nothing that tells how it was made."""

from __future__ import annotations

import io
import re
from base64 import b64decode
from html import unescape

import numpy as np
import pytest
from PIL import Image

from components.ballot_maps import explanation_html, input_html, scale_html
from components.palette import STEPS, THEMES, Theme
from components.widgets.patch_map import PatchMap, overlay
from engine.request import Example, Picture
from engine.result import Token
from engine.study.ballots import BallotMap
from engine.study.design import COLORS
from tests.unit.components.making import encoded, special

TEXT = "the actors are warm, but the story is thin"
HOSTILE = "<img src=x onerror=boom()> & <b>bold</b>"
NUMBER = re.compile(r"\d[.,]\d|data-[vrbx]=")
PICTURE = Picture(np.zeros((16, 24, 3), np.uint8))


def text_map(scores: np.ndarray | None = None, text: str = TEXT, truncated: int = 0, colors: str = "sign") -> BallotMap:
    tokens = encoded(Example(text))
    given = np.linspace(-1, 1, len(tokens)) if scores is None else scores
    given = np.where([token.special for token in tokens], 0, given)
    return BallotMap("A", tokens, given, None, truncated, colors)


def picture_map(scores: np.ndarray) -> BallotMap:
    """Before the patches the model reads a position of its own, which no picture shows."""
    tokens = (special("[CLS]"), *(Token("", 0, 0, 0, False) for _ in range(scores.size)))
    return BallotMap("B", tokens, np.array([0.0, *scores.ravel()]), scores.shape, 0, "sign")


def text_of(html: str) -> str:
    return unescape(re.sub("<[^>]*>", "", html))


def colored(html: str) -> dict[str, int]:
    """Each colored part of a text with its step, negative where it is against."""
    found = re.findall(r"<b class=\"?([fa])(\d+)[^>]*>([^<]*)<", html)
    return {part: int(step) if side == "f" else -int(step) for side, step, part in found}


def test_a_text_stays_as_it_is_and_special_tokens_are_not_shown() -> None:
    assert text_of(explanation_html(Example(TEXT), text_map())) == TEXT
    assert text_of(input_html(Example(TEXT))) == TEXT


def test_colors_are_shares_of_one_scale_for_every_map() -> None:
    scores = np.zeros(len(encoded(Example(TEXT))))
    scores[2:5] = 1.0, -0.5, 0.24
    assert colored(explanation_html(Example(TEXT), text_map(scores))) == {
        "actors": STEPS,
        "are": -STEPS // 2,
        "warm": round(0.24 * STEPS),
    }
    half = explanation_html(Example(TEXT), text_map(scores / 2))
    assert colored(half)["actors"] == STEPS // 2


def test_no_number_of_a_map_is_sent() -> None:
    scores = np.random.default_rng(0).normal(size=(4, 6))
    for html in (explanation_html(Example(TEXT), text_map()), explanation_html(PICTURE, picture_map(scores))):
        assert not NUMBER.search(re.sub("base64,[^)]*", "", html))
        assert "tabindex" not in html


def test_scores_that_differ_by_less_than_a_step_give_the_same_page() -> None:
    near = np.array([[0.5, -0.25], [1.0, 0.0]])
    one, other = (explanation_html(PICTURE, picture_map(near + shift)) for shift in (0.0, -0.004))
    assert one == other


@pytest.mark.parametrize("theme", THEMES)
def test_a_picture_has_the_colors_of_the_palette_and_no_metadata(theme: Theme) -> None:
    scores = np.array([[0.5, -1.0, 0.0], [0.25, -0.5, 1e-5]])
    html = explanation_html(PICTURE, picture_map(scores))
    files = re.findall(r"base64,([^)]*)\)", html)
    image = Image.open(io.BytesIO(b64decode(files[THEMES.index(theme)])))
    assert set(image.info) <= {"transparency"}
    expected = overlay(PatchMap(scores, True, "", end=1.0), theme)
    shown = np.asarray(image.convert("RGBA"))
    np.testing.assert_array_equal(shown[..., 3], expected[..., 3])
    np.testing.assert_array_equal(shown[expected[..., 3] > 0], expected[expected[..., 3] > 0])


def test_the_strongest_parts_are_told_in_words() -> None:
    scores = np.zeros(len(encoded(Example(TEXT))))
    scores[2:5] = 0.2, -0.5, 1.0
    assert "Strongest: warm (for), are (against), actors (for)." in explanation_html(Example(TEXT), text_map(scores))
    patches = explanation_html(PICTURE, picture_map(np.array([[0.0, -1.0], [0.5, 0.0]])))
    assert "Strongest: row 1, column 2 (against), row 2, column 1 (for)." in patches
    assert "Nothing is colored." in explanation_html(PICTURE, picture_map(np.zeros((2, 2))))


def test_texts_and_names_are_escaped() -> None:
    shown = explanation_html(Example(HOSTILE), text_map(text=HOSTILE))
    assert text_of(shown) == text_of(input_html(Example(HOSTILE))) == HOSTILE
    for html in (shown, input_html(Example(HOSTILE)), scale_html(HOSTILE, "sign"), scale_html(HOSTILE, "rank")):
        assert "<img" not in html
        assert "<b>bold" not in html


def test_a_pair_is_two_paragraphs_and_a_cut_text_says_so() -> None:
    pair = Example("one is here", "two is there")
    tokens = encoded(pair)
    drawn = BallotMap("A", tokens, np.zeros(len(tokens)), None, 0, "sign")
    for html in (input_html(pair), explanation_html(pair, drawn)):
        assert [unescape(re.sub("<[^>]*>", "", one)) for one in re.findall("<p.*?</p>", html)] == [
            pair.text,
            pair.text_pair,
        ]
    kept = encoded(Example("one two"))
    cut = BallotMap("A", kept, np.zeros(len(kept)), None, 5, "sign")
    assert text_of(explanation_html(Example("one two three"), cut)).endswith("the rest was cut off")


def test_the_scale_names_the_class_only_where_it_may_be_told() -> None:
    assert "for <bdi>good</bdi>" in scale_html("good", "sign")
    assert "for the model's answer" in scale_html(None, "sign")
    for colors in COLORS:
        assert "good" not in scale_html(None, colors)


def test_a_scale_without_signs_runs_from_least_to_most() -> None:
    for colors in ("rank", "size"):
        assert "<b>matters least</b><span>matters most</span>" in scale_html("good", colors)
    assert "matters least" not in scale_html("good", "sign")


def test_the_scale_names_the_colors() -> None:
    for colors in COLORS:
        html = scale_html(None, colors)
        assert ("teal" in html) == (colors != "sign")
        assert ("Blue parts speak for the answer, orange parts against it." in html) == (colors == "sign")


def test_without_signs_nothing_says_for_or_against() -> None:
    scores = np.linspace(0, 1, len(encoded(Example(TEXT))))
    for colors in ("rank", "size"):
        for html in (explanation_html(Example(TEXT), text_map(scores, colors=colors)), scale_html("good", colors)):
            assert "against <" not in html
            assert "(for)" not in html
        assert "Strongest: thin, is, story." in explanation_html(Example(TEXT), text_map(scores, colors=colors))
