"""Colours of heads: seen on their ground, and told apart by people without red or green cones."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from components.attention.head_colours import PLACES, head_colour, head_colour_rules
from components.palette import PALETTES, THEMES, Theme, contrast

TWELVE = 12
APART = 0.055
"""Distance in OKLab; about 0.02 is seen between two colours side by side."""
VISIBLE = 2.5
# Linear RGB as people without red, or without green cones see it (Machado, Oliveira and Fernandes, 2009, table 1).
SIGHTS = {
    "all cones": np.eye(3),
    "no red cones": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "no green cones": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}
# OKLab by its definition (Ottosson, 2020).
TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def lab(colour: str, sight: str) -> np.ndarray:
    channels = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    found: np.ndarray = TO_LAB @ np.cbrt(TO_CONES @ np.clip(SIGHTS[sight] @ linear, 0, 1))
    return found


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("sight", SIGHTS)
def test_twelve_heads_are_told_apart(theme: Theme, sight: str) -> None:
    colours = [lab(head_colour(theme, head), sight) for head in range(TWELVE)]
    assert min(float(np.linalg.norm(one - other)) for one, other in combinations(colours, 2)) > APART


@pytest.mark.parametrize("theme", THEMES)
def test_each_is_seen_on_its_ground_and_is_another_one(theme: Theme) -> None:
    colours = [head_colour(theme, head) for head in range(len(PLACES))]
    assert len(set(colours)) == len(PLACES) == 16
    assert min(contrast(colour, PALETTES[theme].ground) for colour in colours) > VISIBLE


def test_the_page_has_both_themes_and_the_17th_head_the_first_colour() -> None:
    assert f"--xg-head-3:light-dark({head_colour('light', 3)},{head_colour('dark', 3)})" in head_colour_rules()
    assert head_colour("dark", 16) == head_colour("dark", 0)
