"""Colors: legible in both themes, even in lightness, the same on both sides of zero."""

from __future__ import annotations

import re

import pytest

from components.palette import PALETTES, SIDES, STEPS, THEMES, Side, Theme, color, contrast, lightness, step_of
from components.styles import TONES, stylesheet

LEGIBLE = 4.5


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("side", SIDES)
def test_text_is_legible_on_every_step(theme: Theme, side: Side) -> None:
    ratios = [contrast(PALETTES[theme].text, color(theme, side, step)) for step in range(STEPS + 1)]
    assert min(ratios) >= LEGIBLE


@pytest.mark.parametrize("theme", THEMES)
def test_muted_text_is_legible_on_the_ground_and_on_special_tokens(theme: Theme) -> None:
    palette = PALETTES[theme]
    assert contrast(palette.muted, palette.ground) >= LEGIBLE
    assert contrast(palette.muted, palette.special) >= LEGIBLE
    assert contrast(palette.ground, palette.text) >= LEGIBLE
    assert contrast(palette.ground, palette.link) >= LEGIBLE


@pytest.mark.parametrize("theme", THEMES)
def test_both_sides_of_zero_are_equally_strong_and_start_at_the_ground(theme: Theme) -> None:
    for step in range(STEPS + 1):
        difference = lightness(color(theme, "for", step)) - lightness(color(theme, "against", step))
        assert abs(difference) < 0.005
    assert {color(theme, side, 0) for side in SIDES} == {PALETTES[theme].ground}


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("side", SIDES)
def test_each_step_moves_the_same_way_in_lightness(theme: Theme, side: Side) -> None:
    values = [lightness(color(theme, side, step)) for step in range(STEPS + 1)]
    assert values == sorted(values, reverse=theme == "light")
    assert len({round(value, 3) for value in values}) == STEPS + 1


@pytest.mark.parametrize("theme", THEMES)
def test_against_is_orange_and_for_is_blue_never_red_or_green(theme: Theme) -> None:
    red, green, blue = (int(color(theme, "against", STEPS)[at : at + 2], 16) for at in (1, 3, 5))
    assert red > green > blue
    assert green > 0.4 * red, "an orange, not a red"
    red, green, blue = (int(color(theme, "for", STEPS)[at : at + 2], 16) for at in (1, 3, 5))
    assert blue > green > red


@pytest.mark.parametrize(
    ("score", "largest", "step"),
    [(0.0, 1.0, 0), (1.0, 1.0, STEPS), (-1.0, 1.0, STEPS), (0.5, 1.0, STEPS // 2), (0.0, 0.0, 0), (2.0, 1.0, STEPS)],
)
def test_a_score_takes_the_step_of_its_share(score: float, largest: float, step: int) -> None:
    assert step_of(score, largest) == step


@pytest.mark.parametrize(
    ("one", "other", "ratio"), [("#000000", "#ffffff", 21), ("#777777", "#777777", 1), ("#767676", "#ffffff", 4.54)]
)
def test_the_contrast_ratio_is_that_of_the_standard(one: str, other: str, ratio: float) -> None:
    assert contrast(one, other) == pytest.approx(ratio, abs=0.01)


def test_the_style_sheet_defines_every_step_once_and_reaches_nowhere() -> None:
    for theme in ("light", "dark", "auto"):
        sheet = stylesheet(theme)
        assert sheet.startswith("<style>")
        assert sheet.endswith("</style>")
        for side in SIDES:
            assert re.findall(rf"\.{TONES[side]}(\d+)\{{", sheet) == [str(step) for step in range(1, STEPS + 1)]
        assert "url(" not in sheet
        assert "@import" not in sheet
    assert "light-dark(" in stylesheet("auto")
    assert "light-dark(" not in stylesheet("dark")
    assert color("dark", "for", STEPS) in stylesheet("dark")


def test_every_color_name_that_the_layout_uses_is_defined() -> None:
    sheet = stylesheet("light")
    used, defined = set(re.findall(r"var\((--xg-[\w-]+)\)", sheet)), set(re.findall(r"(--xg-[\w-]+):#", sheet))
    assert used <= defined
