"""Outputs of notebooks in Chromium: the theme of the notebook, nothing fetched, and the link to the dashboard."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

import exegesis
from components.palette import PALETTES, Theme
from tests.browser.server import Server
from tests.browser.waiting import expect_fits

Open = Callable[..., Page]
TEXT = "the film is a quiet triumph"
GROUND = "element => getComputedStyle(element).backgroundColor"
NOTEBOOKS = [
    ("", "<body>", "light", "light"),
    ("", "<body>", "dark", "dark"),
    ("", '<body data-jp-theme-light="false">', "light", "dark"),
    ("", '<body data-jp-theme-light="true">', "dark", "light"),
    ("", '<body class="vscode-dark">', "light", "dark"),
    ("", '<body class="vscode-light">', "dark", "light"),
    (' theme="dark"', "<body>", "light", "dark"),
]
"""Attributes of html and body, the browser's scheme, and the theme to be seen: browser, Jupyter, VS Code, Colab."""


def rgb(color: str) -> str:
    return f"rgb({', '.join(str(int(color[at : at + 2], 16)) for at in (1, 3, 5))})"


@pytest.mark.parametrize(("html", "body", "scheme", "theme"), NOTEBOOKS)
def test_an_output_follows_the_theme_of_the_notebook(
    open_page: Open, tmp_path: Path, model: str, html: str, body: str, scheme: str, theme: Theme
) -> None:
    output = exegesis.explain(model, TEXT, ["gradient_x_input", "random"], progress=False)._repr_html_()
    file = tmp_path / "output.html"
    file.write_text(f"<!DOCTYPE html><html{html}><meta charset=utf-8>{body}{output}", encoding="utf-8")
    page = open_page(file.as_uri(), scheme=scheme, width=600)
    assert page.locator(".exegesis-output").evaluate(GROUND) == rgb(PALETTES[theme].ground)
    expect(page.locator(".xg-map b", has_text=re.compile("^quiet$"))).to_have_count(2)
    steps = page.locator(".xg-map b[class^=f], .xg-map b[class^=a], .xg-map b[class^=m]")
    assert len({steps.nth(at).evaluate(GROUND) for at in range(steps.count())}) > 2
    expect_fits(page)


def test_the_link_of_a_loaded_model_opens_the_same_map(
    open_page: Open, own_server: Server, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import transformers

    monkeypatch.setenv("EXEGESIS_HOME", str(own_server.home))
    loaded: Any = transformers.AutoModelForSequenceClassification.from_pretrained(model)
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    result = exegesis.explain(loaded, TEXT, ["occlusion"], tokenizer=tokenizer, progress=False)
    link = exegesis.open_in_dashboard(result, port=urlsplit(own_server.url).port or 0)
    page = open_page(link)
    row = page.locator(".xg-row", has_text="Occlusion")
    expect(row).to_contain_text("cached")
    scores = row.locator("[data-r]").evaluate_all("units => units.map(unit => unit.dataset.v)")
    words = [token.text for token in result[0].tokens if not token.special]
    assert [score.partition(":")[0] for score in scores] == words
    shown = [float(score.rpartition(" ")[2].replace("\N{MINUS SIGN}", "-")) for score in scores]
    assert shown == pytest.approx(result[0].scores[result[0].features].tolist(), rel=5e-3, abs=1e-9)
