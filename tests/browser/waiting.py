"""When a page is ready: its script has ended, its components are there, and what they show is painted."""

from __future__ import annotations

import io

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
  const main = document.querySelector("[data-testid=stMain]");
  return main && main.scrollWidth <= main.clientWidth && document.documentElement.scrollWidth <= innerWidth;
}"""
"""Nothing is to be scrolled sideways: a window that has just become narrower may take a moment."""


def settled(page: Page) -> Page:
    """Waits until nothing moves any more. After a choice, first wait for what it brings: the script may not have begun.

    What runs on by itself, as a job does, never settles.
    """
    page.wait_for_function(SETTLED)
    page.evaluate(PAINTED)
    return page


def box_of(located: Locator) -> FloatRect:
    """Where something is in the window, once it is there: a script that runs may just be putting it there anew."""
    while (box := located.bounding_box()) is None:
        expect(located).to_be_visible()
    return box


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
