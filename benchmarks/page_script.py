"""Server time of the Text page with nine cached methods: `python -m benchmarks.page_script [--rounds 20] [--json]`.

A real server, a real Chromium. In turn the unit is changed and the example, among cached ones. Times are the server's:
from the browser's request to the message that the script has finished. `cpu`: processor time of the script's thread,
which a busy machine stretches little. `load`: the machine's load average, before and after.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page, sync_playwright

from benchmarks import text_page
from benchmarks.limits import Limit, judge, load
from benchmarks.timing import show
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
        taken["first visit"] += _runs_of(server, partial(_open, page, server))
        for turn in range(rounds):
            unit, index = ("word", "token")[turn % 2], EXAMPLES[(turn + 1) % len(EXAMPLES)]
            taken["unit"] += _runs_of(server, partial(text_page.change_unit, page, unit))
            taken["example"] += _runs_of(server, partial(text_page.change_example, page, index))
        browser.close()
    return taken


def _open(page: Page, server: Server) -> None:
    page.goto(text_page.address(server, text_page.example(EXAMPLES[0])))
    text_page.wait_for_maps(page)


def _runs_of(server: Server, act: Callable[[], None]) -> list[Run]:
    before = len(runs(server.log))
    act()
    return runs(server.log)[before:]


def rows(taken: dict[str, list[Run]]) -> list[dict[str, Any]]:
    return [_row(name, found) for name, found in taken.items()]


def _row(name: str, found: Sequence[Run]) -> dict[str, Any]:
    times = np.array([run.seconds for run in found]) * 1e3
    cpu = np.array([run.cpu for run in found]) * 1e3
    median, slow = np.percentile(times, [50, 90])
    return {
        "change of": name,
        "runs": len(found),
        "ms, median": float(median),
        "ms, 90 %": float(slow),
        "ms, worst": float(times.max()),
        "cpu ms, median": float(np.median(cpu)),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="exegesis-bench-") as folder:
        text_page.use_home(Path(folder) / "home")
        text_page.fill_cache(EXAMPLES)
        before = load()
        with watched(Path(folder)) as server:
            taken = measure(server, given.rounds)
    reruns = [run.seconds * 1e3 for name in ("unit", "example") for run in taken[name]]
    show(f"Server script time, nine cached methods, load {before} to {load()}", rows(taken), given.json)
    return judge([Limit("median of the reruns", float(np.median(reruns)), MOST_MS, "ms")])


if __name__ == "__main__":
    sys.exit(main())
