"""Keeping what the Attention page shows: buttons for files, the citation and the commands, for what is shown."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.attention.page import FILES, LINES_HELP
from engine.heads.readings import CAUTION
from engine.home import product_version
from tests.project import ROOT
from tests.tiny import save_checkpoint
from tests.unit.vision.tiny_vit import save_vit

OFFERED = [*(label for label, *_ in FILES), "Matrix", "All attention"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny"))


def opened(**query: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "attention.py"), default_timeout=240)
    for name, value in query.items():
        page.query_params[name] = value
    return page.run()


def buttons(page: AppTest) -> list[str]:
    return [button.proto.label for button in page.get("download_button")]


def commands(page: AppTest) -> list[list[str]]:
    return [shlex.split(code.value) for code in page.code]


def test_every_file_is_offered_and_the_command_says_what_is_shown(model: str) -> None:
    page = opened(input="text", model=model, text="a 'quoted' film", score="entropy", seed="4")
    assert not page.exception
    assert buttons(page) == OFFERED
    assert commands(page) == [
        [
            "exegesis", "heads", "--model", model, "--text", "a 'quoted' film",
            "--score", "entropy,importance,distance,special", "--json",
        ]
    ]  # fmt: skip
    [cited] = [element.proto.body for element in page.get("html") if product_version() in element.proto.body]
    assert Path(model).name in cited
    assert "Entropy: Clark et al. (2019)" in cited
    assert CAUTION in cited


def test_where_lines_are_shown_it_is_said_that_the_matrix_is_drawn(model: str) -> None:
    for detail, told in (("lines", True), ("matrix", False)):
        page = opened(input="text", model=model, text="a film", detail=detail)
        helps = {button.proto.label: button.proto.help for button in page.get("download_button")}
        assert [helps[name].endswith(LINES_HELP) for name in ("HTML", "SVG", "CSV")] == [told, told, False]


def test_switched_heads_are_in_both_commands(model: str) -> None:
    page = opened(input="text", model=model, text="a film", switched="0.1x0,1.0x0.5", method="occlusion")
    assert not page.exception
    heads, explain = commands(page)
    scaled = ["--head", "0.1=0", "--head", "1.0=0.5", "--json"]
    assert heads[-5:] == explain[-5:] == scaled
    assert explain[:6] == ["exegesis", "explain", "--model", model, "--method", "occlusion"]


def test_a_long_text_and_a_picture_are_offered_as_files_for_the_command(
    model: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    page = opened(input="text", model=model, text="a film\x1b[0m")
    assert buttons(page) == [*OFFERED, "Text"]
    assert page.code[0].value.endswith("< text.txt")
    vit = str(save_vit(tmp_path_factory.mktemp("vit") / "tiny"))
    page = opened(input="image", model=vit, data="scenes:count=3", index="2", head="1.1")
    assert not page.exception
    assert buttons(page) == [*OFFERED, "Picture"]
    [command] = commands(page)
    assert command[4:8] == ["--dataset", "scenes:count=3", "--index", "2"]
    matrix = next(button for button in page.get("download_button") if button.proto.label == "Matrix")
    assert "head 1.1" in matrix.proto.help


def test_nothing_is_offered_where_nothing_is_shown(model: str) -> None:
    page = opened(input="text", model=model, text=" ")
    assert not page.exception
    assert buttons(page) == []
