"""The sliding window on the Images page: on request, live at the chosen position, with files and the command."""

from __future__ import annotations

import csv
import io
import json
import shlex

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from components.images.sliding import answer_html, map_html, positions_csv
from components.images.state import SLIDING, key
from engine.data.image_datasets import load_images
from engine.request import Picture
from engine.sliding import slide_window
from tests.alerts import errors, html_of
from tests.project import ROOT
from tests.unit.vision.tiny_vit import save_vit

pytestmark = pytest.mark.usefixtures("own_home")

SECONDS = 240
SCENES = "scenes:count=3"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny random model of 3 x 3 patches and the classes cat, dog, eel."""
    return str(save_vit(tmp_path_factory.mktemp("model") / "tiny"))


def opened(**query: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "pages" / "images.py"), default_timeout=SECONDS)
    for name, value in {"data": SCENES, "method": "gradient_x_input", **query}.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def test_the_window_is_on_request_and_its_prediction_follows_the_position(model: str) -> None:
    page = opened(model=model)
    assert "Without the window" not in html_of(page)
    page.toggle(key=key("open.sliding")).set_value(True).run()
    assert not errors(page)
    page.number_input(key=key(f"{SLIDING}window")).set_value(2).run()
    result = slide_window(model, Picture(load_images(SCENES)[0].pixels), 2, 1)
    for position in (1, 4):
        page.slider(key=key(f"{SLIDING}position")).set_value(position).run()
        assert answer_html(result, position - 1, result.predicted) in html_of(page)
    link = ["".join(page.query_params[name]) for name in ("open", "slide_window", "slide_position")]
    assert link == ["sliding", "2", "4"]
    page.button(key=key("sliding_strongest")).click().run()
    strongest = int(result.falls(result.predicted).argmax())
    assert page.slider(key=key(f"{SLIDING}position")).value == strongest + 1
    [code] = [one.value for one in page.code if "exegesis slide" in one.value]
    typed = shlex.split(code)
    assert typed[typed.index("--window") + 1] == "2"


def test_a_link_beyond_the_grid_is_moved_within_it(model: str) -> None:
    page = opened(model=model, open="sliding", slide_window="60", slide_stride="9", slide_position="900")
    assert not errors(page)
    assert page.number_input(key=key(f"{SLIDING}window")).value == 3
    assert "at row 1, column 1" in html_of(page)


def test_the_map_and_the_files_hold_every_position(model: str) -> None:
    result = slide_window(model, Picture(load_images(SCENES)[1].pixels), 1, 1)
    rows = list(csv.DictReader(io.StringIO(positions_csv(result))))
    assert len(rows) == 9
    assert float(rows[5]["probability eel"]) == pytest.approx(result.probabilities[5, 2])
    assert (rows[5]["row"], rows[5]["column"]) == ("2", "3")
    assert np.array(json.loads(json.dumps(result.as_json()))["probabilities"]).shape == (9, 3)
    assert "Window from row 2, column 3." in map_html(result, 5, 0)
