"""Numbers in a link of pictures: whatever somebody writes there is a number that is allowed, or one short sentence."""

from __future__ import annotations

import pytest

from components.images.state import PictureViewOptions, read_state
from components.inputs.datasets import OpenPictures, open_pictures
from components.links import MOST_SEED
from engine.registry import all_explainers

METHODS = all_explainers("image")
MODELS = ["scenes-vit"]
HUGE = "9" * 5000
"""More digits than Python reads as a number."""


@pytest.fixture(scope="module")
def opened() -> OpenPictures:
    return open_pictures("scenes")


@pytest.mark.parametrize(
    ("name", "given", "usual"),
    [
        ("seed", HUGE, "0 is used."),
        ("seed", str(MOST_SEED + 1), "0 is used."),
        ("index", HUGE, "The first picture is shown."),
        ("pin", HUGE, "Nothing is pinned."),
        ("pin", f"3,{HUGE}", "Nothing is pinned."),
        ("pin", "1000000", "Nothing is pinned."),
        ("opacity", HUGE, "70 is used."),
        ("opacity", "0100000", "70 is used."),
        ("opacity", "101", "70 is used."),
        ("gamma", HUGE, "1 is used."),
        ("occlusion.window", HUGE, "The default is used."),
        ("random.seed", HUGE, "The default is used."),
    ],
)
def test_a_number_too_large_is_one_short_sentence(opened: OpenPictures, name: str, given: str, usual: str) -> None:
    state, [sentence] = read_state({name: [given], "method": ["random"]}, MODELS, METHODS, opened)
    assert name.partition(".")[0] in sentence
    assert sentence.endswith(usual)
    assert len(sentence) < 250
    assert (state.seed, state.pins, state.view, state.focus.index) == (0, (), PictureViewOptions(), 0)


def test_zeros_before_a_number_change_nothing(opened: OpenPictures) -> None:
    link = {"seed": ["007"], "pin": ["00,0012"], "opacity": ["0055"], "index": ["0" * 5000 + "3"], "method": ["random"]}
    state, said = read_state(link, MODELS, METHODS, opened)
    assert (state.seed, state.pins, state.view.opacity, state.focus.index, said) == (7, (0, 12), 55, 3, [])
