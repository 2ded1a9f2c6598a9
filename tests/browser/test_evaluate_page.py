"""The Evaluate page in Chromium: numbers that tell themselves and lead to examples, a small evaluation, a phone."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from components.evaluate.leaderboard import HINT
from components.evaluate.page import RECENT
from components.navigation import EVALUATE, TEXT
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import boxes_of, expect_fits, settled

Open = Callable[..., Page]
SMALL = "examples=2&method=gradient_x_input&method=random&metric=comprehensiveness&metric=plausibility_auc"
WORK_MS = 180_000


def opened(server: Server, open_page: Open, query: str = "", **more: object) -> Page:
    page = open_page(f"{server.url}/{EVALUATE.url_path}?{query}", **more)
    expect(page.get_by_role("heading", level=1)).to_have_text(EVALUATE.heading, timeout=TIMEOUT_MS)
    return page


def test_a_number_tells_itself_and_leads_to_an_example_on_the_text_page(server: Server, open_page: Open) -> None:
    page = opened(server, open_page)
    board = page.get_by_role("region", name="Leaderboard of reviews-minilm")
    expect(board).to_be_visible(timeout=TIMEOUT_MS)
    told = page.locator(".xg-told")
    expect(told).to_have_text(HINT)
    cell = board.get_by_role("button", name=re.compile("^LIME, comprehensiveness: "))
    cell.focus()
    expect(told).to_contain_text(re.compile(r"^LIME, comprehensiveness: .* 95% interval .* n = 40"))
    page.keyboard.press("Enter")
    expect(page.get_by_text("LIME, comprehensiveness, on reviews-minilm: 40 examples")).to_be_visible()
    expect(page).to_have_url(re.compile("point=lime"))
    again = board.get_by_role("button", name=re.compile("^LIME, comprehensiveness: "))
    expect(again).to_have_attribute("aria-pressed", "true")
    page.get_by_role("link", name=f"Open on {TEXT.title}").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(TEXT.heading)
    expect(page).to_have_url(re.compile("method=lime"))
    page.go_back()
    expect(page.get_by_text("LIME, comprehensiveness, on reviews-minilm: 40 examples")).to_be_visible()


def test_the_best_of_another_metric_comes_first_by_its_head(server: Server, open_page: Open) -> None:
    page = opened(server, open_page)
    page.get_by_role("button", name="Model evaluations ↓").click()
    expect(page.locator(".xg-board tbody th").first).to_contain_text("Random")
    expect(page).to_have_url(re.compile("sort=evaluations"))


def test_a_small_evaluation_is_done_when_it_is_asked_for_and_survives_a_reload(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, SMALL)
    page.get_by_role("button", name="Evaluate", exact=True).click()
    page.reload()
    board = page.get_by_role("region", name="Leaderboard of reviews-minilm")
    expect(board).to_be_visible(timeout=WORK_MS)
    expect(board.get_by_role("button", name=re.compile("n = 2"))).to_have_count(4)
    page.get_by_role("radio", name="Removal curves").click()
    expect(page.get_by_text("No removal curve was measured")).to_be_visible()


def test_a_model_keeps_its_name_when_its_label_changes_with_the_data_set(server: Server, open_page: Open) -> None:
    """The browser answers with the labels that it shows, also with those of the data set before."""
    page = opened(server, open_page, "model=nli-minilm&data=reviews&method=gradient_x_input&examples=2")
    models = page.get_by_test_id("stMultiSelect").first
    expect(models).to_contain_text("nli-minilm · other task: inference")
    page.get_by_role("button", name="Use nli instead").click()
    expect(models).to_contain_text("nli-minilm · inference")
    examples = page.get_by_role("spinbutton", name="Examples")
    examples.fill("3")
    examples.press("Enter")
    expect(page).to_have_url(re.compile(r"model=nli-minilm&data=nli&.*examples=3"))
    expect(models).to_contain_text("nli-minilm · inference")
    expect(page.get_by_text("unknown name")).to_have_count(0)


def test_a_telephone_scrolls_the_table_and_not_the_page(server: Server, open_page: Open) -> None:
    page = opened(server, open_page, width=390, touch=True)
    board = page.get_by_role("region", name="Leaderboard of reviews-minilm")
    expect(board).to_be_visible(timeout=TIMEOUT_MS)
    settled(page)
    assert board.evaluate("box => box.scrollWidth > box.clientWidth")
    head = board.get_by_role("button", name="Comprehensiveness").first
    middles = [box["y"] + box["height"] / 2 for box in boxes_of(head, head.locator("span"))]
    assert abs(middles[0] - middles[1]) < 3, "the arrow is on the line of the name"
    expect_fits(page)


def test_a_seed_chosen_in_options_does_not_come_back_after_a_recent_evaluation(server: Server, open_page: Open) -> None:
    page = opened(server, open_page)
    page.get_by_role("button", name="Options", exact=True).click(timeout=TIMEOUT_MS)
    seed = page.get_by_role("spinbutton", name="Seed")
    seed.fill("7", timeout=TIMEOUT_MS)
    seed.press("Enter")
    expect(page).to_have_url(re.compile("seed=7"), timeout=TIMEOUT_MS)
    settled(page).keyboard.press("Escape")
    page.get_by_role("button", name=RECENT).click()
    page.get_by_test_id("stPopoverBody").get_by_role("button", name="reviews-minilm on reviews").last.click()
    expect(page).not_to_have_url(re.compile("seed="), timeout=TIMEOUT_MS)
    examples = settled(page).get_by_role("spinbutton", name="Examples")
    examples.fill("4")
    examples.press("Enter")
    expect(page).to_have_url(re.compile("examples=4"), timeout=TIMEOUT_MS)
    assert "seed" not in settled(page).url
