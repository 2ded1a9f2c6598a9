"""Maps of pictures: colors, ranks, sizes and words against what is known by hand."""

from __future__ import annotations

import io
import re
from base64 import b64decode
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from components.method_row import Placeholder
from components.palette import PALETTES, SIDES, STEPS, THEMES, Side, Theme, color, translucent_color
from components.widgets.patch_map import (
    PatchCard,
    PatchMap,
    legend_html,
    outline_path,
    overlay,
    patch_card,
    patch_card_html,
    patches_html,
    picture_card_html,
    picture_sheet,
    picture_style,
    quiet_card_html,
    sentence,
    tip,
)
from components.widgets.view_options import ViewOptions
from engine.registry import explainer
from engine.request import Example
from engine.result import Check
from tests.unit.components.making import explanation

SCORES = np.array([[0.5, -1.0, 0.0], [0.25, -0.5, 1e-5]])
HOSTILE = '<img src=x onerror="boom()">&"'
MINUS = "\u2212"


def drawn(
    scores: np.ndarray = SCORES, signed: bool = True, look: ViewOptions | None = None, **more: object
) -> PatchMap:
    return PatchMap(scores, signed, "fish", look or ViewOptions(), **more)


def over(pixel: np.ndarray, ground: str) -> np.ndarray:
    """An RGBA pixel over a color, by the rule of alpha compositing."""
    below, share = np.array([int(ground[at : at + 2], 16) for at in (1, 3, 5)]), pixel[3] / 255
    return share * pixel[:3] + (1 - share) * below


def steps(view: PatchMap) -> list[int]:
    """The steps of a map of one row."""
    return [round(STEPS * alpha / 255) for alpha in overlay(view, "light")[0, :, 3].tolist()]


def rgb(value: str) -> np.ndarray:
    return np.array([int(value[at : at + 2], 16) for at in (1, 3, 5)])


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("side", SIDES)
def test_over_the_ground_each_step_is_the_color_of_the_palette(theme: Theme, side: Side) -> None:
    seen = [translucent_color(theme, side, step) for step in range(STEPS + 1)]
    for step, pixel in enumerate(seen):
        shown = over(np.array(pixel), PALETTES[theme].ground)
        assert np.abs(shown - rgb(color(theme, side, step))).max() <= 0.5
    assert [pixel[3] for pixel in seen] == [round(255 * step / STEPS) for step in range(STEPS + 1)]


@pytest.mark.parametrize("theme", THEMES)
def test_each_patch_has_the_color_of_its_score(theme: Theme) -> None:
    found = overlay(drawn(), theme)
    expected = [[("for", 10), ("against", 20), ("for", 0)], [("for", 5), ("against", 10), ("for", 0)]]
    assert found.tolist() == [[list(translucent_color(theme, *place)) for place in row] for row in expected]


def test_without_sign_there_is_one_hue_and_gamma_and_a_shared_end_move_the_steps() -> None:
    amounts = drawn(np.array([[0.0, 1.0, 4.0]]), signed=False)
    assert steps(amounts) == [0, 5, 20]
    assert overlay(amounts, "light")[0, 2].tolist() == list(translucent_color("light", "amount", STEPS))
    assert steps(drawn(amounts.scores, signed=False, look=ViewOptions(gamma=0.5))) == [0, 10, 20]
    assert steps(drawn(amounts.scores, signed=False, end=8.0)) == [0, 2, 10]


@pytest.mark.parametrize("theme", THEMES)
def test_the_picture_in_the_page_has_a_pixel_a_patch(theme: Theme) -> None:
    view = drawn(np.random.default_rng(0).normal(size=(14, 9)))
    urls = re.findall(r"data:image/png;base64,([^)]+)\)", patches_html("a", view))
    with Image.open(io.BytesIO(b64decode(urls[THEMES.index(theme)]))) as file:
        found = np.asarray(file.convert("RGBA"))
    expected = overlay(view, theme)
    np.testing.assert_array_equal(found[..., 3], expected[..., 3])
    np.testing.assert_array_equal(found[expected[..., 3] > 0], expected[expected[..., 3] > 0])


def test_ranks_count_from_the_largest_and_equal_scores_share_the_better_one() -> None:
    assert drawn().ranks == (2, 1, 6, 4, 2, 5)


def test_values_and_ranks_stand_in_the_page_in_few_characters() -> None:
    html = patches_html("a", drawn(np.linspace(-1, 1, 40).reshape(4, 10)))
    assert 'data-v="-1 -.949 ' in html
    ranks = re.findall(r"data-r=(\w+)", html)[0]
    assert [int(ranks[at : at + 2], 36) for at in range(0, 8, 2)] == [1, 3, 5, 7]
    assert "data-g=4x10" in html
    assert 'data-v=".5 -1 0 .25 -.5 1e-05"' in patches_html("a", drawn())


def test_a_tip_says_value_rank_and_place() -> None:
    assert tip(drawn(), 3) == "+0.25 · rank 4 of 6 · row 2, column 1"
    assert tip(drawn(np.array([[0.5, 3.0]]), signed=False), 1) == "3 · rank 1 of 2 · row 1, column 2"


def test_the_sentence_names_the_largest() -> None:
    largest = f"row 1, column 2 {MINUS}1, row 1, column 1 +0.5, row 2, column 2 {MINUS}0.5"
    assert sentence(drawn()) == f"2 rows, 3 columns. Largest: {largest}."
    assert sentence(drawn(np.zeros((1, 2)))) == "1 rows, 2 columns. All scores are zero."


def test_the_legend_says_both_ends() -> None:
    html = legend_html(drawn())
    assert f'<b>{MINUS}1</b><b>+1</b><span>against</span><span title="for fish">for fish</span>' in html
    unsigned = '<b>0</b><b>1</b><span></span><span title="without sign">without sign</span>'
    assert unsigned in legend_html(drawn(signed=False))
    shared = legend_html(drawn(look=ViewOptions(scale="shared", gamma=2.0), end=4.0, sharing="signed maps"))
    assert f"<b>{MINUS}4</b>" in shared
    assert "<p>gamma 2: half the color at 2.83</p><p>scale shared by the signed maps</p>" in shared
    assert "nothing to color" in legend_html(drawn(np.zeros((1, 2))))


@pytest.mark.parametrize(("ends", "own"), [(None, False), ({}, True)])
def test_a_map_is_said_to_have_its_own_scale_only_once_all_are_there(ends: dict[str, float] | None, own: bool) -> None:
    made = replace(explanation(Example("a b"), [0.5, -1.0]), grid=(1, 2))
    card = patch_card(explainer("gradient_x_input", "image"), made, look=ViewOptions(scale="shared"), ends=ends)
    assert ("own scale" in legend_html(card.view)) == own


def test_a_card_tells_in_its_details_where_the_logit_went() -> None:
    parts = {"logit": 2.0, "tokens": 1.0, "biases": 0.5, "positions": 0.25, "softmax": 0.25}
    made = replace(explanation(Example("a b"), extras={"relevance": parts}), grid=(1, 2))
    html = patch_card_html(patch_card(explainer("attn_lrp", "image"), made))
    assert "<dt>logit</dt><dd>2 = 1 (patches and special tokens) + 0.5 (biases) + 0.25 (positions) + " in html


def test_the_outline_runs_along_the_edges_of_the_mask() -> None:
    assert outline_path(np.array([[True, True], [False, True]])) == "M0 0h2M0 1h1M1 2h1M0 0v1M1 1v1M2 0v2"
    assert outline_path(np.zeros((3, 3), bool)) == ""
    frame = np.ones((3, 3), bool)
    frame[1, 1] = False
    assert sorted(re.findall(r"M[^M]+", outline_path(frame))) == sorted(
        ["M0 0h3", "M1 1h1", "M1 2h1", "M0 3h3", "M0 0v3", "M1 1v1", "M2 1v1", "M3 0v3"]
    )


def test_the_picture_enters_the_page_once_and_as_it_is() -> None:
    seen = np.random.default_rng(1).integers(0, 256, (6, 9, 3), dtype=np.uint8)
    style = picture_style(seen)
    url = re.findall(r"data:image/png;base64,([^)]+)\)", style)[0]
    with Image.open(io.BytesIO(b64decode(url))) as file:
        np.testing.assert_array_equal(np.asarray(file), seen)
    assert "--xg-aspect:9/6" in style
    assert "--xg-truth" not in style
    assert "viewBox='0 0 3 2'" in unescape(picture_style(seen, np.ones((2, 3), bool)))


@pytest.mark.parametrize(("side", "crisp"), [(64, "pixelated"), (224, "auto")])
def test_small_pictures_are_enlarged_without_smoothing(side: int, crisp: str) -> None:
    assert f"--xg-crisp:{crisp};" in picture_style(np.zeros((side, side, 3), np.uint8))


def test_a_card_says_all_and_escapes_all() -> None:
    card = PatchCard(
        HOSTILE, PatchMap(SCORES, True, HOSTILE), Check(HOSTILE, 0.5, 0.1), HOSTILE, (HOSTILE,), HOSTILE,
        ((HOSTILE, HOSTILE),), (HOSTILE,),
    )  # fmt: skip
    for html in (
        patch_card_html(card),
        quiet_card_html(Placeholder(HOSTILE, HOSTILE)),
        picture_card_html(HOSTILE, (HOSTILE,)),
    ):
        assert "<img" not in html
        assert 'onerror="' not in html
    assert patch_card_html(card).count("&lt;img") == 12


def test_a_good_check_is_a_mark_with_its_numbers_in_the_details_and_a_bad_one_is_said_at_once() -> None:
    good, bad = (PatchCard("A method", drawn(), Check("gap", value, 0.01), "1 s") for value in (0.003, 0.5))
    head, details = patch_card_html(good).split("<details")
    assert '<p class="xg-small" title="gap: 0.003">✓ checked</p>' in head
    assert "<dt>check</dt><dd>gap: 0.003, good: at most 0.01</dd>" in details
    head, details = patch_card_html(bad).split("<details")
    assert "✗ gap: 0.5, not good (above 0.01)" in head
    assert "<dd>gap: 0.5, not good: above 0.01</dd>" in details


def test_a_card_has_both_numbers_of_a_check() -> None:
    good, bad = (
        patch_card_html(PatchCard("A method", drawn(), Check("gap", 0.003, 0.01, Check("change", value, 0.01)), "1 s"))
        for value in (0.002, 0.5)
    )
    assert 'title="gap: 0.003, change: 0.002">✓ checked</p>' in good
    assert "<dt>check</dt><dd>change: 0.002, good: at most 0.01</dd>" in good
    assert "✗ change: 0.5, not good (above 0.01)" in bad.split("<details")[0]
    assert "<dd>gap: 0.003, good: at most 0.01</dd>" in bad
    assert "<dd>change: 0.5, not good: above 0.01</dd>" in bad


def test_a_card_of_196_patches_is_light() -> None:
    scores = np.random.default_rng(0).normal(size=(14, 14))
    card = PatchCard("Integrated gradients", drawn(scores), Check("completeness gap", 0.003, 0.01), "50 evaluations")
    assert len(patch_card_html(card)) < 4000


def test_the_style_sheet_is_put_into_the_page() -> None:
    def page() -> None:
        from components.widgets.patch_map import use_picture_styles

        use_picture_styles()

    [sheet] = AppTest.from_function(page).run().get("html")
    assert sheet.proto.body == picture_sheet()
    assert sheet.proto.body.startswith("<style>")
