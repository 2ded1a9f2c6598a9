"""The similarity of a pair on the Text page: on request, with links between the tokens, files and the command."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import components.text.similarity as panel
from components.text.similarity import MOST_CHARACTERS, MOST_LINKS, links_svg, pairs_csv, similarity_html
from components.text.state import key
from engine.errors import ExegesisError
from engine.result import Check, Token
from engine.similarity import TextSimilarity
from tests.alerts import errors, html_of
from tests.project import ROOT
from tests.unit.explainers.test_similarity import save_encoder

SECONDS = 120
PAIR = {"text": "A man plays a guitar.", "pair": "Somebody makes music."}
SVG = "{http://www.w3.org/2000/svg}"

pytestmark = pytest.mark.usefixtures("own_home")


def opened(**link: str) -> AppTest:
    page = AppTest.from_file(str(ROOT / "app.py"), default_timeout=SECONDS).switch_page("pages/text.py")
    for name, value in {"model": "nli-minilm", "method": "random", **link}.items():
        page.query_params[name] = value
    page.run()
    assert not page.exception
    return page


def found(relevance: list[list[float]], names: tuple[str, str] = ("good", "fine")) -> TextSimilarity:
    """Two texts of as many tokens, the first of each special."""
    sides = [
        tuple(
            Token("[CLS]" if at == 0 else f"{name}{at}", 0, 1, -1 if at == 0 else side, at == 0) for at in range(count)
        )
        for side, (name, count) in enumerate(zip(names, np.shape(relevance), strict=True))
    ]
    check = Check("share of the similarity", 1e-8, 1e-3)
    return TextSimilarity("minilm", "r", *sides, 0.5, np.array(relevance), 0.1, check, (0, 0))


def test_a_single_text_has_none_and_a_pair_has_it_on_request() -> None:
    assert "Compare both texts" not in [
        one.value for one in opened(text=PAIR["text"], model="reviews-minilm").subheader
    ]
    page = opened(**PAIR)
    assert "Compare both texts" in [one.value for one in page.subheader]
    assert "Their similarity is" not in html_of(page)
    page.toggle(key=key("open.similarity")).set_value(True).run()
    assert not page.exception
    assert page.query_params["open"] in ("similarity", ["similarity"])
    text = html_of(page)
    assert "Their similarity is 0." in text
    assert "“<bdi>guitar</bdi>” and “<bdi>music</bdi>” +0." in text
    assert "exegesis similarity --text 'A man plays a guitar.' --text-pair 'Somebody makes music.'" in [
        one.value for one in page.code
    ]


def test_another_encoder_is_named_in_the_link_and_the_command(tmp_path: Path) -> None:
    encoder = save_encoder(tmp_path / "own")
    page = opened(**PAIR, open="similarity", encoder=str(encoder))
    assert page.text_input(key=key("encoder")).value == str(encoder)
    assert "Their similarity is" in html_of(page)
    assert f"exegesis similarity --model {encoder} --text" in " ".join(one.value for one in page.code)
    page.text_input(key=key("encoder")).set_value("./nowhere").run()
    assert "model: no such folder './nowhere'" in " ".join(errors(page))
    page.text_input(key=key("encoder")).set_value("").run()
    assert "encoder" not in page.query_params
    assert "Their similarity is" in html_of(page)


def test_what_fails_is_said_and_the_page_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> None:
        raise ExegesisError("model: config.json cannot be read.")

    monkeypatch.setattr(panel, "run_cached", fail)
    page = opened(**PAIR, open="similarity")
    assert "model: config.json cannot be read." in " ".join(errors(page))
    assert "Their similarity is" not in html_of(page)
    assert "Export" in [one.value for one in page.subheader], "what follows is drawn"


def test_the_strongest_pairs_have_the_widest_lines() -> None:
    one = found([[9, 9, 9], [9, 0.2, -0.1], [9, 0.0, 0.4]])
    drawing = ElementTree.fromstring(links_svg(one, "light"))
    words = [text.text for text in drawing.iter(f"{SVG}text")]
    assert words == ["good1", "good2", "fine1", "fine2"], "special tokens are not drawn"
    lines = list(drawing.iter(f"{SVG}path"))
    widths = [float(line.attrib["stroke-width"]) for line in lines]
    assert widths == sorted(widths), "the strongest on top"
    assert widths == pytest.approx([0.5, 2.0, 3.5, 6.5])
    colors = [line.attrib["stroke"] for line in lines]
    assert colors[2] == colors[3] != colors[1], "of pairs that make the texts more and less similar"


def test_only_the_strongest_of_many_pairs_have_lines_and_long_tokens_are_cut() -> None:
    many = found(np.random.default_rng(0).normal(size=(9, 12)).tolist(), ("a" * 40, "b"))
    drawing = ElementTree.fromstring(links_svg(many, "dark"))
    assert len(list(drawing.iter(f"{SVG}path"))) == MOST_LINKS
    first = next(drawing.iter(f"{SVG}text")).text or ""
    assert first == "a" * (MOST_CHARACTERS - 1) + "…"


def test_markup_in_tokens_is_text_and_formulas_are_no_formulas() -> None:
    hostile = '<img src=x onerror="alert(1)">'
    one = found([[0, 0], [0, 0.3]], (hostile, "=1+1"))
    html = similarity_html(one, "light")
    assert hostile not in html
    assert hostile not in unquote(html)
    [row] = list(csv.DictReader(io.StringIO(pairs_csv(one))))
    assert (row["first"], row["second"], row["relevance"]) == (f"{hostile}1", "'=1+11", "0.3")
