"""What the board of heads is told and sent, and what it takes from the browser."""

from __future__ import annotations

import base64
import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from components.attention.board import Asked, Locked, parse_asked, parse_locked
from components.attention.bytes import DIGEST, grid_of, named, pack
from components.attention.exact import exact
from components.attention.look import BoardLook, usual_look
from components.attention.scores import HeadMap
from components.attention.state import AttentionState
from components.attention.told import TOP, maps_of, missing, strongest_of, told
from components.inputs.picture_choice import PictureFocus
from components.inputs.text_choice import TextFocus
from engine.errors import UsageError
from engine.heads.matrices import dequantize, from_bytes, select_positions
from engine.heads.readings import HeadReading
from engine.heads.scales import HeadScales
from tests.head_readings import WORDS, noise, patch_tokens, reading, text_tokens

LAYERS, HEADS = 3, 4
PAIR = [*WORDS, "Well", "acted", "[SEP]"]


@pytest.fixture
def text() -> HeadReading:
    return reading(noise(LAYERS, HEADS, len(WORDS)), text_tokens(WORDS))


@pytest.fixture
def picture() -> HeadReading:
    return reading(noise(LAYERS, HEADS, 7), patch_tokens((2, 3)), (2, 3))


def scores(values: np.ndarray, signed: bool = True) -> HeadMap:
    return HeadMap("off", "Fall when switched off", "probability", signed, values, "What it does.", "Someone (2019)")


def state(kind: str = "text", switched: HeadScales | None = None, **look: Any) -> AttentionState:
    focus = TextFocus("model-a", "") if kind == "text" else PictureFocus("model-a")
    seen = dataclasses.replace(usual_look(kind), **look)
    return AttentionState(kind=kind, focus=focus, look=seen, switched=switched or HeadScales())


def all_told(of: HeadReading, asked: AttentionState, made: HeadMap | None = None) -> dict[str, Any]:
    """As the browser gets it."""
    part = select_positions(of, asked.look.between, asked.look.special)
    whole = named(exact(of.attention, (1, 2), part)) if asked.look.head == (1, 2) else None
    return json.loads(json.dumps(told(asked, of, made, part, grid_of(of, part), whole), allow_nan=False))


def maps_told(found: dict[str, Any], shape: tuple[int, ...]) -> np.ndarray:
    """The maps as the browser decodes them."""
    levels = np.frombuffer(base64.b64decode(found["levels"]), "<u2").reshape(shape).astype(float)
    levels[levels > TOP] = np.nan
    return levels / TOP * np.array(found["ends"])[..., None]


def test_the_strongest_is_the_largest_of_those_shown_whatever_its_sign() -> None:
    made = scores(np.array([[0.1, -0.9, 0.2], [np.nan, 0.5, -0.6]]))
    assert strongest_of(made, BoardLook(), 2, 3) == (0, 1)
    assert strongest_of(made, BoardLook(layers=(1,)), 2, 3) == (1, 2)
    assert strongest_of(made, BoardLook(heads=(0, 2), layers=(0, 9)), 2, 3) == (0, 2)


def test_without_a_score_the_first_shown_head_is_the_strongest() -> None:
    assert strongest_of(None, BoardLook(layers=(2,), heads=(1, 3)), LAYERS, HEADS) == (2, 1)
    assert strongest_of(scores(np.full((2, 2), np.nan)), BoardLook(), 2, 2) == (0, 0)


def test_a_score_that_is_not_there_is_null(text: HeadReading) -> None:
    made = np.arange(12.0).reshape(3, 4) / 7
    made[1, 1] = np.nan
    found = all_told(text, state(), scores(made))["score"]
    assert found["values"][1][1] is None
    assert found["values"][2][3] == pytest.approx(11 / 7, rel=1e-5)
    assert (found["title"], found["unit"], found["signed"]) == ("Fall when switched off", "probability", True)
    assert all_told(text, state())["score"] is None


def test_positions_and_tokens_are_those_of_the_input() -> None:
    pair = reading(noise(2, 2, len(PAIR)), text_tokens(PAIR, len(WORDS)))
    found = all_told(pair, state(between="a_to_b", special=False))
    assert found["rows"] == list(range(1, 11))
    assert found["columns"] == [12, 13]
    assert found["features"] == [*range(1, 11), 12, 13]
    assert found["tokens"][12] == {"text": "Well", "special": False, "part": 1}
    assert found["tokens"][0] == {"text": "[CLS]", "special": True, "part": -1}
    assert len(found["notes"]) == 1
    assert "first text" in found["notes"][0]


def test_a_head_that_the_model_has_not_is_not_locked(text: HeadReading) -> None:
    found = all_told(text, state(head=(2, 3), alone=True))
    assert (found["head"], found["alone"]) == ([2, 3], True)
    found = all_told(text, state(head=(2, 4), alone=True))
    assert (found["head"], found["alone"]) == (None, False)


def test_the_shown_head_comes_apart_under_its_digest(text: HeadReading) -> None:
    body = exact(text.attention, (1, 2), select_positions(text))
    found = all_told(text, state(head=(1, 2)))["exact"]
    assert found == {"head": [1, 2], "digest": named(body).digest}
    assert all_told(text, state(detail="lines"))["exact"] is None


def test_scales_end_where_the_whole_head_does_also_where_a_part_is_shown(text: HeadReading) -> None:
    largest = text.attention.max((2, 3)).astype(float)
    found = all_told(text, state(special=False))
    np.testing.assert_allclose(found["ends"], largest)
    assert (found["part"], all_told(text, state())["part"]) == (True, False)
    shown = text.attention[:, :, 1:-1, 1:-1].max((2, 3))
    assert (shown < largest).any(), "else the test would see no difference"


def test_what_the_model_has_not_is_said(text: HeadReading) -> None:
    look = BoardLook(head=(99, 1), layers=(1, 7, 8), heads=(5,))
    assert missing(look, text) == [
        "This model has no head 99.1: it has layers 0 to 2 with heads 0 to 3 each. The strongest is shown.",
        "This model has no layer 7, 8: it has layers 0 to 2 with heads 0 to 3 each. The others are shown.",
        "This model has no head 5: it has layers 0 to 2 with heads 0 to 3 each. All are shown.",
    ]
    assert missing(BoardLook(head=(2, 3), layers=(0, 2)), text) == []


def test_maps_are_the_attention_received_or_from_one_position(text: HeadReading, picture: HeadReading) -> None:
    attention = picture.attention.astype(float)
    shape = (LAYERS, HEADS, 6)
    found = all_told(picture, state("image", view="received", detail="overlay"))
    np.testing.assert_allclose(maps_told(found["maps"], shape), attention.mean(2)[:, :, 1:], atol=1e-4)
    found = all_told(picture, state("image", query=4, detail="overlay"))
    np.testing.assert_allclose(maps_told(found["maps"], shape), attention[:, :, 4, 1:], atol=1e-4)
    assert (found["query"], found["grid"]) == (4, [2, 3])
    assert found["viewWords"] == "Attention from «row 2, column 1»"
    assert all_told(text, state(view="query", query=10))["viewWords"] == "Attention from «10 bad»"
    assert all_told(picture, state("image", detail="overlay"))["query"] == 0, "the position that the model reads"


def test_a_picture_below_matrices_has_what_its_patches_receive(picture: HeadReading) -> None:
    found = all_told(picture, state("image", view="matrix", detail="overlay"))["maps"]
    received = picture.attention.astype(float).mean(2)[:, :, 1:]
    np.testing.assert_allclose(maps_told(found, (LAYERS, HEADS, 6)), received, atol=1e-4)
    assert all_told(picture, state("image", view="matrix", detail="matrix"))["maps"] is None


def test_a_map_keeps_what_may_not_be_attended_to_apart_from_zero() -> None:
    maps = np.array([[[0.0, 0.5, np.nan], [0.0, 0.0, 0.0]]])
    found = maps_of(maps)
    np.testing.assert_allclose(maps_told(found, maps.shape), maps, atol=1e-5)
    assert found["ends"] == [[0.5, 1.0]]


def test_switched_heads_are_named(text: HeadReading) -> None:
    switched = HeadScales(((2, 1, 0.5), (0, 3, 0)))
    assert all_told(text, state(switched=switched))["changed"] == {"0.3": 0, "2.1": 0.5}


def test_the_bytes_are_the_attention_behind_their_digest_and_packed_once(text: HeadReading) -> None:
    part = select_positions(text)
    sent = grid_of(text, part).sent
    assert sent.body[:DIGEST] == sent.digest.encode()
    found = dequantize(from_bytes(sent.body[DIGEST:]))
    np.testing.assert_allclose(found, text.attention, atol=float(text.attention.max()) / 500)
    assert grid_of(text, part).sent is sent
    fewer = grid_of(text, select_positions(text, special=False)).sent
    assert fewer.digest != sent.digest
    assert from_bytes(fewer.body[DIGEST:]).levels.shape[2:] == (10, 10)


def test_what_is_drawn_together_is_told() -> None:
    words = [f"word{at}" for at in range(300)]
    long = reading(noise(1, 2, 300), text_tokens(words))
    sent = pack(long, select_positions(long)).sent
    assert "150 x 150 cells" in sent.note
    assert all_told(long, state())["notes"] == [sent.note]


def test_what_the_browser_asks_is_checked() -> None:
    assert parse_locked({"head": [2, 3], "alone": True, "turn": 4}, (3, 4)) == Locked((2, 3), True, 4)
    assert parse_locked({"head": None, "alone": False, "turn": 1}, (3, 4)) == Locked(None, False, 1)
    assert parse_asked({"query": 11, "turn": 2}, 12) == Asked(11, 2)


@pytest.mark.parametrize("head", [[3, 0], [0, 4], [-1, 0], [1], [True, 0], "2.3", [1, 2, 3]])
def test_a_head_that_is_not_there_is_refused(head: object) -> None:
    with pytest.raises(UsageError, match=r"^head: must be a layer from 0 to 2 and a head from 0 to 3, or nothing, got"):
        parse_locked({"head": head, "alone": False, "turn": 1}, (3, 4))


def test_other_nonsense_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^alone: must be true or false"):
        parse_locked({"head": [0, 0], "alone": 1, "turn": 1}, (3, 4))
    with pytest.raises(UsageError, match=r"^turn: must be a whole number from 1"):
        parse_locked(None, (3, 4))
    for query in (12, -1, True, None):
        with pytest.raises(UsageError, match=r"^query: must be a position from 0 to 11"):
            parse_asked({"query": query, "turn": 1}, 12)
