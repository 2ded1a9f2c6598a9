"""The Images page's link: what is written is read back, and nothing wrong in it goes unsaid."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from components.browse.listing import FILTERS, SORTS, Listing
from components.images.state import START, PictureState, PictureViewOptions, read_state, write_state
from components.inputs.datasets import OpenPictures, open_pictures, read_picture, read_uploaded_picture
from components.inputs.picture_choice import PictureFocus
from components.links import MOST_SEED
from components.state import MEASURES, QUESTIONS
from components.widgets.patch_map import MOST_OPACITY
from components.widgets.view_options import SCALES
from engine.models.catalog import embedded_image_models
from engine.registry import all_explainers
from engine.removal_operators import PATCH_OPERATORS
from engine.store import store_picture

METHODS = all_explainers("image")
MODELS = embedded_image_models()


@pytest.fixture(scope="module")
def opened() -> OpenPictures:
    return open_pictures("scenes")


def at(pictures: OpenPictures, index: int = 0, **others: Any) -> PictureState:
    """A state that looks at an example of the picture set."""
    focus = PictureFocus("model-a", pictures.name, index=index, chosen=read_picture(pictures, index))
    return replace(PictureState(focus=focus, methods=("random",)), **others)


looks = some.builds(
    PictureViewOptions,
    opacity=some.integers(0, MOST_OPACITY),
    outline=some.booleans(),
    gamma=some.sampled_from([0.3, 0.5, 1.0, 1.7, 2.0]),
    scale=some.sampled_from(SCALES),
)
browses = some.builds(
    Listing,
    search=some.text(max_size=20),
    show=some.sampled_from(FILTERS),
    label=some.text(max_size=9),
    sort=some.sampled_from(SORTS),
)
choices = some.fixed_dictionaries(
    {
        "methods": some.lists(some.sampled_from(sorted(METHODS)), unique=True, max_size=4).map(tuple),
        "target": some.none() | some.text(min_size=1, max_size=12),
        "seed": some.integers(0, MOST_SEED),
        "pins": some.sets(some.integers(0, 999_999), max_size=9).map(lambda found: tuple(sorted(found))),
        "view": looks,
        "browse": browses,
        "opened": some.sampled_from([(), ("browse",), ("questions",), ("browse", "questions")]),
        "question": some.sampled_from(QUESTIONS),
        "removal": some.sampled_from(PATCH_OPERATORS),
        "measure": some.sampled_from(MEASURES),
    }
)


@settings(max_examples=60, deadline=None)
@given(chosen=choices, index=some.integers(0, 3))
def test_a_link_reopens_what_it_was_written_from(opened: OpenPictures, chosen: dict[str, object], index: int) -> None:
    state = at(opened, index, **chosen)
    assert read_state(write_state(state), MODELS, METHODS, opened) == (state, [])


def test_parameters_come_back(opened: OpenPictures) -> None:
    state = at(opened, methods=("occlusion", "random"), params={"occlusion": {"removal": "blur"}})
    link = write_state(state)
    assert link["occlusion.removal"] == ["blur"]
    assert read_state(link, MODELS, METHODS, opened) == (state, [])


def test_a_picture_of_ones_own_is_named_by_its_hash(opened: OpenPictures) -> None:
    digest = store_picture(np.arange(4 * 5 * 3, dtype=np.uint8).reshape(4, 5, 3))
    shown = read_uploaded_picture(digest)
    assert shown is not None
    state = replace(at(opened), focus=PictureFocus("model-a", opened.name, picture_sha=digest, chosen=shown), pins=(2,))
    link = write_state(state)
    assert link["picture_sha"] == [digest]
    assert read_state(link, MODELS, METHODS, opened) == (state, [])


def test_a_picture_that_is_gone_is_said_and_takes_its_pins_with_it(opened: OpenPictures) -> None:
    link = {"picture_sha": ["0" * 64], "pin": ["3"], "method": ["random"]}
    state, [sentence] = read_state(link, MODELS, METHODS, opened)
    assert sentence.startswith("picture_sha: ")
    assert (state.pins, state.focus.own, state.focus.index) == ((), False, 0)


def test_a_bare_link_opens_the_embedded_scenes_with_the_usual_methods(opened: OpenPictures) -> None:
    state, said = read_state({}, MODELS, METHODS, opened)
    assert not said
    assert (state.model, state.focus.data, state.focus.index) == ("scenes-vit", "scenes", 0)
    assert state.methods == START
    assert "random" in state.methods


def test_every_usual_method_serves_pictures() -> None:
    assert set(START) <= set(METHODS)


def test_each_mistake_is_said_once_and_the_rest_is_kept(opened: OpenPictures) -> None:
    link = {
        "method": ["nope", "random"], "seed": ["-1"], "index": ["x"], "occlusion.window": ["0"], "other.thing": ["1"],
        "pin": ["a"], "open": ["all"], "removal": ["mask"], "measure": ["r"], "question": ["why"], "show": ["x"],
        "opacity": ["101"], "outline": ["maybe"], "gamma": ["9"], "scale": ["log"],
    }  # fmt: skip
    state, said = read_state(link, MODELS, METHODS, opened)
    assert [sentence.partition(":")[0] for sentence in said] == [
        "index", "opacity", "outline", "gamma", "scale", "method", "seed", "pin", "show", "open", "question",
        "removal", "measure", "occlusion.window",
    ]  # fmt: skip
    assert (state.methods, state.seed, state.focus.index, state.view) == (("random",), 0, 0, PictureViewOptions())
