"""Maps of a picture as PNG: layers against a hand-made mixture, sheets whole, and the same bytes each time."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from components.palette import PALETTES, THEMES, Theme, color, step_of
from components.widgets.patch_map import PatchCard, PatchMap
from components.widgets.patch_map.png import EDGE, GAP, Sheet, blended, enlarged, outlined, overlay_png, sheet_png
from components.widgets.view_options import ViewOptions
from engine.result import Check

SCORES = np.array([[1.0, -0.5], [0.0, -0.1]])
VIEW = PatchMap(SCORES, True, "fish")
CARD = PatchCard("Occlusion", VIEW, Check("gap", 0.5, 0.1), "64 evaluations", truth=("overlap 0.5",))
HARD = 'שלום 猫 <b>"\U0001f600\n\x00' + "x" * 300


def seen(side: int = 64) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (side, side, 3), dtype=np.uint8)


def sheet(*cards: PatchCard, **more: object) -> Sheet:
    return Sheet(seen(), cards or (CARD,), ("Explanations of a model", "explained: fish"), ("Cite this.",), **more)


def decoded(file: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(file)) as image:
        return np.asarray(image)


def rgb(value: str) -> np.ndarray:
    return np.array([int(value[at : at + 2], 16) for at in (1, 3, 5)])


def holds(page: np.ndarray, part: np.ndarray, left: int) -> bool:
    """Whether the picture stands on the page, this far from its left."""
    height, width = part.shape[:2]
    tops = range(page.shape[0] - height + 1)
    return any(np.array_equal(page[top : top + height, left : left + width], part) for top in tops)


def test_small_pictures_are_enlarged_by_a_whole_number_and_large_ones_stay() -> None:
    np.testing.assert_array_equal(enlarged(seen(64)), np.kron(seen(64), np.ones((4, 4, 1), np.uint8)))
    np.testing.assert_array_equal(enlarged(seen(224)), seen(224))


@pytest.mark.parametrize("theme", THEMES)
def test_opacity_runs_from_the_picture_to_the_colors_of_the_palette(theme: Theme) -> None:
    np.testing.assert_array_equal(blended(seen(), VIEW, theme, 0), enlarged(seen()))
    whole = blended(seen(), VIEW, theme, 1).astype(int)
    for at, score in np.ndenumerate(SCORES):
        side = "for" if score > 0 else "against"
        patch = whole[128 * at[0] : 128 * at[0] + 128, 128 * at[1] : 128 * at[1] + 128]
        assert np.abs(patch - rgb(color(theme, side, step_of(score, 1.0)))).max() <= 1


def test_half_way_the_layers_are_mixed_as_by_hand() -> None:
    red = np.full((2, 2, 3), (200, 100, 50), np.uint8)
    found = blended(red, PatchMap(np.array([[1.0]]), False, "fish"), "light", 0.5)[0, 0]
    gray = 0.213 * 200 + 0.715 * 100 + 0.072 * 50
    faded = gray + 0.3 * (np.array([200, 100, 50]) - gray)
    veiled = 0.875 * faded + 0.125 * rgb(PALETTES["light"].ground)
    np.testing.assert_allclose(found, 0.5 * veiled + 0.5 * rgb(color("light", "amount", 20)), atol=1)


def test_a_line_of_two_pixels_runs_along_the_edge_within_its_halo() -> None:
    gray = np.full((12, 12, 3), 128, np.uint8)
    found = outlined(gray, np.array([[True, False]]), "#ffffff", "#000000")
    assert found[6, :, 0].tolist() == [255, 0, 128, 128, 0, 255, 255, 0, 128, 128, 128, 128]


@pytest.mark.parametrize("theme", THEMES)
def test_a_sheet_holds_the_picture_and_every_map_side_by_side(theme: Theme) -> None:
    other = replace(CARD, view=PatchMap(-SCORES, True, "fish"))
    page = decoded(sheet_png(sheet(CARD, other), theme))
    assert page[0, 0].tolist() == rgb(PALETTES[theme].ground).tolist()
    assert page.shape[1] == 2 * EDGE + 3 * 256 + 2 * GAP
    for place, part in enumerate((enlarged(seen()), *(blended(seen(), card.view, theme) for card in (CARD, other)))):
        assert holds(page, part, EDGE + place * (256 + GAP))


def test_a_sheet_marks_the_truth_and_the_pins() -> None:
    truth = np.zeros((64, 64), bool)
    truth[:20, 10:30] = True
    text, ground = PALETTES["light"].text, PALETTES["light"].ground
    page = decoded(sheet_png(sheet(truth=truth, pins=(3,)), "light"))
    assert holds(page, outlined(enlarged(seen()), truth, ground, text), EDGE)
    pinned = np.array([[False, False], [False, True]])
    marked = outlined(outlined(blended(seen(), VIEW, "light"), truth, ground, text), pinned, text, ground)
    assert holds(page, marked, EDGE + 256 + GAP)


def test_a_scale_is_drawn_under_its_map_end_to_end() -> None:
    page = decoded(sheet_png(sheet(), "light"))
    left = EDGE + 256 + GAP
    lines = [line for line in page[:, left : left + 256] if (line[0] == rgb(color("light", "against", 20))).all()]
    assert lines
    assert lines[0][-1].tolist() == rgb(color("light", "for", 20)).tolist()
    assert lines[0][128].tolist() == rgb(PALETTES["light"].ground).tolist()


def test_more_cards_than_a_row_has_stand_in_rows() -> None:
    one, many = (decoded(sheet_png(sheet(*(CARD,) * number), "dark")) for number in (3, 17))
    assert one.shape[1] == many.shape[1]
    assert many.shape[0] > 4 * 256
    assert holds(many, blended(seen(), VIEW, "dark"), EDGE)


def test_any_text_and_map_can_be_drawn_and_nothing_is_wider_for_it() -> None:
    view = PatchMap(np.zeros((2, 2)), False, HARD, ViewOptions(gamma=0.5, scale="shared"), 2.0, HARD)
    cards = [
        replace(CARD, title=HARD, cost=HARD, truth=(HARD,), view=replace(view, scores=scores, signed=signed))
        for scores in (SCORES, np.zeros((2, 2)))
        for signed in (True, False)
    ]
    drawn = replace(sheet(*cards), head=(HARD, "", HARD), foot=(HARD,))
    assert decoded(sheet_png(drawn, "light")).shape[1] == 2 * EDGE + 4 * 256 + 3 * GAP


def test_the_same_maps_are_the_same_bytes() -> None:
    assert sheet_png(sheet(pins=(1,)), "light") == sheet_png(sheet(pins=(1,)), "light")
    assert overlay_png(seen(), VIEW, "dark") == overlay_png(seen(), VIEW, "dark")
    np.testing.assert_array_equal(decoded(overlay_png(seen(), VIEW, "dark")), blended(seen(), VIEW, "dark"))
