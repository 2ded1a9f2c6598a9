"""Links that the Python interface prints open the page with the same maps, from the cache."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

import exegesis
from components.method_row import method_row
from components.widgets.patch_map import patch_map, patches_html
from components.widgets.token_map import token_map_html
from engine.registry import explainer
from tests.project import ROOT

SECONDS = 120
TEXT = "A fine & funny film. positive"


def opened(link: str) -> AppTest:
    address = urlsplit(link)
    page = AppTest.from_file(str(ROOT / "pages" / f"{address.path.strip('/')}.py"), default_timeout=SECONDS)
    for name, values in parse_qs(address.query, keep_blank_values=True).items():
        page.query_params[name] = values
    page.run()
    assert not page.exception
    return page


def html_of(page: AppTest) -> str:
    return "".join(element.proto.body for element in page.get("html"))


def test_a_text_opens_with_the_same_maps(capsys: pytest.CaptureFixture[str]) -> None:
    result = exegesis.explain(
        "bert-marked", TEXT, {"occlusion": {"window": 2}, "random": {}}, target="negative", seed=2, progress=False
    )
    link = exegesis.open_in_dashboard(result, port=8713)
    assert capsys.readouterr().out == f"{link}\n"
    assert link.startswith("http://localhost:8713/text?")
    page = html_of(opened(link))
    for one in result:
        row = method_row(explainer(one.provenance.method), one, result.input, "token")  # type: ignore[arg-type]
        assert token_map_html(row.view) in page
    assert page.count(" · cached") >= 2  # the page computed nothing


def test_a_picture_of_ones_own_opens_with_the_same_maps() -> None:
    pixels = exegesis.example("scenes", 1).pixels[::-1].copy()  # type: ignore[attr-defined]
    result = exegesis.explain("scenes-vit", pixels, "gradient_x_input", progress=False)
    page = html_of(opened(exegesis.open_in_dashboard(result)))
    method = explainer("gradient_x_input", "image")
    assert patches_html(method.title, patch_map(method, result[0])) in page
    assert "cached" in page


def test_a_prompt_opens_with_its_tokens() -> None:
    prompt = exegesis.example("agreement", 0)
    result = exegesis.explain("tiny-llama", prompt, "gradient_x_input", progress=False)
    page = html_of(opened(exegesis.open_in_dashboard(result)))
    row = method_row(explainer("gradient_x_input"), result[0], prompt, "token")  # type: ignore[arg-type]
    assert token_map_html(row.view) in page


def test_runs_and_comparisons_open_on_their_pages() -> None:
    run = exegesis.randomize("bert-marked", "reviews-marked", "gradient_x_input", examples=2, seeds=1, progress=False)
    link = exegesis.open_in_dashboard(run)
    assert link.startswith("http://localhost:8501/randomization?input=text&model=bert-marked&data=reviews-marked&")
    opened(link)
    compared = exegesis.compare(["occlusion@bert-marked", "random@bert-marked"], TEXT, progress=False)
    assert "/compare?" in exegesis.open_in_dashboard(compared)
    opened(exegesis.open_in_dashboard(compared))


def test_the_answer_of_a_question_opens_on_its_page() -> None:
    answer = exegesis.ask("flip 'A fine film.' with bert-marked", run=False)
    link = exegesis.open_in_dashboard(answer)
    assert link.startswith("http://localhost:8501/text?model=bert-marked&")
    assert "text=A+fine+film." in link
    assert "open=counterfactuals" in link
    opened(link)


def test_what_no_page_shows_is_refused_with_the_reason() -> None:
    wide = exegesis.explain("bert-marked", TEXT, "random", dtype="float64", progress=False)
    with pytest.raises(exegesis.UsageError, match="dtype: is float64, and pages compute in float32"):
        exegesis.open_in_dashboard(wide)
    scaled = exegesis.explain("bert-marked", TEXT, "random", heads={(0, 0): 0}, progress=False)
    with pytest.raises(exegesis.UsageError, match="heads: are scaled"):
        exegesis.open_in_dashboard(scaled)
    with pytest.raises(exegesis.UsageError, match="result: must be what explain, evaluate"):
        exegesis.open_in_dashboard(3)  # type: ignore[arg-type]
