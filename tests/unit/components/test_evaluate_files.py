"""Charts of an evaluation as files stand alone, hold their numbers and where they are from, and run nothing foreign."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html import unescape
from xml.etree import ElementTree

import pytest

from components.charts.files import ChartCaption, chart_html, chart_svg
from components.charts.frame import ChartFrame, method_colors
from components.charts.scores import skips_text
from components.evaluate.charts import RemovalChart
from engine.metrics.results import MetricScore
from tests.unit.evaluation.by_hand import by_hand, fact

EVIL = "</script><script>alert(1)</script>&\x01 模型"
SHOWN = EVIL.replace("\x01", "\ufffd")
COLORS = ("#0072b2", "#d55e00")
FRAME = ChartFrame({"lime": EVIL, "random": "Random"})
FOUND = by_hand(
    {
        ("m", method, "without_top", percent): [1 - share * percent / 100, 1.0]
        for method, share in (("lime", 0.86), ("random", 0.2))
        for percent in (0, 50, 100)
    },
    [fact(0), fact(1)],
)
CHART, TABLE = RemovalChart("m").chart(FOUND, FRAME), RemovalChart("m").table(FOUND, FRAME)
TOLD = ChartCaption(EVIL, ["2 examples, seed 0."], [f"exegesis evaluate --models '{EVIL}' --seed 0"])
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def picture() -> ElementTree.Element:
    return ElementTree.fromstring(chart_svg(CHART, TOLD, TABLE, COLORS))


@pytest.fixture(scope="module")
def page() -> str:
    return chart_html(CHART, TOLD, TABLE, COLORS)


def test_the_picture_says_what_it_shows_in_the_colors_of_the_methods(picture: ElementTree.Element) -> None:
    texts = [text.text or "" for text in picture.iter(f"{SVG}text")]
    assert texts[0] == SHOWN
    assert any(SHOWN.startswith(text.rstrip("…")) and len(text) > 20 for text in texts[1:])  # a legend cuts names
    assert "2 examples, seed 0." in texts
    assert " ".join(texts[-2:]).endswith("--seed 0")
    strokes = {path.get("stroke") for path in picture.iter(f"{SVG}path")}
    assert set(method_colors(["lime", "random"], "light")) <= strokes


def test_the_picture_holds_the_numbers(picture: ElementTree.Element) -> None:
    told = picture.findtext(f"{SVG}desc") or ""
    assert "Random,m,100,0.9" in told
    assert ",m,50,0.785," in told


def test_nothing_in_the_picture_is_cut_off(picture: ElementTree.Element) -> None:
    inner = picture.find(f"{SVG}svg")
    assert inner is not None
    x, y, width, height = (float(inner.get(name, "nan")) for name in ("x", "y", "width", "height"))
    assert x + width <= float(picture.get("width", "0"))
    below = [float(text.get("y", "nan")) for text in picture.findall(f"{SVG}text")]
    assert max(below) < float(picture.get("height", "0"))
    assert [at for at in below if at > y + height] == [at for at in below if at > y]


def test_the_page_runs_one_script_and_loads_nothing(page: str) -> None:
    [script] = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    assert not re.findall(r"<script [^>]*>|<link|<iframe|<img", page.replace(script, ""))
    hashed = b64encode(sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{hashed}'" in page
    assert len(page.encode()) < 1_500_000


def test_the_page_holds_the_chart_its_numbers_and_the_command(page: str) -> None:
    spec = page.rpartition('vegaEmbed("#chart", ')[2].partition(', {"actions"')[0]
    drawn = json.loads(spec)
    [rows] = list(drawn["datasets"].values())
    assert {row["name"] for row in rows} == {SHOWN, "Random"}
    assert drawn["config"]["range"]["category"] == list(COLORS)
    assert "exegesis evaluate --models '</script><script>alert(1)" in unescape(page)
    assert "0.785" in page.partition("<table")[2]


def test_a_chart_groups_reasons_that_differ_in_numbers_alone() -> None:
    score = MetricScore("comprehensiveness", "lime", None, None, 0, {"of 3": 1, "of 5": 2, "no": 4})
    assert skips_text(score) == "4: no; 3: such as: of 3"
