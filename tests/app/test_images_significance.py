"""Significant patches on the Images page: on request, at a chosen rate, with files and the command."""

from __future__ import annotations

import csv
import io
import shlex
from dataclasses import replace

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from components.images.significance import answer_html, map_html, patches_table, sorted_patches, survivors
from components.images.state import SIGNIFICANCE, PatchTestView, key
from engine.data.image_datasets import load_images
from engine.request import Picture
from engine.significance.pictures import PictureSignificance, PictureSignificanceQuery, picture_significance
from engine.table_io import to_csv
from tests.alerts import errors, html_of, readable_html
from tests.project import ROOT
from tests.unit.vision.tiny_vit import save_vit

pytestmark = pytest.mark.usefixtures("own_home")

SECONDS = 240
SCENES = "scenes:count=5"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny random model of 3 x 3 patches and the classes cat, dog, eel."""
    return str(save_vit(tmp_path_factory.mktemp("model") / "tiny"))


def test_survivors_come_on_request_and_change_with_the_controls(model: str) -> None:
    page = AppTest.from_file(str(ROOT / "pages" / "images.py"), default_timeout=SECONDS)
    for name, value in {"data": SCENES, "method": "gradient_x_input", "model": model}.items():
        page.query_params[name] = value
    page.run()
    assert "at a false discovery rate" not in html_of(page)
    page.toggle(key=key("open.significance")).set_value(True).run()
    assert not page.exception
    assert not errors(page)
    result = picture_significance(PictureSignificanceQuery(model, Picture(load_images(SCENES)[0].pixels), SCENES))
    assert result.count == 4
    assert answer_html(result, PatchTestView()) in html_of(page)
    assert "The data set has no more: choose a larger one." in html_of(page), "five pictures, 255 requested"
    page.button_group(key=key(f"{SIGNIFICANCE}rate")).set_value(20).run()
    page.button_group(key=key(f"{SIGNIFICANCE}alternative")).set_value("two-sided").run()
    assert answer_html(result, PatchTestView(20, "two-sided")) in html_of(page)
    link = {name: "".join(page.query_params[name]) for name in ("open", "rate", "alternative")}
    assert link == {"open": "significance", "rate": "20", "alternative": "two-sided"}
    command = next(one.value for one in page.code if one.value.startswith("exegesis significance"))
    assert shlex.split(command)[2:] == [
        "--model", model, "--dataset", SCENES, "--index", "0", "--rate", "0.2", "--alternative", "two-sided",
    ]  # fmt: skip


def test_a_long_test_says_its_size_and_waits_for_a_click(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("components.images.significance.MOST_AT_ONCE", 44)
    page = AppTest.from_file(str(ROOT / "pages" / "images.py"), default_timeout=SECONDS)
    link = {"data": SCENES, "method": "gradient_x_input", "model": model, "open": "significance", "seed": "7"}
    for name, value in link.items():
        page.query_params[name] = value
    page.run()
    assert "The test takes up to 45 evaluations of the model. It runs once you start it." in readable_html(page)
    assert "at a false discovery rate" not in html_of(page)
    page.button(key=key("start")).click().run()
    assert "at a false discovery rate" in html_of(page)


def test_a_map_without_survivors_says_so() -> None:
    none = replace(found(), draws=np.full((4, 99), 0.9))
    assert "<p>No patch is significant.</p>" in map_html(none, PatchTestView())


def found(label: str = "boat") -> PictureSignificance:
    draws = np.array([[0.1] * 99, [0.9] * 99, [0.95] * 99, [0.5] * 49 + [0.95] * 50])
    return PictureSignificance("m", "r", "scenes", 0, label, False, (2, 2), 0.9, draws)


def test_the_map_has_a_color_for_survivors_alone_and_the_answer_the_numbers() -> None:
    one, view = found(), PatchTestView()
    assert survivors(one, view).tolist() == [[True, False], [False, False]]
    assert survivors(one, PatchTestView(20, "two-sided"))[1].tolist() == [True, False], "a patch against the class"
    answer = answer_html(one, view)
    assert "1 of 4 patches is significant at a false discovery rate of 10%." in answer
    assert "The largest change, +80.0 points, is at row 1, column 1." in answer
    assert "of 99 other pictures of scenes." in answer
    none = PictureSignificance("m", "r", "d", 0, "boat", True, (1, 1), 0.9, np.array([[1.0] * 99]))
    assert "None of 1 patch is significant" in answer_html(none, view)
    assert patches_table(one, view)["Survives"].tolist() == ["yes", "no", "no", "no"]
    rows = list(csv.DictReader(io.StringIO(to_csv(sorted_patches(one, view)))))
    assert (rows[0]["row"], rows[0]["column"]) == ("1", "1")


def test_labels_are_escaped() -> None:
    hostile = found('<img src=x onerror="alert(1)">')
    for html in (answer_html(hostile, PatchTestView()), map_html(hostile, PatchTestView())):
        assert "<img" not in html
