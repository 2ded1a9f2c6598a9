"""Where the maps of the Text page stand, what they say while hovered, and when they are all there."""

from __future__ import annotations

import re
from urllib.parse import urlencode

from playwright.sync_api import CDPSession, FloatRect, Locator, Page, expect

from components.method_row import RATIONALE
from components.navigation import TEXT
from engine.registry import explainer
from tests.browser.conftest import TIMEOUT_MS
from tests.browser.server import Server

LOOK_MS = 50
QUICK = ("gradient_x_input", "attention_mean", "random")


def address(server: Server, model: str, methods: tuple[str, ...] = QUICK, **query: str) -> str:
    """The link of the Text page with these maps."""
    pairs = [("model", model), *(("method", method) for method in methods), *query.items()]
    return f"{server.url}/{TEXT.url_path}?{urlencode(pairs)}"


def row(page: Page, method: str, among: str = ".xg-row") -> Locator:
    """A method's row; `among` names its line or its list entry in the aligned layout.

    While the page is drawn again, the row of the last run may still be there: it is stale.
    """
    title = page.locator(".xg-title", has_text=re.compile(f"^{re.escape(explainer(method).title)}$"))
    return page.locator(f".stElementContainer:not([data-stale=true]) {among}").filter(has=title)


def expect_maps(page: Page, methods: tuple[str, ...] = QUICK) -> None:
    """In running text: a map for each method, and no other but the human one."""
    for method in methods:
        expect(row(page, method).locator(".xg-map")).to_be_visible(timeout=TIMEOUT_MS)
    titles = page.locator(".xg-row .xg-title").filter(has_not_text=re.compile(f"^{RATIONALE}$"))
    expect(titles).to_have_text([explainer(method).title for method in methods])


def expect_table(page: Page, methods: tuple[str, ...] = QUICK) -> None:
    """In the aligned layout: a line for each method, all computed."""
    for method in methods:
        expect(row(page, method, ".xg-item")).to_be_visible(timeout=TIMEOUT_MS)
    expect(page.locator(".xg-grid tbody tr")).to_have_count(len(methods))


def hover_text(page: Page) -> str:
    """What stands beside the hovered unit. The style sheet counts the index, so only the drawn page knows it."""
    return hover_tip(page)[0]


def hover_tip(page: Page) -> tuple[str, FloatRect]:
    """What stands beside the hovered unit, and where in the window, without its padding."""
    session = page.context.new_cdp_session(page)
    for _ in range(TIMEOUT_MS // LOOK_MS):
        drawn = _drawn(session)
        if found := [place for place, (text, _) in enumerate(drawn) if "· index " in text]:
            [said] = found
            text, (x, y, width, height) = drawn[said]
            whole = text if re.search(r"index \d", text) else text + drawn[said + 1][0]
            return whole, {"x": x, "y": y, "width": width, "height": height}
        page.wait_for_timeout(LOOK_MS)
    raise AssertionError("nothing stands beside a hovered unit")


def _drawn(session: CDPSession) -> list[tuple[str, list[float]]]:
    """All texts that are laid out, those of the style sheet too, with their places."""
    seen = session.send("DOMSnapshot.captureSnapshot", {"computedStyles": []})
    layout = seen["documents"][0]["layout"]
    pairs = zip(layout["text"], layout["bounds"], strict=True)
    return [(seen["strings"][text], bounds) for text, bounds in pairs if text >= 0]


def rgb(color: str) -> str:
    """#rrggbb as a browser says it."""
    return "rgb({}, {}, {})".format(*(int(color[at : at + 2], 16) for at in (1, 3, 5)))
