"""Server time of the Text page with nine cached methods: `python -m benchmarks.page_script [--rounds 20] [--json]`.

A real server, a real Chromium. In turn the unit is changed and the example, among cached ones. Times are the server's:
from the browser's request to the message that the script has finished. `cpu`: processor time of the script's thread,
which a busy machine stretches little. `load`: the machine's load average, before and after.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import numpy as np
from playwright.sync_api import Page, sync_playwright

from benchmarks import served_pages
from benchmarks.harness import Limit, benchmark_parser, judge, load_average, scratch_folder, show
from benchmarks.watched_server import Run, runs, watched
from tests.browser.conftest import ARGUMENTS, CHROMIUM
from tests.browser.server import Server

EXAMPLES = (3, 11, 42, 77, 120)
MOST_MS = 150


def measure(server: Server, rounds: int) -> dict[str, list[Run]]:
    """The runs that each kind of change led to."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        page = browser.new_page()
        taken: dict[str, list[Run]] = {"first visit": [], "unit": [], "example": []}
        taken["first visit"] += _record_runs(server, partial(_open, page, server))
        for turn in range(rounds):
            unit, index = ("word", "token")[turn % 2], EXAMPLES[(turn + 1) % len(EXAMPLES)]
            taken["unit"] += _record_runs(server, partial(served_pages.change_unit, page, unit))
            taken["example"] += _record_runs(server, partial(served_pages.change_example, page, index))
        browser.close()
    return taken


def _open(page: Page, server: Server) -> None:
    page.goto(served_pages.address(server, served_pages.example(EXAMPLES[0])))
    served_pages.wait_for_maps(page)


def _record_runs(server: Server, act: Callable[[], None]) -> list[Run]:
    before = len(runs(server.log))
    act()
    return runs(server.log)[before:]


def main() -> int:
    options = benchmark_parser(__doc__, rounds=20).parse_args()
    with scratch_folder() as folder:
        served_pages.use_home(folder / "home")
        served_pages.fill_cache(EXAMPLES)
        before = load_average()
        with watched(folder) as server:
            taken = measure(server, options.rounds)
    reruns = [run.seconds * 1e3 for name in ("unit", "example") for run in taken[name]]
    show(
        f"Server script time, nine cached methods, load {before} to {load_average()}",
        served_pages.run_rows(taken),
        options.json,
    )
    return judge([Limit("median of the reruns", float(np.median(reruns)), MOST_MS, "ms")])


if __name__ == "__main__":
    sys.exit(main())
