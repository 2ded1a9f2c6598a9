"""Keeping what the Text page shows: buttons for files, the citation and the command, for what is shown."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.text.export import FILES
from engine.home import product_version
from engine.registry import explainer
from tests.project import ROOT
from tests.tiny import save_checkpoint

METHODS = ["gradient_x_input", "random"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny"))


def opened(**query: str | list[str]) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "text.py"), default_timeout=120)
    for name, value in query.items():
        page.query_params[name] = value
    return page.run()


def buttons(page: AppTest) -> list[str]:
    return [button.proto.label for button in page.get("download_button")]


def test_every_file_is_offered_and_the_command_says_what_is_shown(model: str) -> None:
    page = opened(model=model, method=METHODS, text="a 'quoted' film", seed="4")
    assert not page.exception
    assert buttons(page) == [label for label, *_ in FILES]
    [line] = [code.value for code in page.code]
    assert shlex.split(line) == [
        "exegesis", "explain", "--model", model, "--method", ",".join(METHODS), "--text", "a 'quoted' film",
        "--seed", "4", "--json",
    ]  # fmt: skip
    [cited] = [element.proto.body for element in page.get("html") if product_version() in element.proto.body]
    assert Path(model).name in cited
    for id in METHODS:
        assert f"({id}, version {explainer(id).version})" in cited


def test_a_long_text_is_offered_as_a_file_for_the_command(model: str) -> None:
    page = opened(model=model, method=["random"], text="a film\x1b[0m")
    assert buttons(page) == [*(label for label, *_ in FILES), "Text"]
    assert page.code[0].value.endswith("--text - --json < text.txt")


def test_nothing_is_offered_where_nothing_is_shown(model: str) -> None:
    page = opened(model=model, method=["none"], text="a film")
    assert not page.exception
    assert buttons(page) == []


def test_a_method_that_failed_is_left_out(model: str) -> None:
    page = opened(model=model, method=["attention_head", "random"], text="a film", **{"attention_head.layer": "99"})
    assert shlex.split(page.code[0].value)[5] == "random"
