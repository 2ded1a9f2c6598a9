"""Long work on the Text page can be stopped, says so, and goes on when asked."""

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
from components.inputs import text_choice
from components.prediction import PROBE
from components.text.state import key
from engine.explain import key_of
from engine.progress import CancelToken
from engine.request import Example, Request
from engine.result import Explanation
from tests.project import ROOT
from tests.tiny import save_checkpoint

METHODS = ["gradient_x_input", "occlusion", "lime"]
Many = Callable[..., list[Explanation]]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny"))


class Slow:
    """The engine, with an occlusion that takes until it is let go or nobody waits for it."""

    def __init__(self, real: Many) -> None:
        self.real, self.let_go, self.ended = real, threading.Event(), threading.Event()
        self.asked: list[str] = []

    def __call__(self, requests: list[Request], *, cancel: CancelToken | None = None) -> list[Explanation]:
        if cancel is None:
            return self.real(requests)
        self.asked.append(requests[0].method)
        try:
            while requests[0].method == "occlusion" and not self.let_go.wait(0.01):
                cancel.check()
        finally:
            self.ended.set()
        return self.real(requests, cancel=cancel)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Slow:
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path))
    stub = Slow(engine.explain_many)
    monkeypatch.setattr(engine, "explain_many", stub)
    monkeypatch.setattr(compute, "GRACE_SECONDS", 0.3)
    return stub


def opened(model: str, **query: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "text.py"), default_timeout=60)
    for name, value in {"model": model, "method": METHODS, "text": "good food, bad service", **query}.items():
        page.query_params[name] = value
    return page


def stopped(page: AppTest, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    """Runs the page and stops it at its first sign of slow work, as a click does: by drawing the page again."""
    real = progress.ProgressLine.tick

    def tick(line: progress.ProgressLine, words: str) -> None:
        real(line, words)
        if "Occlusion" in line._head:
            progress._stop(line._keys)
            st.rerun()

    with monkeypatch.context() as patched:
        patched.setattr(progress.ProgressLine, "tick", tick)
        return page.run()


def sentences(page: AppTest) -> list[str]:
    """What each row says; a map says nothing."""
    bodies = [element.proto.body for element in page.get("html")]
    found = [re.search('<p class="xg-sentence[^>]*>([^<]*)<', body) for body in bodies if 'class="xg-row' in body]
    return [match[1] if match else "" for match in found]


def test_what_is_stopped_says_so_frees_the_device_and_goes_on_when_asked(
    model: str, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = stopped(opened(model), monkeypatch)
    assert not page.exception
    assert sentences(page) == ["", "Stopped.", "Stopped."]
    assert [element.value for element in page.info] == ["Stopped: 2 of 3 methods have no map."]
    assert slow.ended.wait(10)
    assert slow.asked.count("occlusion") == 1
    assert "lime" not in slow.asked
    slow.let_go.set()
    [button] = [one for one in page.button if one.label == "Go on"]
    button.click().run()
    assert sentences(page) == ["", "", ""]
    assert "Go on" not in [one.label for one in page.button]


def test_another_text_or_parameter_starts_anew(model: str, slow: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    page = stopped(opened(model), monkeypatch)
    slow.let_go.set()
    page.session_state[key("occlusion.window")] = 2
    page.run()
    assert sentences(page) == ["", "", "Stopped."]
    page.text_area(text_choice.key("text")).set_value("another text").run()
    assert sentences(page) == ["", "", ""]


def test_a_text_that_is_stopped_while_it_is_read_offers_to_go_on(model: str, slow: Slow) -> None:
    page = opened(model)
    page.session_state[compute.STOPPED] = [key_of(Request(model, PROBE, Example("good food, bad service")))]
    page.run()
    assert [element.value for element in page.info] == ["Stopped before the text was read."]
    assert slow.asked == []
    slow.let_go.set()
    [button] = [one for one in page.button if one.label == "Go on"]
    button.click().run()
    assert sentences(page) == ["", "", ""]
