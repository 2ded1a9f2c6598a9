"""The Scaffold page in Chromium: finished students as chart and table, the two loops, a telephone, a job."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from components.inputs.datasets import dataset_label
from components.navigation import SCAFFOLD
from components.scaffold.charts import TABLE_LABEL
from components.scaffold.page import TITLE
from components.scaffold.state import state_of, write_state
from engine.scaffold.experiment import StudentStore
from engine.scaffold.plan import NONE, SMAT, Recipe, ScaffoldPlan
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import box_of, boxes_of, expect_fits, expect_link, settled
from tests.unit.components.scaffolded import outcome

Open = Callable[..., Page]
HEADS = 6 * 12
FEW = Recipe(held_out=4, validation=6, test=10, epochs=1, batch_size=2)
GRID = ScaffoldPlan(
    "reviews-minilm", "reviews", (NONE, "gradient_l2", "attention_logits", SMAT), (50, 100), (0, 9, 11), "minilm",
    recipe=FEW,
)  # fmt: skip
TAUGHT = ScaffoldPlan("reviews-minilm", "reviews", (NONE,), (4,), (0,), "minilm", recipe=FEW)


@pytest.fixture
def finished(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """All students of the grid lie in the server's home."""
    monkeypatch.setenv("EXEGESIS_HOME", str(server.home))
    kept = StudentStore(GRID)
    for pupil in GRID.students:
        phi = np.full(HEADS, 1 / HEADS) if pupil.setting == SMAT else None
        kept.put(outcome(pupil, phi=phi, student_phi=phi))


def opened(server: Server, open_page: Open, plan: ScaffoldPlan, **more: object) -> Page:
    query = urlencode(write_state(state_of(plan, "text")), doseq=True)
    return open_page(f"{server.url}/{SCAFFOLD.url_path}?{query}", **more)


@pytest.mark.usefixtures("finished")
def test_finished_students_are_drawn_marked_and_explained(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, GRID)
    table = page.get_by_role("region", name=TABLE_LABEL)
    expect(table.get_by_role("row")).to_have_count(5, timeout=TIMEOUT_MS)
    expect(table.get_by_text("better", exact=True)).to_have_count(2)
    expect(table.get_by_text("worse", exact=True)).to_have_count(2)
    expect(page.get_by_label("Simulability of reviews-minilm on reviews").first).to_be_visible()
    page.get_by_text(TITLE).click()
    figure = page.get_by_role("img", name="Two loops.")
    expect(figure).to_be_visible()
    settled(page)
    assert figure.evaluate("picture => picture.naturalWidth") == 400


@pytest.mark.usefixtures("finished")
def test_a_telephone_scrolls_the_table_and_not_the_page(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, GRID, width=390, touch=True)
    expect(page.get_by_role("region", name=TABLE_LABEL)).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.get_by_text("Cite this")).to_be_visible(timeout=TIMEOUT_MS)
    expect_fits(page)


def test_a_student_is_taught_from_the_page(server: Server, open_page: Open, tmp_path: Path) -> None:
    page = opened(server, open_page, TAUGHT)
    page.get_by_role("button", name="Teach", exact=True).click(timeout=TIMEOUT_MS)
    table = page.get_by_role("region", name=TABLE_LABEL)
    expect(table.get_by_role("row")).to_have_count(2, timeout=3 * TIMEOUT_MS)
    with page.expect_download() as download:
        page.get_by_role("button", name="Rows, CSV").click()
    file = tmp_path / "rows.csv"
    download.value.save_as(file)
    assert "reviews-minilm,reviews,,none,simulability," in file.read_text(encoding="utf-8")


@pytest.mark.usefixtures("finished")
def test_a_form_tells_how_long_training_an_explainer_takes(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, GRID, scheme="dark")
    page.get_by_role("button", name="Train an explainer for this model").click(timeout=TIMEOUT_MS)
    form = page.get_by_role("dialog")
    expect(form.get_by_text("gets an explainer of its own")).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.get_by_test_id("stDialog")).to_have_css("color-scheme", "dark")
    form.get_by_role("combobox", name="Data set").click()
    page.get_by_role("option", name=dataset_label("reviews"), exact=True).click()
    expect(form.get_by_text("on this machine")).to_be_visible(timeout=3 * TIMEOUT_MS)
    form.get_by_text("Thorough", exact=True).click()
    expect(form.get_by_text("15 students")).to_contain_text("on this machine", timeout=3 * TIMEOUT_MS)


def test_a_setting_deselected_and_selected_again_keeps_the_recipe(server: Server, open_page: Open) -> None:
    page = open_page(f"{server.url}/{SCAFFOLD.url_path}")
    options = page.get_by_role("button", name="Options")
    rate = page.get_by_role("spinbutton", name="Inner rate")
    options.click(timeout=TIMEOUT_MS)
    expect(rate).to_have_value("0.1", timeout=TIMEOUT_MS)
    page.keyboard.press("Escape")
    expect(rate).to_be_hidden(timeout=TIMEOUT_MS)
    options.click()
    page.get_by_role("button", name="Pairs with a score").click(timeout=TIMEOUT_MS)
    page.wait_for_url("**inner_rate=0.3*", timeout=TIMEOUT_MS)
    page.keyboard.press("Escape")
    rows = page.get_by_role("region", name=TABLE_LABEL).get_by_role("row")
    expect(rows).to_have_count(9, timeout=TIMEOUT_MS)
    for left in (8, 9):
        page.get_by_role("button", name="SMaT, learned", exact=True).click()
        expect(rows).to_have_count(left, timeout=TIMEOUT_MS)
        expect(page.get_by_text("not trained yet")).to_have_count(0)
    expect_link(page, "recipe.inner_rate=0.3")


def test_answer_and_chart_are_on_the_first_screen(server: Server, open_page: Open) -> None:
    page = open_page(f"{server.url}/{SCAFFOLD.url_path}", height=900)
    answer = page.get_by_text("Students with 1,000 examples:")
    chart = page.get_by_label("Simulability of bert-reviews on reviews-generated").first
    expect(answer).to_be_visible(timeout=TIMEOUT_MS)
    expect(chart).to_be_visible(timeout=TIMEOUT_MS)
    box = box_of(chart)
    assert box["y"] + box["height"] <= 900
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator("canvas, svg.marks").first).to_be_visible(timeout=TIMEOUT_MS)
    above, below = boxes_of(answer, chart)
    assert above["y"] < below["y"] < 844 - 60
