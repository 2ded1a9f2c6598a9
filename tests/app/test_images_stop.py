"""Long work on the Images page can be stopped, says so, and goes on when asked."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

import engine.explain as engine
from components import compute, progress
from engine.progress import CancelToken
from engine.request import Request
from engine.result import Explanation
from tests.project import ROOT
from tests.unit.vision.tiny_vit import save_vit

METHODS = ["gradient_x_input", "occlusion", "lime"]
Many = Callable[..., list[Explanation]]


class Slow:
    """The engine, with a LIME that takes until it is let go or nobody waits for it."""

    def __init__(self, real: Many) -> None:
        self.real, self.let_go, self.ended = real, threading.Event(), threading.Event()

    def __call__(self, requests: list[Request], *, cancel: CancelToken | None = None) -> list[Explanation]:
        if cancel is not None and requests[0].method == "lime":
            try:
                while not self.let_go.wait(0.01):
                    cancel.check()
            finally:
                self.ended.set()
        return self.real(requests) if cancel is None else self.real(requests, cancel=cancel)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Slow:
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "home"))
    stub = Slow(engine.explain_many)
    monkeypatch.setattr(engine, "explain_many", stub)
    monkeypatch.setattr(compute, "GRACE_SECONDS", 0.3)
    return stub


def stopped(page: AppTest, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    """Runs the page and stops it at its first sign of LIME at work, as a click does: by drawing the page again."""
    real = progress.ProgressLine.tick

    def tick(line: progress.ProgressLine, words: str) -> None:
        real(line, words)
        if "LIME" in line._head:
            progress._stop(line._keys)
            st.rerun()

    with monkeypatch.context() as patched:
        patched.setattr(progress.ProgressLine, "tick", tick)
        return page.run()


def cards(page: AppTest) -> list[str]:
    """Each method's card: "map", or the sentence in its place."""
    bodies = [element.proto.body for element in page.get("html")]
    found = [
        (body, re.search('<p class="xg-small xg-sentence[^>]*>([^<]*)<', body)) for body in bodies if "xg-card" in body
    ]
    return [match[1] if match else "map" for body, match in found if match or "data-g=" in body]


def test_what_is_stopped_says_so_and_goes_on_when_asked(
    slow: Slow, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = AppTest.from_file(str(ROOT / "pages" / "images.py"), default_timeout=60)
    asked = {"model": str(save_vit(tmp_path / "tiny")), "data": "scenes:count=2", "method": METHODS}
    for name, value in asked.items():
        page.query_params[name] = value
    stopped(page, monkeypatch)
    assert not page.exception
    assert cards(page) == ["map", "map", "Stopped."]
    assert [element.value for element in page.info] == ["Stopped: 1 of 3 methods has no map."]
    assert slow.ended.wait(10)
    slow.let_go.set()
    [button] = [one for one in page.button if one.label == "Go on"]
    button.click().run()
    assert cards(page) == ["map", "map", "map"]
    assert "Go on" not in [one.label for one in page.button]
