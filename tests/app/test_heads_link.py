"""From a prediction on the Text or Images page to the heads behind it: the same model, input and class."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from components.images import state as picture_session
from components.links import Query
from components.navigation import ATTENTION
from components.prediction import HEADS_LINK
from components.text import state as text_session
from tests.project import ROOT
from tests.tiny import save_checkpoint
from tests.unit.vision.tiny_families import save_family
from tests.unit.vision.tiny_vit import save_vit

SECONDS = 240
TEXT = {"text": "a good film", "pair": "and a bad end"}
PICTURE = {"data": "scenes:count=3", "index": "2"}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("models")
    return {"text": str(save_checkpoint("bert", folder / "text")), "image": str(save_vit(folder / "vit"))}


def opened(file: str, query: Mapping[str, str | list[str]]) -> AppTest:
    page = AppTest.from_file(str(ROOT / file), default_timeout=SECONDS)
    for name, value in query.items():
        page.query_params[name] = value
    return page.run()


@pytest.mark.parametrize(
    ("kind", "file", "button", "asked"),
    [
        ("text", "pages/text.py", text_session.key("heads"), TEXT),
        ("image", "pages/images.py", picture_session.key("heads"), PICTURE),
    ],
)
def test_the_heads_behind_a_prediction_are_one_click_away(
    kind: str, file: str, button: str, asked: dict[str, str], models: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    went: list[tuple[str, Query]] = []
    monkeypatch.setattr(st, "switch_page", lambda path, query_params: went.append((str(path), query_params)))
    query = {"model": models[kind], **asked, "target": "LABEL_1" if kind == "text" else "dog"}
    page = opened(file, {**query, "method": "random"})
    see = page.button(button)
    assert see.label == HEADS_LINK
    see.click().run()
    assert not page.exception
    [(path, link)] = went
    assert path == str(ATTENTION.path)
    there = opened(ATTENTION.file, link)
    assert not there.exception
    found = {name: there.query_params[name] for name in there.query_params}
    said = {name: value if isinstance(value, str) else value[-1] for name, value in found.items()}
    assert said == {"input": kind, **query}


def test_there_is_no_way_to_the_heads_before_there_is_a_prediction(models: dict[str, str]) -> None:
    page = opened("pages/text.py", {"model": models["text"], "text": " "})
    assert not [button for button in page.button if button.label == HEADS_LINK]


def test_a_model_without_heads_over_all_patches_has_no_way_to_them(tmp_path: Path) -> None:
    page = opened(
        "pages/images.py", {"model": str(save_family(tmp_path / "swin", "swin")), **PICTURE, "method": "random"}
    )
    assert not page.exception
    assert any("xg-prediction" in html.proto.body for html in page.get("html"))
    assert not [button for button in page.button if button.label == HEADS_LINK]
