"""Honest words on the Attention page: the agreement of heads with an attribution, computed only when asked for."""

from __future__ import annotations

import re
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from components import compute, progress
from components.attention.state import BOARD_KEYS, key
from components.numbers import signed
from engine.explain import explain, key_of
from engine.heads.readings import read_heads
from engine.heads.scores import agreement_with
from engine.progress import check_cancelled
from engine.request import Example, Request
from engine.store import result_store
from tests.alerts import errors
from tests.app.heads_page import html_of, opened, press
from tests.tiny import save_checkpoint

TEXT = "the film is a quiet triumph and the acting never falters"
COMPARE = "Compare the heads with Integrated gradients"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A model of which nothing is cached."""
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "home"))
    return str(save_checkpoint("bert", tmp_path / "tiny"))


def told(page: AppTest) -> str:
    """The numbers in words; empty where there are none."""
    found = [re.sub(r"<[^>]+>", "", html) for html in html_of(page)]
    return next((text for text in found if "rank agreement" in text), "")


def labels(page: AppTest) -> list[str]:
    return [button.label for button in page.button]


def test_the_attribution_is_computed_only_when_asked_for(model: str) -> None:
    page, asked = opened(model=model, text=TEXT), Request(model, "integrated_gradients", Example(TEXT))
    assert told(page) == ""
    assert not result_store().contains(key_of(asked))
    press(page, COMPARE)
    assert result_store().contains(key_of(asked))
    assert COMPARE not in labels(page)
    assert "over 11 tokens" in told(page)
    page.segmented_control(key("text", f"{BOARD_KEYS}against")).set_value("kernel_shap").run()
    assert told(page) == ""
    assert "Compare the heads with Kernel SHAP" in labels(page)


def test_the_numbers_are_spearmans_with_the_attribution_of_the_same_class(model: str) -> None:
    page = opened(model=model, text=TEXT, score="agreement", view="received", head="2.3")
    made, reading = (
        explain(Request(model, "integrated_gradients", Example(TEXT))),
        read_heads(Request(model, "random", Example(TEXT))),
    )
    rho = agreement_with(reading.received(), made.scores[made.features])
    best = np.unravel_index(rho.argmax(), rho.shape)
    assert f"Head 2.3, shown above: ρ = {signed(float(rho[2, 3]))}." in told(page)
    assert f"Best: head {best[0]}.{best[1]}, ρ = {signed(float(rho.max()))}." in told(page)


def test_both_sides_of_the_question_are_cited(model: str) -> None:
    caution = next(html for html in html_of(opened(model=model, text=TEXT)) if "Wiegreffe" in html)
    assert "Jain and Wallace, 2019" in caution


def test_one_word_has_no_order(model: str) -> None:
    page = opened(model=model, text="good")
    assert not errors(page)
    assert any("nothing to compare" in box.value for box in page.info)


class Stopper:
    """Stops at the first sign of work whose head names `what`, as a click does: by drawing the page again."""

    def __init__(self, what: str) -> None:
        self._what, self._tick, self.ended = what, progress.ProgressLine.tick, threading.Event()

    def slow(self, *given: object) -> None:
        try:
            while True:
                time.sleep(0.01)
                check_cancelled()
        finally:
            self.ended.set()

    def tick(self, line: progress.ProgressLine, words: str) -> None:
        self._tick(line, words)
        if self._what in line._head:
            progress._stop(line._keys)
            st.rerun()


@pytest.mark.parametrize(
    ("score", "work", "what", "said"),
    [
        ("off", "engine.heads.readings._switch_off", "Switching", "Stopped before every head was switched off."),
        ("agreement", "engine.explain._compute", "Integrated", "Stopped: Integrated gradients."),
    ],
)
def test_a_score_that_takes_long_can_be_stopped_and_goes_on(
    score: str, work: str, what: str, said: str, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(model=model, text=TEXT)
    stopper = Stopper(what)
    monkeypatch.setattr(compute, "GRACE_SECONDS", 0.3)
    with monkeypatch.context() as patched:
        patched.setattr(work, stopper.slow)
        patched.setattr(progress.ProgressLine, "tick", lambda line, words: stopper.tick(line, words))
        page = opened(model=model, text=TEXT, score=score)
        assert stopper.ended.wait(60)
    assert [box.value for box in page.info] == [said]
    assert labels(page).count("Go on") == 1
    press(page, "Go on")
    assert not page.info
    assert "Go on" not in labels(page)
