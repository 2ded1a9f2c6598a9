"""Many people at once on one server: `python -m benchmarks.sessions [--sessions 20] [--json]`.

One real server, one Chromium, a context of its own for each session. All open the page of another cached example with
nine methods at the same time; when the last has its maps, all change the unit at the same time. Seconds are the
browser's, until the script has ended and all nine maps are there; `server` are the server's for the same runs. The
browser draws all sessions on the same machine, so this is more than the server's share. Fails on any error on a page,
in a console or in the server's log.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from playwright.async_api import BrowserContext, Page, async_playwright

from benchmarks import text_page
from benchmarks.limits import Limit, judge, load
from benchmarks.timing import show
from benchmarks.watched_server import Run, runs, troubles, watched
from tests.browser.conftest import ARGUMENTS, CHROMIUM
from tests.browser.server import Server

SESSIONS = 20
TIMEOUT_MS = 300_000
WORDS = "unit=word"


async def measure(server: Server, sessions: int) -> tuple[dict[str, list[float]], dict[str, list[Run]], list[str]]:
    """By step: the seconds of each session and the server's runs. And what went wrong."""
    troubled: list[str] = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        pages = [await _page(await browser.new_context(), troubled) for _ in range(sessions)]
        links = [text_page.address(server, text_page.example(index)) for index in range(sessions)]
        seconds = {"open": await _all(_open(page, link) for page, link in zip(pages, links, strict=True))}
        first = runs(server.log)
        seconds["change unit"] = await _all(_change_unit(page) for page in pages)
        second = runs(server.log)[len(first) :]
        for page in pages:
            troubled += [f"{page.url}: {text}" for text in await page.locator(text_page.TROUBLE).all_inner_texts()]
        await browser.close()
    return seconds, {"open": first, "change unit": second}, troubled


async def _all(visits: Any) -> list[float]:
    return list(await asyncio.gather(*map(_timed, visits)))


async def _timed(visit: Awaitable[None]) -> float:
    begun = time.perf_counter()
    await visit
    return time.perf_counter() - begun


async def _page(context: BrowserContext, troubled: list[str]) -> Page:
    context.set_default_timeout(TIMEOUT_MS)
    context.on("weberror", lambda error: troubled.append(str(error.error)))
    return await context.new_page()


async def _open(page: Page, link: str) -> None:
    await page.goto(link, wait_until="commit")
    await _wait_for_maps(page)


async def _change_unit(page: Page) -> None:
    await page.get_by_test_id("stButtonGroup").get_by_text("Words", exact=True).click()
    await page.wait_for_url(lambda url: WORDS in url)
    await _wait_for_maps(page)


async def _wait_for_maps(page: Page) -> None:
    await page.locator(text_page.MAP).nth(len(text_page.nine()) - 1).wait_for()
    await page.locator(text_page.SETTLED).wait_for()


def row(step: str, seconds: Sequence[float], served: Sequence[Run]) -> dict[str, Any]:
    server = [run.seconds for run in served]
    return {
        "step": step,
        "sessions": len(seconds),
        "s, median": float(np.median(seconds)),
        "s, worst": max(seconds),
        "server s, median": float(np.median(server)),
        "server s, worst": max(server),
        "server cpu ms, median": float(np.median([run.cpu for run in served])) * 1e3,
        "runs": len(served),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="exegesis-bench-") as folder:
        text_page.use_home(Path(folder) / "home")
        text_page.fill_cache(range(given.sessions))
        before = load()
        with watched(Path(folder)) as server:
            seconds, served, troubled = asyncio.run(measure(server, given.sessions))
            troubled += troubles(server.log)
    rows = [row(step, seconds[step], served[step]) for step in seconds]
    show(f"{given.sessions} sessions at once, cached examples, load {before} to {load()}", rows, given.json)
    for line in troubled:
        print(f"error: {line}", file=sys.stderr)
    return judge([Limit("errors on pages and in the server's log", len(troubled), 0, "")])


if __name__ == "__main__":
    sys.exit(main())
