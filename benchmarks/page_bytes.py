"""Bytes that the server sends for the Text page with nine methods: `python -m benchmarks.page_bytes [--json]`.

Every frame of the websocket, as a real Chromium receives it: our HTML, controls, data and style sheets, not Streamlit's
static bundles. For the default example and for a text of 512 tokens: a visit that computes, with its progress; the
first visit of another browser; there a change of the unit to words, and back to tokens. What the browser has seen
lately and is large, Streamlit then only names by its hash. `maps`: the part that is HTML. The long text is explained
by nine quick methods: the bytes of a map depend on its units, hardly on its method.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks import served_pages
from benchmarks.harness import Limit, benchmark_parser, judge, scratch_folder, show
from benchmarks.watched_server import watched
from tests.browser.conftest import ARGUMENTS, CHROMIUM
from tests.browser.server import Server

MOST_KB = 300
WORDS = 600
"""More than the model reads, so that its 512 tokens are full."""


def measure(server: Server, browser: Browser, name: str, link: str) -> list[dict[str, Any]]:
    """The page in one browser context that computes, then in a fresh one, step by step."""
    rows = []
    for steps in (("computed",), ("cached", "words", "tokens again")):
        context = browser.new_context()
        page = context.new_page()
        traffic = served_pages.Traffic(page)
        for step in steps:
            ACTS[step](page, link)
            rows.append({"text": name, "step": step, "units": _ranked(page), **traffic.take()})
        context.close()
    return rows


def _open(page: Page, link: str) -> None:
    page.goto(link)
    served_pages.wait_for_maps(page)


ACTS: Mapping[str, Callable[[Page, str], None]] = {
    "computed": _open,
    "cached": _open,
    "words": lambda page, _: served_pages.change_unit(page, "word"),
    "tokens again": lambda page, _: served_pages.change_unit(page, "token"),
}


def _ranked(page: Page) -> int:
    """How many units the last map ranks."""
    return int(page.locator(served_pages.MAP).last.evaluate("map => map.style.getPropertyValue('--n').slice(1, -1)"))


def main() -> int:
    parser = benchmark_parser(__doc__)
    parser.add_argument("--words", type=int, default=WORDS, help="of the long text")
    options = parser.parse_args()
    with scratch_folder() as folder:
        served_pages.use_home(folder / "home")
        from components.inputs.link import write_text

        long = {name: found[0] for name, found in write_text("text", served_pages.long_text(options.words)).items()}
        cases = {"default example": (served_pages.example(0), None), "512 tokens": (long, served_pages.QUICK)}
        with watched(folder) as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            rows: list[dict[str, Any]] = []
            for name, (focus, methods) in cases.items():
                rows += measure(server, browser, name, served_pages.address(server, focus, methods))
            browser.close()
    show("Bytes sent, nine methods", rows, options.json)
    return judge([Limit(f"{row['text']}, {row['step']}", row["kB"], MOST_KB, "kB") for row in rows])


if __name__ == "__main__":
    sys.exit(main())
