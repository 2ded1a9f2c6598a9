"""From the start of the server to the first heatmap: `python -m benchmarks.first_heatmap [--rounds 3] [--json]`.

Each round starts a fresh server with an empty home, as `exegesis app` does, and opens one page in a Chromium that is
running already. Seconds since the server was started, until the server answers, until the page's heading, its first
map and all its maps are seen. `cpu`: what the server and its helpers used until then. `load`: the machine's
load average of the last minute, before the round.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from typing import Any

import psutil
from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.harness import benchmark_parser, scratch_folder, show
from tests.browser.conftest import ARGUMENTS, CHROMIUM, TIMEOUT_MS
from tests.browser.server import running

OWN = "/text?text=The+cellist+was+tuning+her+strings+while+everybody+coughed,+and+I+loved+it."
VISITS = {
    "Home": "/",
    "Text, its first example": "/text",
    "Text, one's own": OWN,
    "Images, its first picture": "/images",
}
STEPS = ("server", "heading", "first map", "all maps", "cpu", "load")


def visit(browser: Browser, path: str) -> dict[str, float]:
    """One fresh server, one page."""
    load = os.getloadavg()[0]
    with scratch_folder() as folder:
        begun = time.perf_counter()
        with running(folder) as server:
            marks = [time.perf_counter()]
            page = browser.new_page()
            page.goto(server.url + path, wait_until="commit")
            for step in (_heading, _first_map, _all_maps):
                step(page)
                marks.append(time.perf_counter())
            cpu = _cpu_seconds()
            page.close()
    return dict(zip(STEPS, [*(mark - begun for mark in marks), cpu, load], strict=True))


def _heading(page: Page) -> None:
    page.get_by_role("heading", level=1).first.wait_for(timeout=TIMEOUT_MS)


def _first_map(page: Page) -> None:
    page.locator(".xg-map, .xg-patches[data-v]").first.wait_for(timeout=TIMEOUT_MS)


def _all_maps(page: Page) -> None:
    """The script has ended: nothing says any more that it runs."""
    page.locator('[data-testid="stApp"][data-test-script-state="notRunning"]').wait_for(timeout=TIMEOUT_MS)


def _cpu_seconds() -> float:
    """Of this process's children that run the server, so far."""
    servers = [child for child in psutil.Process().children() if "components.server" in child.cmdline()]
    return sum(sum(server.cpu_times()[:2]) for server in servers)


def measure(visits: Sequence[str], rounds: int) -> list[dict[str, Any]]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        taken = {name: [] for name in visits}  # type: dict[str, list[dict[str, float]]]
        for _ in range(rounds):
            for name in visits:
                taken[name].append(visit(browser, VISITS[name]))
        browser.close()
    return [
        {"page": name, **{step: statistics.median(found[step] for found in times) for step in STEPS}}
        for name, times in taken.items()
    ]


def main() -> None:
    parser = benchmark_parser(__doc__, rounds=3)
    parser.add_argument("--page", choices=list(VISITS), action="append", help="this one only (may be repeated)")
    options = parser.parse_args()
    show("From server start, s", measure(options.page or list(VISITS), options.rounds), options.json)


if __name__ == "__main__":
    main()
