"""What looks into a learned explainer, in Chromium: a click on a cell leads to its head, a telephone shows all maps."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Page, expect

from components.navigation import ATTENTION, SCAFFOLD
from components.scaffold.state import state_of, write_state
from engine.scaffold.plan import ScaffoldPlan
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import box_of, expect_fits
from tests.unit.components.taught import PICTURES, PLAN, keep_all

Open = Callable[..., Page]
SECTION = "The learned explainer"


@pytest.fixture
def taught(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Students of a text and of a picture model lie in the server's home."""
    monkeypatch.setenv("EXEGESIS_HOME", str(server.home))
    keep_all(PLAN)
    keep_all(PICTURES)


def opened(server: Server, open_page: Open, plan: ScaffoldPlan, section: str, **more: object) -> Page:
    query = urlencode(write_state(state_of(plan)) | {"section": [section], "examples": ["25"]}, doseq=True)
    page = open_page(f"{server.url}/{SCAFFOLD.url_path}?{query}", **more)
    expect(page.get_by_text(SECTION, exact=True)).to_be_visible(timeout=2 * TIMEOUT_MS)
    return page


@pytest.mark.usefixtures("taught")
def test_a_click_on_a_cell_leads_to_that_head(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, PLAN, "heads")
    expect(page.get_by_text("2 of 24 heads are active")).to_be_visible(timeout=TIMEOUT_MS)
    cells = page.locator(".js-plotly-plot .point")
    expect(cells).to_have_count(24, timeout=2 * TIMEOUT_MS)
    page.locator(".js-plotly-plot").scroll_into_view_if_needed()
    box = box_of(cells.nth(9))
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(page.locator(".hoverlayer")).to_contain_text("layer 2, head 1: λ = 0, inactive")
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_url(f"**/{ATTENTION.url_path}?*", timeout=TIMEOUT_MS)
    query = parse_qs(urlsplit(page.url).query)
    assert (query["model"], query["head"]) == (["bert-marked"], ["2.1"])


@pytest.mark.usefixtures("taught")
def test_the_heaviest_head_has_a_way_of_its_own(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, PLAN, "heads")
    page.get_by_role("button", name="Head 5.2: λ 0.75").click(timeout=2 * TIMEOUT_MS)
    page.wait_for_url("**head=5.2*", timeout=TIMEOUT_MS)


@pytest.mark.usefixtures("taught")
@pytest.mark.parametrize("plan", [PLAN, PICTURES], ids=["text", "pictures"])
def test_a_telephone_shows_all_maps_below_each_other(server: Server, open_page: Open, plan: ScaffoldPlan) -> None:
    page = opened(server, open_page, plan, "maps", width=390, touch=True)
    for title in ("SMaT, learned", "Attention logits, last layer", "Integrated gradients"):
        shown = page.locator("p.xg-title", has_text=title)
        expect(shown).to_be_visible(timeout=2 * TIMEOUT_MS)
    expect_fits(page)


@pytest.mark.usefixtures("taught")
def test_plausibility_is_measured_and_drawn(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, PLAN, "plausibility")
    judged = page.get_by_text("examples judged.")
    measure = page.get_by_role("button", name="Measure plausibility")
    expect(judged.or_(measure).first).to_be_visible(timeout=TIMEOUT_MS)
    if measure.count():  # the other theme has measured it before
        measure.click()
    expect(judged).to_be_visible(timeout=4 * TIMEOUT_MS)
    expect(page.get_by_label("Plausibility, AUC: bert-marked on reviews").first).to_be_visible()
    expect(page.get_by_role("row", name="Best head * (").first).to_be_visible()
