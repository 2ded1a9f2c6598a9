"""The Attention page's link: what is written is read back, and nothing wrong in it goes unsaid."""

from __future__ import annotations

from dataclasses import replace

import pytest

from components.attention.state import (
    AttentionState,
    FlowOptions,
    discard_stale,
    read_state,
    write,
)
from components.inputs.datasets import DEFAULT_PICTURES, OpenTexts, open_pictures
from components.inputs.picture_choice import PictureFocus
from components.inputs.text_choice import TextFocus
from components.links import write_record
from components.widgets.attention_board import BoardOptions, default_options
from engine.data.datasets import load
from engine.errors import UsageError
from engine.registry import all_explainers
from engine.request import PLAIN, HeadScales

METHODS = all_explainers()
MODELS = ["model-a", "model-b"]
SWITCHED = HeadScales(((3, 7, 0.0), (2, 1, 0.5)))
OPTIONS = BoardOptions(
    "off", "query", 4, "score", "shared", "a_to_b", False, "lines", (0, 5), (11,), (3, 7), True, "kernel_shap"
)


@pytest.fixture(scope="module")
def opened() -> OpenTexts:
    return OpenTexts("reviews", load("reviews"))


def own(text: str = "a text") -> AttentionState:
    return AttentionState(kind="text", focus=TextFocus("model-a", text), board=default_options("text"))


@pytest.mark.parametrize(
    "state",
    [
        own(),
        replace(own("a & b"), target="positive", seed=4, method="lime"),
        replace(own(), board=OPTIONS),
        replace(own(), board=replace(OPTIONS, head=(0, 0), query=0, alone=False)),
        replace(own(), switched=SWITCHED, opened=("switch", "flow")),
        replace(own(), flow=FlowOptions("gradient", 0.25, 2, 0.05)),
        replace(own(), flow=FlowOptions("rollout", 0.0, 0, 0.0)),
    ],
    ids=["plain", "class", "board", "firsts", "switched", "flow", "zeros"],
)
def test_a_link_reopens_what_it_was_written_from(state: AttentionState, opened: OpenTexts) -> None:
    assert read_state("text", write(state), MODELS, METHODS, opened) == (state, [])


def test_a_picture_reopens_too() -> None:
    pictures = open_pictures(DEFAULT_PICTURES, "")
    focus = read_state("image", {"index": ["3"], "model": ["m"]}, ["m"], all_explainers("image"), pictures)[0].focus
    board = replace(default_options("image"), query=5, detail="matrix", head=(1, 2))
    state = AttentionState(kind="image", focus=focus, board=board)
    assert read_state("image", write(state), ["m"], all_explainers("image"), pictures) == (state, [])
    assert write(state)["input"] == ["image"]


def test_only_what_differs_from_the_usual_is_written() -> None:
    for kind in ("text", "image"):
        assert write_record(default_options(kind), default_options(kind)) == {}
    assert write(own()) == {"input": ["text"], "model": ["model-a"], "text": ["a text"]}


@pytest.mark.parametrize(
    ("name", "given", "word"),
    [
        ("score", "loudness", "score: unknown name"),
        ("view", "sideways", "view: unknown name"),
        ("detail", "overlay", "detail: unknown name"),  # of pictures
        ("head", "3,7", "head: must be a layer and a head such as 3.7"),
        ("head", "99999.1", "head: must be"),
        ("query", "-1", "query: must be a whole number"),
        ("layers", "1,a", "layers: must be numbers"),
        ("switched", "3.7", "switched: must be heads with their scales"),
        ("switched", "3.7x9", "from 0 (off) to 2"),
        ("switched", "3.7x0,3.7x1.5", "named twice"),
        ("residual", "2", "residual: must be a number from 0 to 1"),
        ("threshold", "nan", "threshold: must be a number"),
        ("start_layer", "first", "start_layer: must be a whole number"),
        ("method", "magic", "method: unknown name"),
        ("open", "door", "open: unknown name"),
    ],
)
def test_what_is_wrong_in_a_link_is_said_and_left_at_the_usual(
    name: str, given: str, word: str, opened: OpenTexts
) -> None:
    state, said = read_state("text", {"model": ["model-a"], "text": ["a text"], name: [given]}, MODELS, METHODS, opened)
    assert state == own()
    assert len(said) == 1
    assert word in said[0]


def test_another_model_takes_its_heads_with_it() -> None:
    before = replace(own(), board=OPTIONS, switched=SWITCHED, target="positive", flow=FlowOptions("gradient", 0.5, 3))
    now = discard_stale(before, replace(before, focus=TextFocus("model-b", "a text")))
    assert (now.switched, now.target, now.flow) == (PLAIN, None, FlowOptions("gradient"))
    assert (now.board.head, now.board.alone, now.board.layers, now.board.heads, now.board.query) == (
        None, False, (), (), None,
    )  # fmt: skip
    assert (now.board.score, now.board.scale) == ("off", "shared")


def test_another_text_takes_its_query_and_nothing_else() -> None:
    before = replace(own(), board=OPTIONS, switched=SWITCHED)
    now = discard_stale(before, replace(before, focus=TextFocus("model-a", "another text")))
    assert now == replace(before, focus=now.focus, board=replace(OPTIONS, query=None))
    assert discard_stale(before, before) == before


def test_a_request_is_of_the_model_with_its_heads_switched() -> None:
    state = replace(own(), switched=SWITCHED, target="positive", seed=7)
    asked = state.request("lime", {"samples": 8})
    assert (asked.model, asked.method, asked.example, asked.target) == ("model-a", "lime", state.input, "positive")
    assert (asked.heads, asked.seed, asked.params) == (SWITCHED, 7, {"samples": 8})
    assert state.request("lime", heads=PLAIN).heads == PLAIN


def test_without_a_picture_nothing_can_be_asked() -> None:
    state = AttentionState(kind="image", focus=PictureFocus("m"), board=default_options("image"))
    with pytest.raises(UsageError, match="picture: must be chosen"):
        state.request("random")
    assert state.input is None
