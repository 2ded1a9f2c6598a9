"""Counterfactuals on the Images page: removed patches on request, pins that start from them, files, the command."""

from __future__ import annotations

from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from components.images.counterfactuals import patches_svg, summary_html
from components.images.state import key
from engine.counterfactuals.patches import PatchCounterfactuals, PatchSet
from engine.counterfactuals.search import SearchRound
from engine.result import Prediction
from tests.alerts import html_of
from tests.project import ROOT
from tests.unit.vision.tiny_vit import save_vit

SVG = "{http://www.w3.org/2000/svg}"

pytestmark = pytest.mark.usefixtures("own_home")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_vit(tmp_path_factory.mktemp("model") / "tiny"))


def opened(model: str, **query: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "images.py"), default_timeout=240)
    for name, value in {"model": model, "method": "random", "data": "scenes:count=3", **query}.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def result(*patches: int, flips: bool = True, complete: bool = True, label: str = "cat") -> PatchCounterfactuals:
    before, after = (Prediction((label, "dog"), (x, 0.0), (0.5 + x / 10, 0.5 - x / 10)) for x in (3.0, -2.0))
    one = PatchSet(patches, after if flips else before)
    rounds = (SearchRound(1, 6, 0, True), SearchRound(2, 9, 1, complete))
    rest = ((one,), None) if flips else ((), one)
    return PatchCounterfactuals("m", "r", "mean", (2, 3), before, None, *rest, rounds, 20)


def test_they_are_searched_on_request_and_pinned(model: str) -> None:
    page = opened(model)
    assert "of 9 patches" not in html_of(page)
    page.toggle(key=key("open.counterfactuals")).set_value(True).run()
    assert not page.exception
    assert page.query_params["open"] in ("counterfactuals", ["counterfactuals"])
    text = html_of(page)
    assert " of 9 patches" in text
    assert "<img src=" in text
    assert any(one.value.startswith(f"exegesis counterfactuals --model {model}") for one in page.code)
    page.button(key("flip_pin.0")).click().run()
    assert not page.exception
    assert page.query_params["pin"]
    assert 'class="xg-heading">Without' in html_of(page)


def test_the_sentence_claims_only_what_was_tried() -> None:
    assert (
        "Removing 2 of 6 patches flips the prediction: <bdi>cat</bdi> (80.0%) → <bdi>dog</bdi> (70.0%). No smaller "
        "set does. A removed patch is the mean color in its place."
    ) in summary_html(result(1, 5))
    assert "No smaller set" in summary_html(result(1, 3, 5))
    assert "No smaller set" not in summary_html(result(1, 3, 5, complete=False))
    none = summary_html(result(4, flips=False))
    assert "Nothing that was tried flips the prediction. Without 1 of 6 patches: <bdi>cat</bdi> (80.0%)" in none
    assert "<img" not in summary_html(result(1, label="<img src=x>"))


def test_removed_patches_are_crossed_out_in_their_places() -> None:
    one = result(1, 5)
    drawing = ElementTree.fromstring(unquote(patches_svg(one, one.results[0], np.zeros((4, 6, 3), np.uint8))))
    assert drawing.attrib["viewBox"] == "0 0 30 20"
    starts = [path.attrib["d"].split("h")[0] for path in drawing.iter(f"{SVG}path")]
    assert starts == ["M10 0", "M20 10"]
