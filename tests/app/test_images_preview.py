"""A costly map on the Images page: its preview at once, then the exact map and how far the preview was."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from streamlit.delta_generator import DeltaGenerator
from streamlit.testing.v1 import AppTest

from components import navigation
from components.library import previews
from engine.data.image_datasets import load_images
from engine.empirical import explainer as trained_explainers
from engine.empirical.errors import MapErrors
from engine.explain import cached_explanation, explain
from engine.request import Picture, Request
from tests.alerts import errors
from tests.estimated import for_model
from tests.project import ROOT
from tests.unit.vision.tiny_vit import save_vit

DATA, TITLE = "scenes:count=3", "Kernel SHAP"
WAITING, ESTIMATED, MEASURED = "waiting …", "Preview: estimated", "Its preview was off by"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_vit(tmp_path_factory.mktemp("model") / "tiny"))


@pytest.fixture
def drawn(own_home: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """All that the card of Kernel SHAP held, in order. No empirical explainer is shipped."""
    monkeypatch.setattr(trained_explainers, "SHIPPED", tmp_path / "shipped")
    bodies: list[str] = []
    real = DeltaGenerator.html

    def html(place: DeltaGenerator, body: str, **options: Any) -> DeltaGenerator:
        if f'<p class="xg-title">{TITLE}</p>' in body:
            bodies.append(unescape(body))
        return real(place, body, **options)

    monkeypatch.setattr(DeltaGenerator, "html", html)
    return bodies


def opened(model: str, **query: str | Sequence[str]) -> AppTest:
    page = AppTest.from_file(str(ROOT / navigation.IMAGES.file), default_timeout=240)
    named = {"model": model, "data": DATA, "index": "0", "method": ["kernel_shap", "random"], **query}
    for name, value in named.items():
        page.query_params[name] = value if isinstance(value, str) else list(value)
    page.run()
    assert not page.exception
    assert not errors(page)
    return page


def states(drawn: list[str]) -> list[str]:
    words = {WAITING: "waiting", ESTIMATED: "preview", MEASURED: "measured"}
    return [next((name for word, name in words.items() if word in body), "other") for body in drawn]


def test_the_preview_comes_first_and_the_exact_map_says_how_far_it_was(model: str, drawn: list[str]) -> None:
    trained = for_model(model)
    opened(model)
    assert states(drawn) == ["waiting", "preview", "measured"]
    _, preview, last = drawn
    assert (
        "Preview: estimated, expected error 0.25 (0: exact, 1: a map of zeros). The exact map replaces it." in preview
    )
    picture = Picture(load_images(DATA)[0].pixels)
    exact = explain(Request(model, "kernel_shap", picture))
    estimate = cached_explanation(Request(model, "empirical", picture, {"of": trained.reference}))
    assert estimate is not None
    for body, one in ((preview, estimate), (last, exact)):
        printed = re.search('data-v="([^"]*)"', body)
        assert printed
        scores = [float(value) for value in printed[1].split()]
        assert scores == pytest.approx(one.on_grid.ravel().tolist(), rel=6e-3)
    squared = sum((a - b) ** 2 for a, b in zip(exact.scores[1:], estimate.scores[1:], strict=True))
    error = squared / sum(a**2 for a in exact.scores[1:])
    assert f"{MEASURED} {error:.2f} on this picture (expected 0.25)" in last
    drawn.clear()
    opened(model)
    assert states(drawn) == ["measured"], "a cached map has no preview"


def test_another_class_has_its_own_expected_error(model: str, drawn: list[str]) -> None:
    for_model(model)
    picture = Picture(load_images(DATA)[0].pixels)
    prediction = explain(Request(model, "gradient", picture)).prediction
    other = next(label for label in prediction.labels if label != prediction.label)
    opened(model, target=other)
    assert any("expected error 0.50" in body for body in drawn)


def test_no_preview_that_is_expected_to_be_worse_than_zeros(model: str, drawn: list[str]) -> None:
    for_model(model, errors={"predicted class": MapErrors(1.01, 0.1, 0.1, 0.1, 9)})
    opened(model)
    assert not {"preview", "measured"} & set(states(drawn))


def test_no_preview_at_other_parameters(model: str, drawn: list[str]) -> None:
    for_model(model)
    opened(model, **{"kernel_shap.n_samples": "64"})
    assert not {"preview", "measured"} & set(states(drawn))
    assert states(drawn)[-1] == "other"


def test_the_library_lists_it_and_offers_models_of_pictures(model: str, drawn: list[str]) -> None:
    for_model(model)
    page = AppTest.from_file(str(ROOT / navigation.LIBRARY.file), default_timeout=240)
    page.query_params["section"] = "previews"
    page.session_state[previews.OPEN] = True
    page.run()
    assert not page.exception
    bodies = "".join(unescape(one.proto.body) for one in page.get("html"))
    assert f"Kernel SHAP of {model}: 1 pass in place of 200" in bodies
    offered = page.selectbox(key=previews.MODEL).options
    assert any(one.startswith("scenes-vit") for one in offered)
    assert any(one.startswith("reviews-minilm") for one in offered)
    assert any(one.startswith("scenes ") for one in page.selectbox(key=previews.DATA).options)
