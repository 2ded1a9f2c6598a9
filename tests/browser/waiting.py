"""When a page is ready: its script has ended, its components are there, and what they show is painted."""

from __future__ import annotations

import io
import re

import numpy as np
from PIL import Image
from playwright.sync_api import FloatRect, Locator, Page, expect

from components.navigation import SECTIONS, PageEntry

STARTED = """() => {
  const app = document.querySelector("[data-testid=stApp]")?.dataset;
  return app?.testScriptState === "notRunning" && app.testConnectionState === "CONNECTED"
    && document.querySelector("[data-testid=stMain] [data-testid=stElementContainer]");
}"""
"""The first run of the page's script has ended: Streamlit says whether it runs, which also holds before that run."""
SETTLED = f"""() => {{
  const coming = [
    "[data-stale=true]", "[data-testid=stSkeleton]", "[data-testid=stProgress]", "[data-testid=stStatusWidget]",
    "[data-testid=stBidiComponentRegular]:not(:has([data-shown]), [data-shown])", ".xg-late",
    ".xg-stage > canvas:not([data-drawn])",
  ];
  return ({STARTED})() && !document.querySelector(coming.join());
}}"""
"""Nothing that was drawn is old, nothing is still to come: our components say that they are shown (`base.js`)."""
PAINTED = """async () => {
  const urls = [...document.querySelectorAll(".xg-seen, img")].map((one) =>
    one.src || getComputedStyle(one).backgroundImage.match(/^url\\("(.*)"\\)$/)?.[1]);
  const decoded = [...new Set(urls.filter(Boolean))].map((src) => Object.assign(new Image(), { src }).decode());
  await Promise.all([document.fonts.ready, ...decoded]);
  for (let frame = 0; frame < 2; frame += 1) await new Promise(requestAnimationFrame);
}"""
"""Pictures are there, and what was drawn before has come to the screen: the second frame begins after the first."""
UNTIL_IT_RUNS = """(running, runs) => new Promise((done) => {
  const reached = () => (document.querySelector(running) !== null) === runs;
  if (reached()) return done();
  const observer = new MutationObserver(() => { if (reached()) { observer.disconnect(); done(); } });
  observer.observe(document.body, { attributes: true, childList: true, subtree: true });
})"""
"""The script runs, or does not. It looks at each change of the page: a short run may be over within a frame."""
FITS = """() => {
  const main = document.querySelector("[data-testid=stMain]") ?? document.documentElement;
  return main.scrollWidth <= main.clientWidth && document.documentElement.scrollWidth <= innerWidth;
}"""
PLACES = """all => all.every((one) => one.isConnected && one.getClientRects().length)
  && all.map((one) => one.getBoundingClientRect().toJSON())"""
"""Where these are, all at one moment, if all are there."""


def settled(page: Page) -> Page:
    """Waits until nothing moves any more. After a choice, first wait for what it brings: the script may not have begun.

    What runs on by itself never settles, nor does a page with a bar of progress, such as a list of jobs. A file has no
    script: it is painted.
    """
    if page.url.startswith("http"):
        page.wait_for_function(SETTLED)
    page.evaluate(PAINTED)
    return page


def expect_fits(page: Page) -> None:
    """Nothing is to be scrolled sideways, once nothing moves: a window that became narrower may take a moment."""
    settled(page).wait_for_function(FITS)


def expect_link(page: Page, *said: str) -> None:
    """The address says it: that comes with the end of a run, a little after what the run shows."""
    for one in said:
        expect(page).to_have_url(re.compile(re.escape(one)))


def boxes_of(*located: Locator) -> list[FloatRect]:
    """Where these are in the window, at one moment, once nothing moves."""
    page = settled(located[0].page)
    while not (boxes := page.evaluate(PLACES, [one.element_handle() for one in located])):
        for one in located:
            expect(one).to_be_visible()
    return boxes


def box_of(located: Locator) -> FloatRect:
    """Where something is in the window, once nothing moves."""
    return boxes_of(located)[0]


def pixels(place: Locator | Page) -> np.ndarray:
    """What is seen once it is painted, as height x width x 3."""
    (place if isinstance(place, Page) else place.page).evaluate(PAINTED)
    with Image.open(io.BytesIO(place.screenshot(animations="disabled"))) as file:
        return np.asarray(file.convert("RGB")).astype(int)


def go_to(page: Page, entry: PageEntry, timeout_ms: float = 60_000) -> None:
    """Open a page through the navigation at the top, in its menu if it has one, and wait for its heading."""
    navigation = page.get_by_role("banner").get_by_role("navigation")
    section = next(name for name, entries in SECTIONS.items() if entry in entries)
    if section:
        navigation.get_by_role("button", name=section, exact=True).click(timeout=timeout_ms)
        page.get_by_role("menuitem", name=entry.title, exact=True).click(timeout=timeout_ms)
    else:
        navigation.get_by_role("link", name=entry.title, exact=True).click(timeout=timeout_ms)
    expect(page.get_by_role("heading", level=1)).to_have_text(entry.heading, timeout=timeout_ms)
