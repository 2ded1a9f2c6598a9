"""The Text page's link: what is written is read back, and nothing wrong in it goes unsaid."""

from __future__ import annotations

import pytest

from components.look import Look
from components.text_state import LONGEST_IN_LINK, START, TextState, differing, read, write
from engine.data.datasets import Dataset, load
from engine.registry import all_explainers, explainer

METHODS = all_explainers()
MODELS = ["model-a", "model-b"]


@pytest.fixture(scope="module")
def data() -> Dataset:
    return load("reviews")


@pytest.mark.parametrize(
    "state",
    [
        TextState("model-a", ("random",), "my text"),
        TextState("owner/name@rev", ("lime", "random"), "a & b = c? # 100 % +", "second", target="positive"),
        TextState("model-a", (), "", unit="word", seed=3),
        TextState("model-a", ("random",), " \n 这 \u200d ש ", ""),
        TextState("model-a", ("random",), "x" * (LONGEST_IN_LINK + 1), "y" * (LONGEST_IN_LINK + 1)),
        TextState("model-a", ("random",), "t", look=Look(0.6, "shared", "underline", True)),
        TextState("model-a", ("occlusion",), "t", params={"occlusion": {"window": "2", "removal": "pad"}}),
    ],
    ids=["plain", "signs", "empty", "spaces", "long", "look", "parameters"],
)
def test_a_link_reopens_what_it_was_written_from(state: TextState, data: Dataset) -> None:
    assert read(write(state, data), MODELS, METHODS, data) == (state, [])


def test_a_review_is_named_by_its_index(data: Dataset) -> None:
    state = TextState("model-a", ("random",), data[7].text, index=7)
    link = write(state, data)
    assert link["index"] == ["7"]
    assert "text" not in link
    assert read(link, MODELS, METHODS, data) == (state, [])


def test_a_bare_link_opens_the_first_model_and_review_with_the_usual_methods(data: Dataset) -> None:
    state, said = read({}, MODELS, METHODS, data)
    assert not said
    assert (state.model, state.text, state.index) == ("model-a", data[0].text, 0)
    assert state.methods == START
    assert "random" in state.methods


def test_every_usual_method_is_registered() -> None:
    assert set(START) <= set(METHODS)


def test_long_texts_keep_links_short(data: Dataset) -> None:
    link = write(TextState("model-a", ("random",), "x" * 100_000), data)
    assert max(len(value) for values in link.values() for value in values) <= 64


def test_only_what_differs_from_the_defaults_is_named() -> None:
    assert differing(explainer("occlusion"), {"window": 1, "removal": "pad"}) == {"removal": "pad"}


def test_each_mistake_is_said_once_and_the_rest_is_kept(data: Dataset) -> None:
    link = {
        "method": ["nope", "random"], "unit": ["letter"], "seed": ["-1"], "index": ["x"], "occlusion.window": ["0"],
        "other.thing": ["1"],
    }  # fmt: skip
    state, said = read(link, MODELS, METHODS, data)
    assert [sentence.partition(":")[0] for sentence in said] == [
        "index", "method", "unit", "seed", "occlusion.window",
    ]  # fmt: skip
    assert (state.methods, state.unit, state.seed, state.index) == (("random",), "token", 0, 0)
