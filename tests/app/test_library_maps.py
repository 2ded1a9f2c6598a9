"""Imported maps on pages: the Library imports and removes a set, and other pages offer it as a method."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.library.maps import EMPTY, import_upload
from engine.data.datasets import load
from engine.errors import UsageError
from engine.maps import imported
from engine.maps.files import parse_maps
from tests.alerts import errors, readable_html
from tests.project import ROOT
from tests.tiny import save_checkpoint

pytestmark = pytest.mark.usefixtures("own_home")

SECONDS = 120.0
PLAIN = {
    "tool": "other <b>1.0</b>", "method": "Saliency",
    "maps": [{"text": "good food", "offsets": [[0, 4], [5, 9]], "scores": [1.5, -0.5]}],
}  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny"))


def opened(name: str, **query: str | list[str]) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / f"{name}.py"), default_timeout=SECONDS)
    for field, value in query.items():
        page.query_params[field] = value
    page.run()
    assert not page.exception
    return page


def raw(page: AppTest) -> str:
    return "".join(element.proto.body for element in page.get("html"))


@dataclass
class Upload:
    """What a browser uploads."""

    name: str
    content: bytes
    size: int = 0

    def __post_init__(self) -> None:
        self.size = self.size or len(self.content)

    def getvalue(self) -> bytes:
        return self.content


def test_the_library_says_what_it_needs_and_imports_an_upload(model: str) -> None:
    page = opened("library", section="maps")
    assert page.info[0].value == EMPTY
    next(button for button in page.button if button.label == "Import").click().run()
    assert "file: choose a JSON or .npz file of maps" in errors(page)[0]
    stored = import_upload(Upload("mine.json", json.dumps(PLAIN).encode()), "mine", model)
    assert [one.id for one in imported.all_imported()] == [stored.id] == ["maps:mine"]
    with pytest.raises(UsageError, match="file: must have at most 32 MB, got 33 MB"):
        import_upload(Upload("mine.json", b"{}", 33_000_000), "other", model)


def test_a_set_is_listed_and_removed(model: str) -> None:
    imported.import_maps(parse_maps(json.loads(json.dumps(PLAIN))), "mine", model)
    page = opened("library", section="maps")
    drawn = readable_html(page)
    assert "maps:mine" in drawn
    assert "other &lt;b&gt;1.0&lt;/b&gt;" in raw(page)
    assert "<b>1.0" not in raw(page)
    assert "usable" in drawn
    page.button("library.maps.remove").click().run()
    assert not page.exception
    assert page.info[0].value == EMPTY


def test_text_shows_the_map_and_pages_offer_it_for_its_input_alone(model: str, tmp_path: Path) -> None:
    imported.import_maps(parse_maps(PLAIN), "mine", model)
    page = opened("text", model=model, text="good food", method=["maps:mine"])
    drawn = readable_html(page)
    assert "Saliency, imported (mine)" in drawn
    assert "not recomputed" in drawn
    assert "<b>1.0" not in raw(page)
    refused = readable_html(opened("text", model=model, text="bad food", method=["maps:mine"]))
    assert "maps:mine has no map of this input" in refused
    assert "Saliency, imported (mine)" in choices(opened("text", model=model, text="good food"))
    assert "Saliency, imported (mine)" not in choices(opened("text", model=model, text="bad food"))
    data = tmp_path / "own.csv"
    data.write_text("text,label\nbad food,0\ngood food,1\n", encoding="utf-8")
    for page in (opened("evaluate", model=model, data=str(data)), opened("compare", input="text", text="good food")):
        assert "Saliency, imported (mine)" in choices(page)
    for page in (opened("compare", input="text", text="bad food"), opened("study", new="1")):
        assert "Saliency, imported (mine)" not in choices(page)
    first = load("reviews")[0].text
    entry = {"dataset": "reviews", "example": 0, "offsets": [[0, len(first)]], "scores": [1.0]}
    imported.import_maps(parse_maps({**PLAIN, "maps": [entry]}), "other", model)
    assert "Saliency, imported (other)" in choices(opened("study", new="1"))
    assert "Saliency, imported (mine)" not in choices(opened("evaluate", model=model, data="reviews"))
    assert "Saliency, imported (mine)" not in choices(opened("evaluate", model=model, data=f"{data}:rows=0"))
    linked = opened("evaluate", model=model, data="reviews", method=["maps:mine"])
    assert "Saliency, imported (mine)" in choices(linked), "what a link chooses stays"


def choices(page: AppTest) -> list[str]:
    return [option for box in (*page.multiselect, *page.selectbox) for option in box.options]


def test_a_set_that_cannot_be_read_is_said_and_can_be_removed() -> None:
    folder = imported.maps_folder()
    folder.mkdir(parents=True)
    (folder / "old.json").write_text("{}", encoding="utf-8")
    page = opened("library", section="maps")
    assert "maps old: the file old.json cannot be read" in errors(page)[0]
    page.button("library.maps.remove").click().run()
    assert page.info[0].value == EMPTY
