"""What a visitor may open and name: nothing without the password but Take part, and never a path of the server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import PropertyMock, patch

import pytest
from streamlit.runtime.context import ContextProxy, StreamlitHeaders
from streamlit.testing.v1 import AppTest

from components import organizer
from components.navigation import ANNOTATE, HOME, IMAGES, LIBRARY, PAGES, RESULTS, STUDY, TEXT, PageEntry
from components.organizer import CLOSED, NOT_OPEN
from engine import jobs
from engine.access import DATASETS, MODELS, OPEN, PASSWORD, STUDY_ONLY
from engine.errors import excerpt
from engine.study.access import AttemptLimit
from tests.alerts import errors
from tests.project import ROOT
from tests.tiny import save_checkpoint

SECONDS = 120.0
OTHERS = [entry for entry in PAGES if entry is not ANNOTATE]
TABLE = "secret_column,text,label\n1,a good film,1\n2,a bad film,0\n"


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings."""
    for name in (PASSWORD, OPEN, STUDY_ONLY, MODELS, DATASETS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(organizer, "TRIES", AttemptLimit())


@pytest.fixture
def elsewhere() -> Iterator[None]:
    """A browser on another machine, behind a proxy on this one."""
    headers = StreamlitHeaders([("Host", "localhost:8501"), ("X-Forwarded-For", "203.0.113.7")])
    with patch.object(ContextProxy, "headers", new_callable=PropertyMock, return_value=headers):
        yield


def opened(entry: PageEntry, **query: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS)
    page = page.run() if entry is HOME else page.run().switch_page(entry.file)
    for name, value in query.items():
        page.query_params[name] = value
    page = page.run()
    assert not page.exception
    return page


def buttons(page: AppTest) -> list[str]:
    return [button.label for button in page.button]


def drawn(page: AppTest) -> str:
    """All HTML on the page."""
    return "".join(html.proto.body for html in page.get("html"))


def said(page: AppTest) -> str:
    return "\n".join(errors(page))


@pytest.mark.parametrize("entry", OTHERS, ids=lambda entry: entry.title)
def test_with_a_password_every_page_but_take_part_asks_for_it(
    entry: PageEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PASSWORD, "secret")
    page = opened(entry)
    assert buttons(page) == ["Log in"]
    assert [title.value for title in page.title] == [entry.heading]
    assert not page.selectbox
    assert not page.multiselect


def test_after_the_password_the_pages_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PASSWORD, "secret")
    page = opened(LIBRARY)
    page.text_input[0].set_value("secret")
    page = page.button[0].click().run()
    assert "Log out" in buttons(page)
    assert page.switch_page(TEXT.file).run().selectbox


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("entry", PAGES, ids=lambda entry: entry.title)
def test_without_a_password_only_take_part_opens_from_elsewhere(entry: PageEntry) -> None:
    page = opened(entry)
    refusal = {STUDY: [CLOSED], RESULTS: [CLOSED], ANNOTATE: []}.get(entry, [NOT_OPEN])
    assert [error for error in errors(page) if error in (CLOSED, NOT_OPEN)] == refusal
    assert not page.selectbox


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("name", ["{folder}/notes.csv", "{folder}/none.csv", "{folder}", "/", "hub:owner/name"])
@pytest.mark.parametrize("entry", [TEXT, IMAGES], ids=lambda entry: entry.title)
def test_a_visitor_learns_nothing_of_a_path(
    entry: PageEntry, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(OPEN, "1")
    (tmp_path / "notes.csv").write_text(TABLE, encoding="utf-8")
    wanted = name.format(folder=tmp_path)
    page = opened(entry, data=wanted)
    assert f"dataset: {excerpt(wanted)} is not offered on this server." in said(page)
    assert "secret_column" not in said(page)
    page = opened(entry, model=wanted)
    assert f"model: {excerpt(wanted)} is not offered on this server." in said(page)


def test_here_a_path_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "notes.csv").write_text(TABLE, encoding="utf-8")
    page = opened(TEXT, data=str(tmp_path / "notes.csv"))
    assert page.text_area[0].value == "a good film"
    monkeypatch.setenv(OPEN, "1")
    headers = StreamlitHeaders([("Host", "localhost:8501"), ("X-Forwarded-For", "203.0.113.7")])
    with patch.object(ContextProxy, "headers", new_callable=PropertyMock, return_value=headers):
        page = opened(TEXT, data=str(tmp_path / "notes.csv"))  # what somebody else has opened is not shown either
    assert "is not offered" in said(page)


@pytest.mark.usefixtures("elsewhere")
def test_what_the_operator_offers_is_listed_and_opens(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    table, folder = tmp_path / "with space.csv", tmp_path / "tiny"
    table.write_text(TABLE, encoding="utf-8")
    save_checkpoint("bert", folder)
    for name, value in {OPEN: "1", DATASETS: f"'{table}'", MODELS: str(folder)}.items():
        monkeypatch.setenv(name, value)
    page = opened(TEXT, data=str(table), model=str(folder), method="gradient_x_input")
    assert not errors(page)
    model, data = page.selectbox[0], page.selectbox[1]
    assert (model.value, data.value) == (str(folder), str(table))
    assert any(option.startswith(f"{folder} · 2 classes, ") for option in model.options)
    assert str(table) in data.options
    assert page.text_area[0].value == "a good film"


@pytest.mark.usefixtures("elsewhere", "own_home")
def test_only_the_organizer_cancels_removes_and_clears(monkeypatch: pytest.MonkeyPatch) -> None:
    job = jobs.submit("explain", {"model": "reviews-minilm", "methods": ["random"], "examples": [{"text": "good"}]})
    jobs.wait(job.id, SECONDS)
    monkeypatch.setenv(OPEN, "1")
    page = opened(LIBRARY)
    assert any(f"#{job.id}" in caption.value for caption in page.caption)
    assert "Remove" not in buttons(page)
    cache = opened(LIBRARY, section="cache")
    assert not {"Clear …", "Check every entry"} & set(buttons(cache))
    assert os.environ["EXEGESIS_HOME"] not in drawn(cache)


@pytest.mark.usefixtures("own_home")
def test_the_organizer_is_offered_them() -> None:
    job = jobs.submit("explain", {"model": "reviews-minilm", "methods": ["random"], "examples": [{"text": "good"}]})
    jobs.wait(job.id, SECONDS)
    assert "Remove" in buttons(opened(LIBRARY))
    cache = opened(LIBRARY, section="cache")
    assert {"Clear …", "Check every entry"} <= set(buttons(cache))
    assert os.environ["EXEGESIS_HOME"] in drawn(cache)


def test_a_server_of_studies_alone_serves_take_part_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STUDY_ONLY, "1")
    page = opened(HOME)
    assert [one.value for one in page.info] == ["This server only serves studies. Open the link that you were given."]
    page = page.switch_page(ANNOTATE.file).run()
    assert [title.value for title in page.title] == [ANNOTATE.heading]
    for entry in OTHERS:
        if entry is not HOME:
            with pytest.raises(ValueError, match="Could not find a navigation page"):
                page.switch_page(entry.file)
