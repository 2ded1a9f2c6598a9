"""The board of heads: data and bytes for the browser, its messages back, the colors of heads."""

from __future__ import annotations

import base64
import dataclasses
import json
import struct
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from components.attention.state import describe_missing_heads
from components.palette import PALETTES, THEMES, Theme, contrast
from components.widgets.attention_board import (
    DIGEST,
    HUES,
    MAGIC,
    TOP,
    BoardOptions,
    HeadLock,
    HeadScoreMap,
    QueryChoice,
    add_digest,
    board_data,
    cached_grids,
    default_options,
    head_color,
    head_color_rules,
    map_data,
    pack_grids,
    pack_head,
    parse_lock,
    parse_query,
    strongest_head,
)
from engine.errors import UsageError
from engine.heads.matrices import MatrixSelection, from_bytes, select_positions
from engine.heads.readings import HeadReading
from engine.request import PLAIN, HeadScales
from tests.head_readings import WORDS, dequantize, noise, patch_tokens, reading, text_tokens

LAYERS, HEADS = 3, 4
PAIR = [*WORDS, "Well", "acted", "[SEP]"]


@pytest.fixture
def text() -> HeadReading:
    return reading(noise(LAYERS, HEADS, len(WORDS)), text_tokens(WORDS))


@pytest.fixture
def picture() -> HeadReading:
    return reading(noise(LAYERS, HEADS, 7), patch_tokens((2, 3)), (2, 3))


def scores(values: np.ndarray, signed: bool = True) -> HeadScoreMap:
    return HeadScoreMap(
        "off", "Fall when switched off", "probability", signed, values, "What it does.", "Someone (2019)"
    )


def options(kind: str = "text", **values: Any) -> BoardOptions:
    return dataclasses.replace(default_options(kind), **values)


def sent_data(
    of: HeadReading, chosen: BoardOptions, made: HeadScoreMap | None = None, switched: HeadScales = PLAIN
) -> dict[str, Any]:
    """As the browser gets it."""
    part = select_positions(of, chosen.between, chosen.special)
    whole = add_digest(pack_head(of.attention, (1, 2), part)) if chosen.head == (1, 2) else None
    data = board_data(chosen, of, made, switched, part, cached_grids(of, part), whole)
    return json.loads(json.dumps(data, allow_nan=False))


def decoded_maps(found: dict[str, Any], shape: tuple[int, ...]) -> np.ndarray:
    """The maps as the browser decodes them."""
    levels = np.frombuffer(base64.b64decode(found["levels"]), "<u2").reshape(shape).astype(float)
    levels[levels > TOP] = np.nan
    return levels / TOP * np.array(found["ends"])[..., None]


def test_the_strongest_is_the_largest_of_those_shown_whatever_its_sign() -> None:
    made = scores(np.array([[0.1, -0.9, 0.2], [np.nan, 0.5, -0.6]]))
    assert strongest_head(made, BoardOptions(), 2, 3) == (0, 1)
    assert strongest_head(made, BoardOptions(layers=(1,)), 2, 3) == (1, 2)
    assert strongest_head(made, BoardOptions(heads=(0, 2), layers=(0, 9)), 2, 3) == (0, 2)


def test_without_a_score_the_first_shown_head_is_the_strongest() -> None:
    assert strongest_head(None, BoardOptions(layers=(2,), heads=(1, 3)), LAYERS, HEADS) == (2, 1)
    assert strongest_head(scores(np.full((2, 2), np.nan)), BoardOptions(), 2, 2) == (0, 0)


def test_a_score_that_is_not_there_is_null(text: HeadReading) -> None:
    made = np.arange(12.0).reshape(3, 4) / 7
    made[1, 1] = np.nan
    found = sent_data(text, options(), scores(made))["score"]
    assert found["values"][1][1] is None
    assert found["values"][2][3] == pytest.approx(11 / 7, rel=1e-5)
    assert (found["title"], found["unit"], found["signed"]) == ("Fall when switched off", "probability", True)
    assert sent_data(text, options())["score"] is None


def test_positions_and_tokens_are_those_of_the_input() -> None:
    pair = reading(noise(2, 2, len(PAIR)), text_tokens(PAIR, len(WORDS)))
    found = sent_data(pair, options(between="a_to_b", special=False))
    assert found["rows"] == list(range(1, 11))
    assert found["columns"] == [12, 13]
    assert found["features"] == [*range(1, 11), 12, 13]
    assert found["tokens"][12] == {"text": "Well", "special": False, "part": 1}
    assert found["tokens"][0] == {"text": "[CLS]", "special": True, "part": -1}
    assert len(found["notes"]) == 1
    assert "first text" in found["notes"][0]


def test_a_head_that_the_model_has_not_is_not_locked(text: HeadReading) -> None:
    found = sent_data(text, options(head=(2, 3), alone=True))
    assert (found["head"], found["alone"]) == ([2, 3], True)
    found = sent_data(text, options(head=(2, 4), alone=True))
    assert (found["head"], found["alone"]) == (None, False)


def test_the_shown_head_comes_apart_under_its_digest(text: HeadReading) -> None:
    body = pack_head(text.attention, (1, 2), select_positions(text))
    found = sent_data(text, options(head=(1, 2)))["exact"]
    assert found == {"head": [1, 2], "digest": add_digest(body).digest}
    assert sent_data(text, options(detail="lines"))["exact"] is None


def test_scales_end_where_the_whole_head_does_also_where_a_part_is_shown(text: HeadReading) -> None:
    largest = text.attention.max((2, 3)).astype(float)
    found = sent_data(text, options(special=False))
    np.testing.assert_allclose(found["ends"], largest)
    assert (found["part"], sent_data(text, options())["part"]) == (True, False)
    shown = text.attention[:, :, 1:-1, 1:-1].max((2, 3))
    assert (shown < largest).any(), "else the test would see no difference"


def test_what_the_model_has_not_is_said(text: HeadReading) -> None:
    wanted = BoardOptions(head=(99, 1), layers=(1, 7, 8), heads=(5,))
    assert describe_missing_heads(wanted, text) == [
        "This model has no head 99.1: it has layers 0 to 2 with heads 0 to 3 each. The strongest is shown.",
        "This model has no layer 7, 8: it has layers 0 to 2 with heads 0 to 3 each. The others are shown.",
        "This model has no head 5: it has layers 0 to 2 with heads 0 to 3 each. All are shown.",
    ]
    assert describe_missing_heads(BoardOptions(head=(2, 3), layers=(0, 2)), text) == []


def test_maps_are_the_attention_received_or_from_one_position(text: HeadReading, picture: HeadReading) -> None:
    attention = picture.attention.astype(float)
    shape = (LAYERS, HEADS, 6)
    found = sent_data(picture, options("image", view="received", detail="overlay"))
    np.testing.assert_allclose(decoded_maps(found["maps"], shape), attention.mean(2)[:, :, 1:], atol=1e-4)
    found = sent_data(picture, options("image", query=4, detail="overlay"))
    np.testing.assert_allclose(decoded_maps(found["maps"], shape), attention[:, :, 4, 1:], atol=1e-4)
    assert (found["query"], found["grid"]) == (4, [2, 3])
    assert found["viewWords"] == "Attention from “row 2, column 1”"
    assert sent_data(text, options(view="query", query=10))["viewWords"] == "Attention from “10 bad”"
    assert sent_data(picture, options("image", detail="overlay"))["query"] == 0, "the position that the model reads"


def test_a_picture_below_matrices_has_what_its_patches_receive(picture: HeadReading) -> None:
    found = sent_data(picture, options("image", view="matrix", detail="overlay"))["maps"]
    received = picture.attention.astype(float).mean(2)[:, :, 1:]
    np.testing.assert_allclose(decoded_maps(found, (LAYERS, HEADS, 6)), received, atol=1e-4)
    assert sent_data(picture, options("image", view="matrix", detail="matrix"))["maps"] is None


def test_a_map_keeps_what_may_not_be_attended_to_apart_from_zero() -> None:
    maps = np.array([[[0.0, 0.5, np.nan], [0.0, 0.0, 0.0]]])
    found = map_data(maps)
    np.testing.assert_allclose(decoded_maps(found, maps.shape), maps, atol=1e-5)
    assert found["ends"] == [[0.5, 1.0]]


def test_switched_heads_are_named(text: HeadReading) -> None:
    switched = HeadScales(((2, 1, 0.5), (0, 3, 0)))
    assert sent_data(text, options(), switched=switched)["changed"] == {"0.3": 0, "2.1": 0.5}


def test_the_bytes_are_the_attention_behind_their_digest_and_packed_once(text: HeadReading) -> None:
    part = select_positions(text)
    sent = cached_grids(text, part).packed
    assert sent.body[:DIGEST] == sent.digest.encode()
    found = dequantize(from_bytes(sent.body[DIGEST:]))
    np.testing.assert_allclose(found, text.attention, atol=float(text.attention.max()) / 500)
    assert cached_grids(text, part).packed is sent
    fewer = cached_grids(text, select_positions(text, special=False)).packed
    assert fewer.digest != sent.digest
    assert from_bytes(fewer.body[DIGEST:]).levels.shape[2:] == (10, 10)


def test_what_is_drawn_together_is_told() -> None:
    words = [f"word{at}" for at in range(300)]
    long = reading(noise(1, 2, 300), text_tokens(words))
    sent = pack_grids(long, select_positions(long)).packed
    assert "150 x 150 cells" in sent.note
    assert sent_data(long, options())["notes"] == [sent.note]


def test_what_the_browser_asks_is_checked() -> None:
    assert parse_lock({"head": [2, 3], "alone": True, "turn": 4}, (3, 4)) == HeadLock((2, 3), True, 4)
    assert parse_lock({"head": None, "alone": False, "turn": 1}, (3, 4)) == HeadLock(None, False, 1)
    assert parse_query({"query": 11, "turn": 2}, 12) == QueryChoice(11, 2)


@pytest.mark.parametrize("head", [[3, 0], [0, 4], [-1, 0], [1], [True, 0], "2.3", [1, 2, 3]])
def test_a_head_that_is_not_there_is_refused(head: object) -> None:
    with pytest.raises(UsageError, match=r"^head: must be a layer from 0 to 2 and a head from 0 to 3, or nothing, got"):
        parse_lock({"head": head, "alone": False, "turn": 1}, (3, 4))


def test_other_nonsense_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^alone: must be true or false"):
        parse_lock({"head": [0, 0], "alone": 1, "turn": 1}, (3, 4))
    with pytest.raises(UsageError, match=r"^turn: must be a whole number from 1"):
        parse_lock(None, (3, 4))
    for query in (12, -1, True, None):
        with pytest.raises(UsageError, match=r"^query: must be a position from 0 to 11"):
            parse_query({"query": query, "turn": 1}, 12)


def counted_attention() -> np.ndarray:
    """Two layers of three heads over four positions, each value its own; a query sees no later key."""
    values = (np.arange(2 * 3 * 4 * 4) / 128).reshape(2, 3, 4, 4)
    values[..., ~np.tri(4, dtype=bool)] = np.nan
    return values.astype(np.float16)


def read_matrix(body: bytes) -> tuple[tuple[int, ...], list[float]]:
    """By the standard library alone: rows and columns, then halves, little end first."""
    assert body[:4] == MAGIC
    return struct.unpack("<2I", body[4:12]), list(struct.unpack(f"<{len(body[12:]) // 2}e", body[12:]))


def test_the_values_of_the_part_come_in_half_precision_row_by_row() -> None:
    shape, found = read_matrix(pack_head(counted_attention(), (1, 2), MatrixSelection((1, 3), (0, 1, 2))))
    first = (1 * 3 + 2) * 16
    assert shape == (2, 3)
    assert found[:2] == [(first + 4) / 128, (first + 5) / 128]
    assert np.isnan(found[2]), "the second position may not attend to the third"
    assert found[3:] == [(first + 12 + column) / 128 for column in range(3)]


def test_one_position_is_a_matrix_too() -> None:
    assert read_matrix(pack_head(np.ones((1, 1, 1, 1), np.float16), (0, 0), MatrixSelection((0,), (0,)))) == (
        (1, 1),
        [1.0],
    )


@pytest.mark.parametrize("head", [(2, 0), (0, 3), (-1, 0)])
def test_a_head_that_the_model_has_not_is_refused(head: tuple[int, int]) -> None:
    with pytest.raises(UsageError, match=r"head: must be a layer from 0 to 1 and a head from 0 to 2, got"):
        pack_head(counted_attention(), head, MatrixSelection((0,), (0,)))


TWELVE = 12
APART = 0.055
"""Distance in OKLab; about 0.02 is seen between two colors side by side."""
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


def lab(color: str, sight: str) -> np.ndarray:
    channels = np.array([int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    found: np.ndarray = TO_LAB @ np.cbrt(TO_CONES @ np.clip(SIGHTS[sight] @ linear, 0, 1))
    return found


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("sight", SIGHTS)
def test_twelve_heads_are_told_apart(theme: Theme, sight: str) -> None:
    colors = [lab(head_color(theme, head), sight) for head in range(TWELVE)]
    assert min(float(np.linalg.norm(one - other)) for one, other in combinations(colors, 2)) > APART


@pytest.mark.parametrize("theme", THEMES)
def test_each_is_seen_on_its_ground_and_is_another_one(theme: Theme) -> None:
    colors = [head_color(theme, head) for head in range(len(HUES))]
    assert len(set(colors)) == len(HUES) == 16
    assert min(contrast(color, PALETTES[theme].ground) for color in colors) > VISIBLE


def test_the_page_has_both_themes_and_the_17th_head_the_first_color() -> None:
    assert f"--xg-head-3:light-dark({head_color('light', 3)},{head_color('dark', 3)})" in head_color_rules()
    assert head_color("dark", 16) == head_color("dark", 0)
