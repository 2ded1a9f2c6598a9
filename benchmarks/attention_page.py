"""From cached attention to pixels: `python -m benchmarks.attention_page [--rounds 5] [--json]`.

A real server and a real Chromium; a tensor of 12 x 12 x 197 x 197 noise, which compresses badly, from the cache on
disk. Seconds from the click until every thumbnail stands on the canvas, the shown head beside them as it is kept, and
the frame has ended: reading, packing, sending, inflating and drawing are in it. Each round has another tensor, so that
nothing is packed already. Bytes are all that the server sends for it; then the script runs again with the same tensor,
which must not be sent again.
"""

from __future__ import annotations

import statistics
import sys
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.harness import Limit, benchmark_parser, judge, load_average, scratch_folder, show
from benchmarks.served_pages import Traffic
from tests.browser.conftest import ARGUMENTS, CHROMIUM, TIMEOUT_MS
from tests.browser.server import running
from tests.project import ROOT

SCRIPT = ROOT / "tests" / "browser" / "attention_page.py"
MOST_SECONDS, MOST_MB, MOST_AGAIN_KB = 1.0, 5.0, 250.0
UNTIL_DRAWN = """(button) => new Promise((resolve) => {
    const started = performance.now(), done = () => resolve((performance.now() - started) / 1e3);
    const drawn = new Set();
    const seen = new MutationObserver((changes) => {
        for (const change of changes) drawn.add(change.attributeName);
        if (drawn.size < 2) return;
        seen.disconnect();
        requestAnimationFrame(() => requestAnimationFrame(done));
    });
    seen.observe(document.body, { subtree: true, attributeFilter: ["data-drawn", "data-whole"] });
    button.click();
})"""


def open_page(browser: Browser, url: str) -> Page:
    """A fresh page that shows nothing yet."""
    page = browser.new_page()
    open_noise(page, url)
    return page


def open_noise(page: Page, url: str) -> None:
    page.goto(f"{url}/?of=noise&view=matrix&detail=matrix")
    page.get_by_text("Nothing yet").wait_for(timeout=TIMEOUT_MS)


def draw_next(page: Page) -> float:
    """Seconds until the next tensor is drawn."""
    return float(page.get_by_role("button", name="Next").evaluate(UNTIL_DRAWN))


def run_again(page: Page, runs: int) -> None:
    page.get_by_role("button", name="Run again").click()
    page.get_by_text(f"after {runs} runs").wait_for(timeout=TIMEOUT_MS)


def draw_times(browser: Browser, url: str, rounds: int) -> list[float]:
    """Of a page that finds everything in the cache, after one that has filled it."""
    taken: list[float] = []
    for _ in ("filled", "found"):
        page = open_page(browser, url)
        taken = [draw_next(page) for _ in range(rounds)]
        page.close()
    return taken


def bytes_sent(browser: Browser, url: str, rounds: int) -> list[dict[str, float]]:
    """On a page of its own: to read along takes longer than all that is measured."""
    page = browser.new_page()
    traffic, rows = Traffic(page), []
    open_noise(page, url)
    for turn in range(rounds):
        traffic.take()
        draw_next(page)
        page.get_by_text(f"after {2 * turn + 2} runs").wait_for(timeout=TIMEOUT_MS)
        sent = traffic.take()
        run_again(page, 2 * turn + 3)
        rows.append({"MB": sent["kB"] / 1e3, "again, kB": traffic.take()["kB"]})
    page.close()
    return rows


def measure(browser: Browser, url: str, rounds: int) -> list[dict[str, Any]]:
    seconds, sent = draw_times(browser, url, rounds), bytes_sent(browser, url, rounds)
    return [{"round": turn + 1, "s": seconds[turn], **sent[turn]} for turn in range(rounds)]


def main() -> int:
    options = benchmark_parser(__doc__, rounds=5).parse_args()
    before = load_average()
    with (
        scratch_folder() as folder,
        running(folder, "streamlit", str(SCRIPT)) as server,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        rows = measure(browser, server.url, options.rounds)
        browser.close()
    show(f"All heads' attention, from the cache to pixels, load {before} to {load_average()}", rows, options.json)
    return judge(
        [
            Limit("median from the cache to pixels", statistics.median(row["s"] for row in rows), MOST_SECONDS, "s"),
            Limit("sent at most", max(row["MB"] for row in rows), MOST_MB, "MB"),
            Limit("sent when the script runs again", max(row["again, kB"] for row in rows), MOST_AGAIN_KB, "kB"),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
