"""Pages on a real server: seconds until they are drawn, bytes that they send, memory, and many sessions at once."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlencode

import numpy as np
from playwright.async_api import BrowserContext, async_playwright
from playwright.async_api import Page as AsyncPage
from playwright.sync_api import Browser, Page
from websockets.sync.client import ClientConnection

from benchmarks.harness import Limit, Measurement, Table, benchmark, scratch_folder
from benchmarks.served_pages import (
    ALERTS,
    EXAMPLES,
    FINISHED,
    MAP,
    QUICK,
    SMALL_BUDGETS,
    TIMEOUT_MS,
    Traffic,
    address,
    change_unit,
    chromium,
    example,
    fill_cache,
    link_query,
    long_text,
    nine_methods,
    open_options,
    open_session,
    run_rows,
    use_home,
    visit_page,
    wait_for_maps,
)
from benchmarks.watched_server import Run, runs, troubles, watched
from components.images.state import START
from components.links import write_text
from components.navigation import IMAGES
from tests.browser.conftest import ARGUMENTS, CHROMIUM
from tests.browser.server import Server, running
from tests.project import ROOT


def limit_errors(errors: Sequence[str]) -> Limit:
    return Limit("errors in the server's log", len(errors), 0, "")


def _open(page: Page, link: str) -> None:
    page.goto(link)
    wait_for_maps(page)


PICTURE_MODEL, PICTURES = "scenes-vit", "scenes"
PICTURE_MAP = " data-g="
MOST_PICTURE_MS = 200


@benchmark(rounds=8)
def picture_page(rounds: int) -> Measurement:
    """Server time of the Images page with cached maps.

    A real server; a plain websocket client takes the browser's part and asks for one picture after the other, as the
    address bar does. Each is computed at its first visit, with the methods that the page starts with; judged are the
    visits after that. Times are the server's, from the request to the message that the script has finished.
    """
    with scratch_folder() as folder, watched(folder) as server:
        with open_session(server) as session:
            for index in EXAMPLES * (rounds + 1):
                link = urlencode({"model": PICTURE_MODEL, "data": PICTURES, "index": index})
                html = visit_page(session, link, IMAGES.url_path)
                if html.count(PICTURE_MAP) < len(START):
                    raise RuntimeError(f"picture {index}: {html.count(PICTURE_MAP)} maps came, not {len(START)}.")
        visits, errors = runs(server.log), troubles(server.log)
    computed, cached = visits[: len(EXAMPLES)], visits[len(EXAMPLES) :]
    median = float(np.median([run.seconds for run in cached])) * 1e3
    return Measurement(
        {"Server script time of the Images page": run_rows({"computed": computed, "cached": cached})},
        [Limit("median of the cached page", median, MOST_PICTURE_MS, "ms"), limit_errors(errors)],
        errors,
    )


MOST_KB = 300
WORDS = 600
"""More than the model reads, so that its 512 tokens are full."""
ACTS: Mapping[str, Callable[[Page, str], None]] = {
    "computed": _open,
    "cached": _open,
    "options": lambda page, _: open_options(page),
    "words": lambda page, _: change_unit(page, "word"),
    "tokens again": lambda page, _: change_unit(page, "token"),
}


@benchmark(words={"type": int, "default": WORDS, "help": "of the long text"})
def page_bytes(words: int) -> Measurement:
    """Bytes that the server sends for the Text page with nine methods.

    Every frame of the websocket, as a real Chromium receives it: our HTML, controls, data and style sheets, not
    Streamlit's static bundles. For the default example and for a text of 512 tokens: a visit that computes, with its
    progress; the first visit of another browser; there Options are opened, the unit is changed to words, and back to
    tokens. What the browser has seen lately and is large, Streamlit then only names by its hash. `maps`: the part that
    is HTML. The long text is explained by nine quick methods: the bytes of a map depend on its units, hardly on its
    method.
    """
    rows: Table = []
    with scratch_folder() as folder:
        use_home(folder / "home")
        long = {name: values[0] for name, values in write_text("text", long_text(words)).items()}
        cases = {"default example": (example(0), None), "512 tokens": (long, QUICK)}
        with watched(folder) as server, chromium() as browser:
            for name, (focus, methods) in cases.items():
                rows += _bytes_of_steps(browser, name, address(server, focus, methods))
    limits = [Limit(f"{row['text']}, {row['step']}", row["kB"], MOST_KB, "kB") for row in rows]
    return Measurement({"Bytes sent, nine methods": rows}, limits)


def _bytes_of_steps(browser: Browser, name: str, link: str) -> Table:
    """The page in one browser context that computes, then in a fresh one, step by step."""
    rows = []
    for steps in (("computed",), ("cached", "options", "words", "tokens again")):
        context = browser.new_context()
        page = context.new_page()
        traffic = Traffic(page)
        for step in steps:
            ACTS[step](page, link)
            units = int(page.locator(MAP).last.evaluate("map => map.style.getPropertyValue('--n').slice(1, -1)"))
            rows.append({"text": name, "step": step, "units": units, **traffic.take()})
        context.close()
    return rows


MEMORY_SESSIONS = 4
VISITS = 20
"""Then the sessions close and new ones open."""
MARKS = 4
MOST_SLOPE_KB = 100
"""At this rate 1,000 more examples would take 100 MB."""


@benchmark(examples=200)
def page_memory(examples: int) -> Measurement:
    """Memory of the server when many examples are looked at.

    A real server. A plain websocket client takes the browser's part: it asks for one link after the other, as the
    address bar does, from several sessions in turn, and some sessions leave and others come. Nine methods an example,
    the costly ones with small budgets. First every example is new and computed, then every example comes from the
    cache.

    Judged is what the server holds: resident memory after `malloc_trim`, for glibc keeps what is freed (of 818 MB that
    it had asked for after 200 examples, 193 MB were in use). Of each pass the slope over the second half, by least
    squares: the first hundred examples fill what is bounded (predictions, Kernel SHAP's designs, the libraries' caches
    of shapes). The first run, of 2026-11-21 and without `malloc_trim`, gave 1,741 kB an example while computing,
    swinging between 754 and 1,110 MB: that was free memory. Since then the server gives it back itself
    (`engine.runtime`).
    """
    with scratch_folder() as folder, watched(folder) as server:
        computed = visit_examples(server, range(examples))
        cached = visit_examples(server, range(examples))
        errors = troubles(server.log)
    limits = [
        Limit(f"slope of the second half {name}", slope(resident) / 1e3, MOST_SLOPE_KB, "kB an example")
        for name, resident in {"computed": computed, "from the cache": cached}.items()
    ]
    rows = [_memory_row("computed", computed), _memory_row("cached", cached)]
    return Measurement({"Memory of the server, nine methods": rows}, [*limits, limit_errors(errors)], errors)


def visit_examples(server: Server, indexes: Sequence[int]) -> list[int]:
    """Resident bytes after each example. Sessions take turns; after some visits all leave and others come."""
    before = len(runs(server.log))
    for start in range(0, len(indexes), VISITS):
        with ExitStack() as stack:
            sessions = [stack.enter_context(open_session(server)) for _ in range(MEMORY_SESSIONS)]
            for turn, index in enumerate(indexes[start : start + VISITS]):
                _visit_example(sessions[turn % MEMORY_SESSIONS], index)
    return [run.resident for run in runs(server.log)[before:]]


def _visit_example(session: ClientConnection, index: int) -> None:
    html = visit_page(session, link_query(example(index), budgets=SMALL_BUDGETS))
    drawn, wanted = html.count('class="xg-map'), len(nine_methods())
    if drawn < wanted:
        raise RuntimeError(f"example {index}: {drawn} maps came, not {wanted}.")


def slope(resident: Sequence[int]) -> float:
    """Bytes an example in the second half, by least squares."""
    half = resident[len(resident) // 2 :]
    return float(np.polyfit(np.arange(len(half)), half, 1)[0])


def _memory_row(name: str, resident: Sequence[int]) -> dict[str, Any]:
    marks = [len(resident) * part // MARKS for part in range(1, MARKS + 1)]
    return {"examples": name, **{f"MB at {mark}": round(resident[mark - 1] / 1e6, 1) for mark in marks}}


@benchmark(sessions=20)
def sessions(sessions: int) -> Measurement:
    """Many people at once on one server.

    One real server, one Chromium, a context of its own for each session. All open the page of another cached example
    with nine methods at the same time; when the last has its maps, all change the unit at the same time. Seconds are
    the browser's, until the script has ended and all nine maps are there; `server` are the server's for the same runs.
    The browser draws all sessions on the same machine, so this is more than the server's share. Fails on any error on a
    page, in a console or in the server's log.
    """
    with scratch_folder() as folder:
        use_home(folder / "home")
        fill_cache(range(sessions))
        with watched(folder) as server:
            rows, errors = asyncio.run(_visit_together(server, sessions))
            errors += troubles(server.log)
    return Measurement(
        {f"{sessions} sessions at once, cached examples": rows},
        [Limit("errors on pages and in the server's log", len(errors), 0, "")],
        errors,
    )


async def _visit_together(server: Server, count: int) -> tuple[Table, list[str]]:
    """A row for each step, and the errors."""
    errors: list[str] = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        pages = [await _new_page(await browser.new_context(), errors) for _ in range(count)]
        links = [address(server, example(index)) for index in range(count)]
        seconds = await _time_all(_open_link(page, link) for page, link in zip(pages, links, strict=True))
        rows = [_session_row("open", seconds, runs(server.log))]
        await asyncio.gather(*map(_open_options, pages))
        opened = runs(server.log)
        seconds = await _time_all(map(_change_to_words, pages))
        rows.append(_session_row("change unit", seconds, runs(server.log)[len(opened) :]))
        for page in pages:
            errors += [f"{page.url}: {text}" for text in await page.locator(ALERTS).all_inner_texts()]
        await browser.close()
    return rows, errors


async def _time_all(visits: Iterable[Awaitable[None]]) -> list[float]:
    async def timed(visit: Awaitable[None]) -> float:
        begun = time.perf_counter()
        await visit
        return time.perf_counter() - begun

    return list(await asyncio.gather(*map(timed, visits)))


async def _new_page(context: BrowserContext, errors: list[str]) -> AsyncPage:
    context.set_default_timeout(TIMEOUT_MS)
    context.on("weberror", lambda error: errors.append(str(error.error)))
    return await context.new_page()


async def _open_link(page: AsyncPage, link: str) -> None:
    await page.goto(link, wait_until="commit")
    await _wait_for_all_maps(page)


async def _open_options(page: AsyncPage) -> None:
    await page.get_by_role("button", name="Options").click()
    await page.get_by_test_id("stButtonGroup").first.wait_for()
    await page.locator(FINISHED).wait_for()


async def _change_to_words(page: AsyncPage) -> None:
    await page.get_by_test_id("stButtonGroup").get_by_text("Words", exact=True).click()
    await page.wait_for_url(lambda url: "unit=word" in url)
    await _wait_for_all_maps(page)


async def _wait_for_all_maps(page: AsyncPage) -> None:
    await page.locator(MAP).nth(len(nine_methods()) - 1).wait_for()
    await page.locator(FINISHED).wait_for()


def _session_row(step: str, seconds: Sequence[float], served: Sequence[Run]) -> dict[str, Any]:
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


@benchmark(rounds=5)
def attention_page(rounds: int) -> Measurement:
    """From cached attention to pixels.

    A real server and a real Chromium; a tensor of 12 x 12 x 197 x 197 noise, which compresses badly, from the cache on
    disk. Seconds from the click until every thumbnail stands on the canvas, the shown head beside them as it is kept,
    and the frame has ended: reading, packing, sending, inflating and drawing are in it. Each round has another tensor,
    so that nothing is packed already. Bytes are all that the server sends for it; then the script runs again with the
    same tensor, which must not be sent again.
    """
    with (
        scratch_folder() as folder,
        running(folder, "streamlit", str(SCRIPT)) as server,
        chromium() as browser,
    ):
        seconds, sent = _draw_times(browser, server.url, rounds), _bytes_of_rounds(browser, server.url, rounds)
    rows = [{"round": turn + 1, "s": seconds[turn], **sent[turn]} for turn in range(rounds)]
    return Measurement(
        {"All heads' attention, from the cache to pixels": rows},
        [
            Limit("median from the cache to pixels", statistics.median(seconds), MOST_SECONDS, "s"),
            Limit("sent at most", max(row["MB"] for row in sent), MOST_MB, "MB"),
            Limit("sent when the script runs again", max(row["again, kB"] for row in sent), MOST_AGAIN_KB, "kB"),
        ],
    )


def _open_noise(page: Page, url: str) -> None:
    page.goto(f"{url}/?of=noise&view=matrix&detail=matrix")
    page.get_by_text("Nothing yet").wait_for(timeout=TIMEOUT_MS)


def _draw_next(page: Page) -> float:
    """Seconds until the next tensor is drawn."""
    return float(page.get_by_role("button", name="Next").evaluate(UNTIL_DRAWN))


def _draw_times(browser: Browser, url: str, rounds: int) -> list[float]:
    """Times of a page that has everything in the cache, after one that has filled it."""
    times: list[float] = []
    for _ in ("filled", "cached"):
        page = browser.new_page()
        _open_noise(page, url)
        times = [_draw_next(page) for _ in range(rounds)]
        page.close()
    return times


def _bytes_of_rounds(browser: Browser, url: str, rounds: int) -> list[dict[str, float]]:
    """Bytes of each round, on a page of its own: to read along takes longer than all that is measured."""
    page = browser.new_page()
    traffic, rows = Traffic(page), []
    _open_noise(page, url)
    for turn in range(rounds):
        traffic.take()
        _draw_next(page)
        page.get_by_text(f"after {2 * turn + 2} runs").wait_for(timeout=TIMEOUT_MS)
        sent = traffic.take()
        page.get_by_role("button", name="Run again").click()
        page.get_by_text(f"after {2 * turn + 3} runs").wait_for(timeout=TIMEOUT_MS)
        rows.append({"MB": sent["kB"] / 1e3, "again, kB": traffic.take()["kB"]})
    page.close()
    return rows
