"""The sections below the tables of the Scaffold page as a script, of made-up students of real teachers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.scaffold.sections import PROTOCOLS, PROTOCOLS_PICTURES
from components.scaffold.state import SECTIONS, state_of, write_state
from engine.scaffold.plan import NONE, SMAT, ScaffoldPlan
from tests.alerts import errors
from tests.app.heads_page import html_of, link_of, press
from tests.project import ROOT
from tests.unit.components.taught import PAIRS, PICTURES, PLAN, RECIPE, SCORES, keep_all

SECONDS = 240


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(autouse=True)
def taught(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One home for all tests, so that what is measured is measured once."""
    monkeypatch.setenv("EXEGESIS_HOME", str(home))


def opened(plan: ScaffoldPlan, section: str, **query: str) -> AppTest:
    keep_all(plan)
    page = AppTest.from_file(str(ROOT / "pages" / "scaffold.py"), default_timeout=SECONDS)
    for name, value in (write_state(state_of(plan)) | {"section": [section], "examples": ["25"]}).items():
        page.query_params[name] = value
    for name, one in query.items():
        page.query_params[name] = one
    page.run()
    assert not page.exception
    assert not errors(page)
    return page


def said(page: AppTest) -> str:
    texts: Sequence[str] = [*(one.value for one in page.markdown), *(one.value for one in page.caption)]
    return "\n".join([*texts, *html_of(page)])


def test_heads_are_shown_first_and_the_link_keeps_the_section() -> None:
    page = opened(PLAN, "heads")
    assert "**2 of 24 heads are active** (λ > 0)" in said(page)
    assert "seed 9, simulability 0.810" in said(page)
    assert {"Head 5.2: λ 0.75", "Head 5.3: λ 0.25"} <= {button.label for button in page.button}
    [switch] = [one for one in page.segmented_control if one.label == "Show"]
    assert switch.value == "heads"
    switch.set_value("normalisations")
    page.run()
    assert link_of(page)["section"] == "normalisations"
    assert "SMaT, table 7" in said(page)


def test_one_example_is_chosen_by_number() -> None:
    page = opened(PLAN, "maps", example="3")
    told = said(page)
    assert "Teacher's prediction: " in told
    assert told.count('<p class="xg-title">') >= 7
    [chosen] = [one for one in page.number_input if one.label.startswith("Test example")]
    assert chosen.value == 3
    chosen.set_value(4)
    page.run()
    assert link_of(page)["example"] == "4"
    assert said(page) != told


def test_a_number_beyond_the_test_examples_is_the_last_one() -> None:
    page = opened(PLAN, "maps", example="9999")
    [chosen] = [one for one in page.number_input if one.label.startswith("Test example")]
    assert chosen.value == RECIPE.test


def test_plausibility_is_measured_on_request_and_then_kept() -> None:
    page = opened(PLAN, "plausibility")
    assert "Not measured yet on these 25 examples." in said(page)
    press(page, "Measure plausibility")
    told = said(page)
    assert "25 examples judged" in told
    assert "mean AUC" in told
    assert "Best head * (" in "".join(element.proto.body for element in page.get("html"))
    assert "25 examples judged" in said(opened(PLAN, "plausibility"))


def test_trivial_protocols_of_texts_and_of_pictures() -> None:
    texts, pictures = (opened(plan, "protocols") for plan in (PLAN, PICTURES))
    assert "No trivial protocol found" in said(texts)
    assert PROTOCOLS in [one.value for one in texts.caption]
    assert PROTOCOLS_PICTURES in [one.value for one in pictures.caption]
    told = said(pictures)
    assert "border patches" in told
    assert "Stop words" not in told


def test_pictures_are_drawn_with_their_maps() -> None:
    page = opened(PICTURES, "maps")
    assert "xg-beside" in said(page)
    assert "The outline marks what is known to matter." in said(page)


def test_both_texts_of_a_pair_are_drawn() -> None:
    maps = [html for html in html_of(opened(PAIRS, "maps")) if "xg-map" in html]
    assert maps[-1].count('<p class="xg-text"') >= 12


@pytest.mark.parametrize("section", SECTIONS)
def test_without_a_learned_explainer_it_is_said_what_to_do(section: str) -> None:
    plan = replace(PLAN, settings=(NONE,), seeds=(0,), recipe=replace(RECIPE, test=41))
    told = said(opened(plan, section))
    wanted = "Trained with SMaT so far: none." if section == "normalisations" else "press **Teach**"
    assert wanted in told or "No student of the setting" in told
    assert SMAT in SCORES
