"""A costly map on the Text page: its preview at once, then the exact map and how far the preview was."""

from __future__ import annotations

from collections.abc import Sequence
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from components import navigation
from components.progress import Slot
from components.text.results import FlowLayout
from engine.empirical import explainer as trained_explainers
from engine.explain import cached_explanation, explain
from engine.request import Example, Request
from tests.alerts import errors
from tests.estimated import for_model
from tests.project import ROOT
from tests.tiny import save_checkpoint

TEXT = "the acting is warm and the plot drags"
WAITING, ESTIMATED, MEASURED = "waiting …", "Preview: estimated", "Its preview was off by"

Bodies = list[tuple[str, str]]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_checkpoint("bert", tmp_path_factory.mktemp("model") / "tiny"))


@pytest.fixture
def drawn(own_home: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Bodies:
    """All that the rows of methods held, in order, with their titles. No empirical explainer is shipped."""
    monkeypatch.setattr(trained_explainers, "SHIPPED", tmp_path / "shipped")
    bodies: Bodies = []
    real = FlowLayout.slot

    def slot(layout: FlowLayout, title: str) -> Slot:
        place = real(layout, title)

        class Recorded:
            def html(self, body: str) -> object:
                bodies.append((title, unescape(body)))
                return place.html(body)

        return Recorded()

    monkeypatch.setattr(FlowLayout, "slot", slot)
    return bodies


def opened(model: str, **query: str | Sequence[str]) -> AppTest:
    page = AppTest.from_file(str(ROOT / navigation.TEXT.file), default_timeout=240)
    for name, value in {"model": model, "text": TEXT, "method": ["kernel_shap", "random"], **query}.items():
        page.query_params[name] = value if isinstance(value, str) else list(value)
    page.run()
    assert not page.exception
    assert not errors(page)
    return page


def states(drawn: Bodies, title: str = "Kernel SHAP") -> list[str]:
    """What a row held, one after the other."""
    words = {WAITING: "waiting", ESTIMATED: "preview", MEASURED: "measured"}
    return [
        next((name for word, name in words.items() if word in body), "other") for own, body in drawn if own == title
    ]


def test_the_preview_comes_first_and_the_exact_map_says_how_far_it_was(model: str, drawn: Bodies) -> None:
    trained = for_model(model)
    opened(model)
    assert states(drawn) == ["waiting", "preview", "measured"]
    preview = next(body for _, body in drawn if ESTIMATED in body)
    assert "expected error 0.25" in preview
    exact = explain(Request(model, "kernel_shap", Example(TEXT)))
    estimate = cached_explanation(Request(model, "empirical", Example(TEXT), {"of": trained.reference}))
    assert estimate is not None
    own = exact.features
    error = ((exact.scores - estimate.scores)[own] ** 2).sum() / (exact.scores[own] ** 2).sum()
    assert f"{MEASURED} {error:.2f} on this text (expected 0.25)" in drawn[-1][1] + drawn[-2][1]
    assert exact.provenance.method == "kernel_shap"
    assert abs(exact.scores.sum() - estimate.scores.sum()) > 1e-9
    assert np.isfinite(estimate.scores).all()
    drawn.clear()
    opened(model)
    assert states(drawn) == ["measured"], "a cached map has no preview"


def test_another_class_has_its_own_expected_error(model: str, drawn: Bodies) -> None:
    for_model(model)
    predicted = explain(Request(model, "gradient", Example(TEXT))).prediction.index
    opened(model, target=str(1 - predicted))
    assert any("expected error 0.50" in body for _, body in drawn)


def test_a_preview_in_the_table_of_tokens(model: str, own_home: None) -> None:
    for_model(model)
    page = opened(model, layout="aligned", method=["kernel_shap"])
    bodies = "".join(unescape(one.proto.body) for one in page.get("html"))
    assert MEASURED in bodies
    assert ESTIMATED not in bodies


@pytest.mark.parametrize("case", ["no explainer", "other parameters", "other revision", "other version"])
def test_no_preview_where_it_would_be_of_something_else(model: str, drawn: Bodies, case: str) -> None:
    changes = {"other revision": {"revision": "1" * 16}, "other version": {"versions": (1, 2)}}
    if case != "no explainer":
        for_model(model, **changes.get(case, {}))
    opened(model, **({"kernel_shap.n_samples": "64"} if case == "other parameters" else {}))
    assert "preview" not in states(drawn)
    assert "measured" not in states(drawn)


def test_the_library_lists_what_each_saves(model: str, drawn: Bodies) -> None:
    page = AppTest.from_file(str(ROOT / navigation.LIBRARY.file), default_timeout=240)
    page.query_params["section"] = "previews"
    page.run()
    assert any("No empirical explainer yet" in one.value for one in page.info)
    for_model(model)
    for_model(model, "old", revision="1" * 16)
    page.run()
    assert not page.exception
    bodies = "".join(unescape(one.proto.body) for one in page.get("html"))
    assert "1 pass in place of 200, with an expected error of 0.25" in bodies
    assert "Pays after (maps)" in bodies
    assert "403" in bodies, "80,000 passes of training at 199 saved a map"
    assert "old was trained for another revision" in bodies
