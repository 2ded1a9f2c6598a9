"""The Library in Chromium: a job outlives a reload, a page change and the server; sections are links."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from components.library.cards import PICTURES
from components.library.page import SECTIONS
from components.navigation import HOME, IMAGES, LIBRARY, TEXT
from engine.data.datasets import dataset_names
from engine.data.image_datasets import image_names
from engine.jobs import Job
from engine.jobs.table import JobTable
from engine.models.catalog import embedded_image_models, embedded_models
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server
from tests.browser.waiting import FITS, go_to, settled

Open = Callable[..., Page]
LONG_JOB = 20
METHODS = 2
WAIT_SECONDS = 120
HEADER_PIXELS, ROW_PIXELS = 34, 33


@pytest.fixture(scope="module")
def server(own_server: Server) -> Server:
    """Of its own: its lists of jobs and of results begin empty."""
    return own_server


def address(server: Server, section: str = "jobs") -> str:
    return f"{server.url}/{LIBRARY.url_path}?section={section}"


def submit(page: Page, examples: int) -> int:
    """Submits a job of the form's own model and methods; returns its number, which the page says."""
    page.get_by_test_id("stExpander").get_by_text("New job", exact=True).click(timeout=TIMEOUT_MS)
    start = page.get_by_role("button", name="Start job")
    expect(start).to_be_visible(timeout=TIMEOUT_MS)
    page.get_by_role("spinbutton", name="Examples").fill(str(examples))
    start.click()
    said = page.get_by_text(re.compile(r"Job \d+ was added to the list"))
    expect(said).to_be_visible(timeout=TIMEOUT_MS)
    return int(re.findall(r"\d+", said.inner_text())[0])


def card(page: Page, job: int) -> Locator:
    return page.locator(f".st-key-job-{job}")


def expect_state(page: Page, job: int, state: str) -> None:
    expect(card(page, job).locator("p").first).to_contain_text(state, timeout=WAIT_SECONDS * 1000)


def seen_in_the_middle(server: Server, job: int) -> Job:
    """The job once it has finished some of its parts, read from its list on disk as the page reads it."""
    ledger, end = JobTable(server.home / "jobs.db"), time.monotonic() + WAIT_SECONDS
    try:
        while not 0 < (found := ledger.get(job)).done < found.total:
            assert not found.is_over, f"it ended too early: {found}"
            assert time.monotonic() < end, f"it did not start: {found}"
            time.sleep(0.02)
        return found
    finally:
        ledger.close()


def as_it_stands(server: Server, job: int) -> Job:
    ledger = JobTable(server.home / "jobs.db")
    try:
        return ledger.get(job)
    finally:
        ledger.close()


def test_a_job_outlives_a_reload_and_a_page_change_and_its_results_open(server: Server, open_page: Open) -> None:
    page = open_page(address(server))
    expect(page.get_by_text("No jobs yet")).to_be_visible(timeout=TIMEOUT_MS)
    job = submit(page, 4)
    expect(card(page, job)).to_contain_text("Explain 4 examples of reviews-minilm")
    page.reload()
    expect(card(page, job)).to_be_visible(timeout=TIMEOUT_MS)
    go_to(page, HOME)
    go_to(page, LIBRARY)
    expect(card(page, job)).to_be_visible(timeout=TIMEOUT_MS)
    expect_state(page, job, "done")
    expect(card(page, job)).to_contain_text("8 of 8 parts")
    # The first review comes computed with both methods (engine/shipped).
    expect(card(page, job)).to_contain_text("6 computed in this run · 2 from the cache")
    card(page, job).get_by_role("link", name="First example on the Text page").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(TEXT.heading, timeout=TIMEOUT_MS)
    rows = page.locator(".xg-row")
    expect(rows).to_have_count(METHODS, timeout=TIMEOUT_MS)
    expect(rows.filter(has_text="cached")).to_have_count(METHODS, timeout=TIMEOUT_MS)


def test_a_job_outlives_a_killed_server(start_server: Callable[[str], Server], open_page: Open) -> None:
    first = start_server("launcher")
    page = open_page(address(first))
    job = submit(page, LONG_JOB)
    expect_state(page, job, "running")
    page.close()  # it would report the lost connection as an error of its own
    killed = seen_in_the_middle(first, job)
    os.kill(killed.owner.pid, signal.SIGKILL)
    second = start_server("launcher")
    assert second.home == first.home
    page = open_page(address(second))
    expect_state(page, job, "interrupted")
    expect(card(page, job)).to_contain_text("The process that ran it ended.")
    card(page, job).get_by_role("button", name="Resume").click()
    expect_state(page, job, "done")
    expect(card(page, job)).to_contain_text(f"{METHODS * LONG_JOB} of {METHODS * LONG_JOB} parts")
    ended = as_it_stands(second, job)
    assert ended.done == ended.total
    assert ended.computed <= ended.total - killed.done
    expect(card(page, job)).to_contain_text(f"{ended.computed} computed in this run")


def test_no_section_is_wider_than_the_window(server: Server, open_page: Open) -> None:
    page = open_page(address(server))
    for section, name in SECTIONS.items():
        choice = page.get_by_role("radio", name=name, exact=True)
        choice.click(timeout=TIMEOUT_MS)
        expect(choice).to_have_attribute("aria-checked", "true")
        expect(page).to_have_url(re.compile(f"section={section}$"))
        for width in (390, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_function(FITS)


def test_the_back_button_returns_to_the_section_before(server: Server, open_page: Open) -> None:
    page = open_page(address(server, "data"))
    for name in ("Cache", "Device"):
        page.get_by_role("radio", name=name).click(timeout=TIMEOUT_MS)
        expect(page).to_have_url(re.compile(f"section={name.lower()}$"))
    for name in ("Cache", "Data"):
        page.go_back()
        expect(page.get_by_role("radio", name=name)).to_have_attribute("aria-checked", "true", timeout=TIMEOUT_MS)


def select_row(page: Page, row: int) -> None:
    """Click the box before the row; the grid is drawn, so it is found by its place."""
    grid = page.get_by_test_id("stDataFrame")
    expect(grid.locator("canvas").first).to_be_visible(timeout=TIMEOUT_MS)
    settled(page)  # another section may still show its table
    grid.scroll_into_view_if_needed()
    scroll = "(one, to) => { one.scrollTop = to; return one.scrollTop }"
    above = grid.locator(".dvn-scroller").evaluate(scroll, ROW_PIXELS * max(0, row - 2))
    grid.click(position={"x": 17, "y": HEADER_PIXELS + ROW_PIXELS * row - above + 17})


def test_a_selected_set_shows_its_pictures_and_a_model_leads_to_the_images_page(
    server: Server, open_page: Open
) -> None:
    sets, models = [*dataset_names(), *image_names()], [*embedded_models(), *embedded_image_models()]
    page = open_page(address(server, "data"))
    select_row(page, sets.index("scenes"))
    pictures = page.locator(".st-key-data-scenes .xg-thumbnails img")
    expect(pictures).to_have_count(PICTURES, timeout=TIMEOUT_MS)
    settled(page)
    assert pictures.evaluate_all("all => all.every(one => one.naturalWidth === 64 && one.width > 64)")
    select_row(page, sets.index("digits"))
    expect(page.locator(".st-key-data-digits figcaption").first).to_have_text("0", timeout=TIMEOUT_MS)
    page.get_by_role("radio", name="Models").click()
    expect(page.locator(".st-key-data-digits")).to_have_count(0, timeout=TIMEOUT_MS)
    select_row(page, models.index("nli-minilm"))
    expect(page.locator(".st-key-model-nli-minilm")).to_contain_text("SNLI", timeout=TIMEOUT_MS)
    select_row(page, models.index("digits-vit"))
    card = page.locator(".st-key-model-digits-vit")
    expect(card).to_contain_text("8 rows x 8 columns of 4 x 4 pixels", timeout=TIMEOUT_MS)
    card.get_by_role("button", name="Explain a picture").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(IMAGES.heading, timeout=TIMEOUT_MS)
    expect(page).to_have_url(re.compile("model=digits-vit"), timeout=TIMEOUT_MS)
