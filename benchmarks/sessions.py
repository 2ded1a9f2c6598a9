"""Many people at once on one server: `python -m benchmarks.sessions [--sessions 20] [--json]`.

One real server, one Chromium, a context of its own for each session. All open the page of another cached example with
nine methods at the same time; when the last has its maps, all change the unit at the same time. Seconds are the
browser's, until the script has ended and all nine maps are there; `server` are the server's for the same runs. The
browser draws all sessions on the same machine, so this is more than the server's share. Fails on any error on a page,
in a console or in the server's log.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Sequence
from typing import Any

import numpy as np
from playwright.async_api import BrowserContext, Page, async_playwright

from benchmarks import served_pages
from benchmarks.harness import Limit, benchmark_parser, judge, load_average, scratch_folder, show
from benchmarks.watched_server import Run, runs, troubles, watched
from tests.browser.conftest import ARGUMENTS, CHROMIUM
from tests.browser.server import Server

SESSIONS = 20
TIMEOUT_MS = 300_000
WORDS = "unit=word"


async def measure(server: Server, sessions: int) -> tuple[dict[str, list[float]], dict[str, list[Run]], list[str]]:
    """By step: the seconds of each session and the server's runs. And what went wrong."""
    errors: list[str] = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        pages = [await _page(await browser.new_context(), errors) for _ in range(sessions)]
        links = [served_pages.address(server, served_pages.example(index)) for index in range(sessions)]
        seconds = {"open": await _all(_open(page, link) for page, link in zip(pages, links, strict=True))}
        first = runs(server.log)
        seconds["change unit"] = await _all(_change_unit(page) for page in pages)
        second = runs(server.log)[len(first) :]
        for page in pages:
            errors += [f"{page.url}: {text}" for text in await page.locator(served_pages.ALERTS).all_inner_texts()]
        await browser.close()
    return seconds, {"open": first, "change unit": second}, errors


async def _all(visits: Any) -> list[float]:
    return list(await asyncio.gather(*map(_timed, visits)))


async def _timed(visit: Awaitable[None]) -> float:
    begun = time.perf_counter()
    await visit
    return time.perf_counter() - begun


async def _page(context: BrowserContext, errors: list[str]) -> Page:
    context.set_default_timeout(TIMEOUT_MS)
    context.on("weberror", lambda error: errors.append(str(error.error)))
    return await context.new_page()


async def _open(page: Page, link: str) -> None:
    await page.goto(link, wait_until="commit")
    await _wait_for_maps(page)


async def _change_unit(page: Page) -> None:
    await page.get_by_test_id("stButtonGroup").get_by_text("Words", exact=True).click()
    await page.wait_for_url(lambda url: WORDS in url)
    await _wait_for_maps(page)


async def _wait_for_maps(page: Page) -> None:
    await page.locator(served_pages.MAP).nth(len(served_pages.nine_methods()) - 1).wait_for()
    await page.locator(served_pages.FINISHED).wait_for()


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
    options = benchmark_parser(__doc__, sessions=SESSIONS).parse_args()
    with scratch_folder() as folder:
        served_pages.use_home(folder / "home")
        served_pages.fill_cache(range(options.sessions))
        before = load_average()
        with watched(folder) as server:
            seconds, served, errors = asyncio.run(measure(server, options.sessions))
            errors += troubles(server.log)
    rows = [row(step, seconds[step], served[step]) for step in seconds]
    show(f"{options.sessions} sessions at once, cached examples, load {before} to {load_average()}", rows, options.json)
    return judge([Limit("errors on pages and in the server's log", len(errors), 0, "")], errors)


if __name__ == "__main__":
    sys.exit(main())
