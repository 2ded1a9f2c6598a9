"""The Attention page as a script, and what its tests look for."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape

from streamlit.testing.v1 import AppTest

from tests.project import ROOT

SECONDS = 240
TEXT = "good food, bad service"


def opened(**query: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "attention.py"), default_timeout=SECONDS)
    for name, value in {"input": "text", "text": TEXT, "open": "switch", **query}.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def html_of(page: AppTest) -> Iterator[str]:
    yield from (unescape(element.proto.body) for element in page.get("html") if "<style>" not in element.proto.body)


def press(page: AppTest, label: str) -> AppTest:
    [button] = [button for button in page.button if button.label == label]
    button.click()
    page.run()
    assert not page.exception
    return page


def link_of(page: AppTest) -> dict[str, str]:
    """What the address says; the page's own names come as lists."""
    found = {name: page.query_params[name] for name in page.query_params}
    return {name: value if isinstance(value, str) else value[-1] for name, value in found.items()}
