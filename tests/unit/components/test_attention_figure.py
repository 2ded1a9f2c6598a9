"""Scores and one head as a figure: colors against steps counted by hand, names that stay names, a safe page."""

from __future__ import annotations

import io
import re
from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from components.attention.export import HeadsExport, html, svg
from components.attention.state import AttentionState
from components.inputs.datasets import open_pictures, read_picture
from components.inputs.picture_choice import PictureFocus
from components.palette import PALETTES, STEPS, color
from components.widgets.attention_board import BoardOptions, HeadScoreMap
from components.widgets.patch_map.png import enlarged
from engine.heads.readings import CAUTION, HeadReading, read_heads
from engine.result import Prediction
from engine.vision.picture import read_view
from tests.head_readings import noise, reading, text_tokens
from tests.unit.components.test_attention_export import state
from tests.unit.vision.tiny_vit import save_vit

SVG = "{http://www.w3.org/2000/svg}"
HARD = ["[CLS]", "<b>bold</b>", 'a"quote', "映画は最高でした映画は最高でした", "נהדר", "\x1b[31m", "[SEP]"]
LIGHT = PALETTES["light"]


def score(values: list[list[float]], signed: bool = False) -> HeadScoreMap:
    given = np.array(values, dtype=float)
    return HeadScoreMap("importance", "Importance", "logit", signed, given, "How <much>.", "Somebody (2020)")


def kept(attention: np.ndarray, words: list[str], scores: HeadScoreMap | None = None, **options: object) -> HeadsExport:
    made = reading(attention, text_tokens(words), causal=bool(options.pop("causal", False)))
    return HeadsExport(state(BoardOptions(**options)), made, scores)  # type: ignore[arg-type]


def three(values: list[list[float]], scores: HeadScoreMap | None = None, **options: object) -> HeadsExport:
    """One head over three words."""
    return kept(np.array([[values]], dtype=np.float16), ["good", "bad", "food"], scores, **options)


def root_of(one: HeadsExport) -> ElementTree.Element:
    return ElementTree.fromstring(svg(one).encode())


def cells_of(one: HeadsExport) -> dict[str, str]:
    """The color of each cell of the score map by its title."""
    groups = root_of(one).iter(f"{SVG}g")
    return {str(g.findtext(f"{SVG}title")): g.find(f"{SVG}rect").attrib["fill"] for g in groups}  # type: ignore[union-attr]


def pictures_of(one: HeadsExport) -> list[np.ndarray]:
    """The embedded pictures, in red, green and blue."""
    found = [shape.attrib["href"] for shape in root_of(one).iter(f"{SVG}image")]
    opened = (Image.open(io.BytesIO(b64decode(href.removeprefix("data:image/png;base64,")))) for href in found)
    return [np.asarray(image.convert("RGB")) for image in opened]


def rgb(name: str) -> list[int]:
    return list(bytes.fromhex(name.removeprefix("#")))


def test_scores_have_the_colors_of_their_steps_and_the_shown_head_a_frame() -> None:
    amounts = score([[0.5, 1.0], [0.0, np.nan]])
    one = kept(noise(2, 2, 3), ["good", "bad", "food"], amounts)
    assert cells_of(one) == {
        "0.0: 0.5": color("light", "amount", STEPS // 2), "0.1: 1": color("light", "amount", STEPS),
        "1.0: 0": LIGHT.ground, "1.1: no value": LIGHT.special,
    }  # fmt: skip
    [frame] = [rect for rect in root_of(one).iter(f"{SVG}rect") if rect.attrib.get("stroke") == LIGHT.text]
    second = next(g for g in root_of(one).iter(f"{SVG}g") if g.findtext(f"{SVG}title") == "0.1: 1")
    box = second.find(f"{SVG}rect")
    assert box is not None
    assert float(frame.attrib["x"]) + 1 == float(box.attrib["x"])
    assert float(frame.attrib["y"]) + 1 == float(box.attrib["y"])
    signed = cells_of(replace(one, scores=score([[0.5, -1.0], [0.0, np.nan]], signed=True)))
    assert signed["0.0: +0.5"] == color("light", "for", STEPS // 2)
    assert signed["0.1: −1"] == color("light", "against", STEPS)


def test_the_matrix_has_the_colors_of_its_shares_and_grey_where_nothing_may_be_seen() -> None:
    [picture] = pictures_of(three([[0.8, 0.2, 0], [0.4, 0, 0.4], [0.1, 0.1, 0.8]]))
    side = picture.shape[0] // 3
    assert picture.shape == (3 * side, 3 * side, 3)
    assert side >= 200, "large squares stay sharp in every viewer"
    middles = picture[side // 2 :: side, side // 2 :: side]
    steps = [[20, 5, 0], [10, 0, 10], [2, 2, 20]]  # of 20: 0.1 of 0.8 is 2.5, which half precision takes down
    np.testing.assert_array_equal(middles, [[rgb(color("light", "amount", step)) for step in row] for row in steps])
    masked = three([[1, 0, 0], [0.5, 0.5, 0], [0.4, 0.3, 0.3]], causal=True)
    [picture] = pictures_of(masked)
    assert picture[side // 2, -side // 2].tolist() == rgb(LIGHT.line)
    assert "gray: masked" in svg(masked)
    assert "masked" not in svg(three([[1, 0, 0], [0, 1, 0], [0, 0, 1]]))


def test_a_shared_scale_ends_at_the_largest_of_all_heads() -> None:
    two = np.stack([np.full((3, 3), 0.25), np.eye(3)])[None].astype(np.float16)
    own = kept(two, ["good", "bad", "food"], head=(0, 0))
    assert pictures_of(own)[0][0, 0].tolist() == rgb(color("light", "amount", STEPS))
    shared = replace(own, state=state(BoardOptions(head=(0, 0), scale="shared")))
    assert pictures_of(shared)[0][0, 0].tolist() == rgb(color("light", "amount", STEPS // 4))
    assert "0 to 0.25" in svg(own)
    assert "0 to 1" in svg(shared)


def test_names_stay_names_and_within_the_picture() -> None:
    one = kept(noise(1, 2, len(HARD)), HARD, score([[1, 0.5]]))
    root = root_of(one)
    told = [str(text.text) for text in root.iter(f"{SVG}text")]
    assert told.count("1 <b>bold</b>") == 2
    assert told.count("5 \ufffd[31m") == 2
    [short] = {name for name in told if name.startswith("3 ")}
    assert short.endswith("…")
    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    for shape in root.iter():
        if "x" in shape.attrib and "width" in shape.attrib:
            assert 0 <= float(shape.attrib["x"]) <= float(shape.attrib["x"]) + float(shape.attrib["width"]) <= width
            assert float(shape.attrib["y"]) + float(shape.attrib["height"]) <= height


def test_of_a_long_text_as_many_names_are_written_as_there_is_room_for() -> None:
    words = [f"w{at}" for at in range(400)]
    one = kept(noise(1, 1, 400), words)
    told = [str(text.text) for text in root_of(one).iter(f"{SVG}text")]
    rows = [name for name in told if re.fullmatch(r"\d+ w\d+", name)]
    assert 2 * 40 < len(rows) < 2 * 80
    assert rows[0] == "0 w0"
    [picture] = pictures_of(one)
    assert picture.shape == (800, 800, 3), "every cell is there"


def test_the_page_stands_alone_and_says_what_attention_is_not() -> None:
    one = kept(noise(1, 2, len(HARD)), HARD, score([[1, 0.5]]))
    page = html(one)
    assert "<script" not in page
    assert "<b>bold" not in page
    assert "default-src 'none'" in page
    assert "color-scheme:light}" in page
    assert set(re.findall(r'(?:href|src)="([^"]{0,22})', page)) == {"data:image/png;base64,"}
    assert "<?xml" not in page
    assert CAUTION in page
    assert "Importance: Somebody (2020)." in page
    assert "exegesis heads --model model-a" in page


def test_the_class_that_is_looked_at_or_the_score_of_a_regression_head_is_said() -> None:
    one = three([[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert "Predicted: positive, 73" in svg(one)
    assert "Explained:" not in svg(one)
    origin = replace(one.explanation.provenance, target=0, target_label="negative")
    other = replace(one.reading, explanation=replace(one.explanation, provenance=origin))
    assert "Explained: negative." in svg(replace(one, reading=other))
    prediction = Prediction(("score",), (-1.25,), (), regression=True)
    regression = replace(one.reading, explanation=replace(one.explanation, prediction=prediction))
    assert "Score: −1.25." in svg(replace(one, reading=regression))


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[AttentionState, HeadReading]:
    folder = str(save_vit(tmp_path_factory.mktemp("vit") / "tiny"))
    opened = open_pictures("scenes:count=3")
    focus = PictureFocus(folder, opened.name, index=1, chosen=read_picture(opened, 1))
    state = AttentionState(
        kind="image", focus=focus, board=BoardOptions(view="received", detail="overlay", head=(0, 1))
    )
    return state, read_heads(state.request("random"))


def test_a_picture_lies_under_the_map_of_the_head(shown: tuple[AttentionState, HeadReading], tmp_path: Path) -> None:
    state, found = shown
    one = HeadsExport(state, found, None)
    [picture] = pictures_of(one)
    assert state.focus.picture is not None  # type: ignore[union-attr]
    seen = enlarged(read_view(state.model).transform(state.focus.picture.pixels))  # type: ignore[union-attr]
    assert picture.shape == seen.shape
    received = found.received()[0, 1]
    assert f"0 to {received.max():.3g}" in svg(one)
    rows, columns = found.explanation.grid or (0, 0)
    high, wide = picture.shape[0] // rows, picture.shape[1] // columns
    # The more attention, the nearer to the teal of the palette: its red is far below that of the faded picture.
    faded = seen.astype(float).mean(-1) - picture[..., 0]
    tinted = faded.reshape(rows, high, columns, wide).mean((1, 3)).ravel()
    assert int(tinted.argmax()) == int(received.argmax())
    named = replace(one, state=replace(state, board=replace(state.board, view="query")))
    assert "The attention from “[CLS]”." in svg(named)
    matrix = replace(one, state=replace(state, board=replace(state.board, detail="matrix")))
    assert "Rows are queries, columns are keys." in svg(matrix)
