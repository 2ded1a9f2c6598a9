"""Memory of the server when many examples are looked at: `python -m benchmarks.page_memory [--examples 200] [--json]`.

A real server. A plain websocket client takes the browser's part: it asks for one link after the other, as the address
bar does, from several sessions in turn, and some sessions leave and others come. Nine methods an example, the costly
ones with small budgets. First every example is new and computed, then every example comes from the cache.

Judged is what the server holds: resident memory after `malloc_trim`, for glibc keeps what is freed (of 818 MB that it
had asked for after 200 examples, 193 MB were in use). Of each pass the slope over the second half, by least squares:
the first hundred examples fill what is bounded (predictions, Kernel SHAP's designs, the libraries' caches of shapes).
The first run, of 2026-11-21 and without `malloc_trim`, gave 1,741 kB an example while computing, swinging between 754
and 1,110 MB: that was free memory. Since then the server gives it back itself (`engine.malloc`).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from websockets.sync.client import ClientConnection

from benchmarks import served_pages
from benchmarks.harness import Limit, benchmark_parser, judge, scratch_folder, show
from benchmarks.watched_server import runs, troubles, watched
from tests.browser.server import Server

EXAMPLES = 200
SESSIONS = 4
VISITS = 20
"""Then the sessions close and new ones open."""
MARKS = 4
MOST_SLOPE_KB = 100
"""At this rate 1,000 more examples would take 100 MB."""
UNIT = "kB an example"


def visit_examples(server: Server, indexes: Sequence[int]) -> list[int]:
    """Resident bytes after each example. Sessions take turns; after some visits all leave and others come."""
    before = len(runs(server.log))
    for start in range(0, len(indexes), VISITS):
        with ExitStack() as stack:
            sessions = [stack.enter_context(served_pages.open_session(server)) for _ in range(SESSIONS)]
            for turn, index in enumerate(indexes[start : start + VISITS]):
                _visit_example(sessions[turn % SESSIONS], index)
    return [run.resident for run in runs(server.log)[before:]]


def _visit_example(session: ClientConnection, index: int) -> None:
    html = served_pages.visit_page(
        session, served_pages.query(served_pages.example(index), budgets=served_pages.SMALL_BUDGETS)
    )
    drawn, wanted = html.count('class="xg-map'), len(served_pages.nine_methods())
    if drawn < wanted:
        raise RuntimeError(f"example {index}: {drawn} maps came, not {wanted}.")


def slope(resident: Sequence[int]) -> float:
    """Bytes an example in the second half, by least squares."""
    half = resident[len(resident) // 2 :]
    return float(np.polyfit(np.arange(len(half)), half, 1)[0])


def row(name: str, resident: Sequence[int]) -> dict[str, Any]:
    marks = [len(resident) * part // MARKS for part in range(1, MARKS + 1)]
    return {"examples": name, **{f"MB at {mark}": round(resident[mark - 1] / 1e6, 1) for mark in marks}}


def main() -> int:
    options = benchmark_parser(__doc__, examples=EXAMPLES).parse_args()
    with scratch_folder() as folder, watched(folder) as server:
        computed = visit_examples(server, range(options.examples))
        cached = visit_examples(server, range(options.examples))
        errors = troubles(server.log)
    show("Memory of the server, nine methods", [row("computed", computed), row("cached", cached)], options.json)
    limits = [
        Limit("slope of the second half computed", slope(computed) / 1e3, MOST_SLOPE_KB, UNIT),
        Limit("slope of the second half from the cache", slope(cached) / 1e3, MOST_SLOPE_KB, UNIT),
        Limit("errors in the server's log", len(errors), 0, ""),
    ]
    return judge(limits, errors)


if __name__ == "__main__":
    sys.exit(main())
