"""The embedding map of Browse: its points, a box that filters the list and becomes a slice, and its empty states."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.testing.v1 import AppTest

from components.browse.embedding import TITLE
from components.browse.scatter import BOX, CLICK
from components.images.state import key as picture_key
from components.inputs import text_choice
from components.navigation import TEXT
from components.text.state import key
from engine.data.datasets import load
from engine.data.embedding_map import EmbeddingMap, embedding_map
from engine.data.image_datasets import load_images
from engine.data.slices import slice_name
from engine.predictions import predictions
from tests.alerts import errors
from tests.project import ROOT
from tests.tiny import CORPUS, save_checkpoint

pytestmark = pytest.mark.usefixtures("own_home")

SECONDS = 120.0


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny"))


@pytest.fixture
def data(tmp_path: Path) -> str:
    return written(tmp_path, [f"{CORPUS[0]} <b>&amp;</b>", *CORPUS[1:]])


def written(folder: Path, texts: list[str]) -> str:
    file = folder / "own.jsonl"
    file.write_text("".join(json.dumps({"text": text, "label": at % 2}) + "\n" for at, text in enumerate(texts)))
    return str(file)


def opened(**query: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "text.py"), default_timeout=SECONDS)
    for name, value in {"open": "browse", "method": "random", **query}.items():
        page.query_params[name] = value
    page.run()
    page.session_state[key("embedding")] = True
    return page.run()


def chart(page: AppTest) -> Any:
    [one] = page.get("vega_lite_chart")
    return one.proto


def select(page: AppTest, **selection: object) -> AppTest:
    """Run the page as after a choice in the chart, which AppTest itself cannot make."""
    states = page._tree.get_widget_states()
    state = WidgetState(id=chart(page).id, string_value=json.dumps({"selection": selection}))
    states.widgets.append(state)
    return page._run(states)


def box_around(embedding: EmbeddingMap, points: list[int]) -> dict[str, list[float]]:
    own = embedding.coordinates[points]
    low, high = own.min(axis=0) - 1e-9, own.max(axis=0) + 1e-9
    return {axis: [float(low[at]), float(high[at])] for at, axis in enumerate("xy")}


def listed(page: AppTest) -> list[int]:
    return [int(one) for frame in page.dataframe[-1:] for one in frame.value["#"]]


def test_points_are_labeled_examples_and_a_click_shows_one(model: str, data: str) -> None:
    page = opened(model=model, data=data)
    assert not page.exception
    assert not errors(page)
    embedding = embedding_map(model, load(data))
    spec = json.loads(chart(page).spec)
    titles = [spec["layer"][0]["encoding"][axis]["title"] for axis in "xy"]
    assert titles == [
        f"PC {at} ({100 * share:.1f}% of the variance)" for at, share in enumerate(embedding.explained, 1)
    ]
    assert "shape" not in spec["layer"][0]["encoding"] or spec["layer"][0]["encoding"]["shape"]["legend"] is None
    captions = " ".join(one.value for one in page.caption)
    assert f"5 examples, {embedding.dimensions} dimensions." in captions
    assert "Predict the examples" in captions
    select(page, **{CLICK: [{"index": 3}], BOX: {}})
    assert page.number_input(text_choice.key("index")).value == 3
    assert listed(page) == list(range(5))
    select(page, **{CLICK: [{"index": 99}], BOX: {"x": "<b>", "y": [1, 2]}})
    assert not page.exception
    assert page.number_input(text_choice.key("index")).value == 3


def test_a_box_filters_the_list_and_is_cleared(model: str, data: str) -> None:
    own = load(data)
    made = predictions(model, [labeled.example for labeled in own.examples])
    page = opened(model=model, data=data)
    embedding = embedding_map(model, own)
    [color] = [one for one in page.button_group if one.key == key("embedding_color")]
    assert len(color.options) == 2
    encoding = json.loads(chart(page).spec)["layer"][0]["encoding"]
    assert encoding["color"]["title"] == "Label"
    right = [one.index == labeled.label for one, labeled in zip(made, own.examples, strict=True)]
    verdicts = [name for name, value in (("Right", True), ("Wrong", False)) if value in right]
    assert encoding["shape"]["scale"]["domain"] == verdicts
    color.set_value("predicted").run()
    assert json.loads(chart(page).spec)["layer"][0]["encoding"]["color"]["title"] == "Prediction"
    box = box_around(embedding, [0, 2])
    inside = [
        at for at, point in enumerate(embedding.coordinates)
        if all(box[axis][0] <= point[place] <= box[axis][1] for place, axis in enumerate("xy"))
    ]  # fmt: skip
    select(page, **{BOX: box})
    assert {0, 2} <= set(inside) < set(range(5))
    assert listed(page) == inside
    assert f"{len(inside)} examples selected." in [one.value for one in page.markdown]
    before = chart(page).id
    [clear] = [one for one in page.button if one.key == key("embedding_clear")]
    clear.click().run()
    assert listed(page) == list(range(5))
    assert chart(page).id != before, "in the browser, too, the box is gone"


def test_a_box_becomes_a_slice_that_evaluate_takes() -> None:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).run()
    page.switch_page(TEXT.file)
    name = slice_name("reviews", range(12), "few")
    for field, value in {"open": "browse", "model": "bert-reviews", "data": name, "method": "random"}.items():
        page.query_params[field] = value
    page.run()
    page.session_state[key("embedding")] = page.session_state[key("slice_panel")] = True
    page.run()
    assert not errors(page)
    embedding = embedding_map("bert-reviews", load(name))
    middle = float(sorted(embedding.coordinates[:, 0])[6])
    select(page, **{BOX: {"x": [middle, 1e9], "y": [-1e9, 1e9]}})
    rows = [at for at, x in enumerate(embedding.coordinates[:, 0]) if x >= middle]
    assert listed(page) == rows
    [link] = [one for one in page.get("page_link") if one.proto.label.startswith("Evaluate methods on")]
    query = parse_qs(link.proto.query_string)
    assert query["data"] == [slice_name(name, rows)]
    assert [one.text for one in load(query["data"][0]).examples] == [load(name)[row].text for row in rows]


def test_umap_is_no_option_where_it_is_not_installed(
    model: str, data: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "umap" else real(name, *more))
    page = opened(model=model, data=data)
    assert not [one for one in page.button_group if one.key == key("embedding_projection")]
    assert chart(page).spec


def test_too_few_examples_are_told_in_words_and_the_list_stays(model: str, tmp_path: Path) -> None:
    page = opened(model=model, data=written(tmp_path, CORPUS[:2]))
    assert not page.exception
    assert [error for error in errors(page) if "a map needs at least 3 readable examples, got 2" in error]
    assert listed(page) == [0, 1]
    assert not page.get("vega_lite_chart")


def test_closed_it_computes_nothing(model: str, data: str) -> None:
    page = AppTest.from_file(str(ROOT / "pages" / "text.py"), default_timeout=SECONDS)
    for name, value in {"open": "browse", "method": "random", "model": model, "data": data}.items():
        page.query_params[name] = value
    page.run()
    [section] = [one for one in page.expander if one.label == TITLE]
    assert not section.children


def test_a_box_filters_pictures_too() -> None:
    page = AppTest.from_file(str(ROOT / "pages" / "images.py"), default_timeout=SECONDS)
    data = slice_name("scenes", range(6))
    for name, value in {"open": "browse", "method": "random", "model": "scenes-vit", "data": data}.items():
        page.query_params[name] = value
    page.run()
    page.session_state[picture_key("embedding")] = True
    page.run()
    assert not errors(page)
    embedding = embedding_map("scenes-vit", load_images(data))
    assert embedding.places.tolist() == list(range(6))
    middle = float(sorted(embedding.coordinates[:, 0])[3])
    select(page, **{BOX: {"x": [middle, 1e9], "y": [-1e9, 1e9]}})
    assert "3 examples selected." in [one.value for one in page.markdown]
    assert any("of 3 in the list" in one.value or "3 listed;" in one.value for one in page.caption)
