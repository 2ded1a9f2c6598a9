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

import argparse
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import ClientConnection, connect

from benchmarks import text_page
from benchmarks.limits import Limit, judge
from benchmarks.timing import show
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
LONGEST_MESSAGE = 1 << 24
TIMEOUT = 300


def visit(session: ClientConnection, query: str, page: str = "text") -> str:
    """Asks for a page's link and waits until its script has ended; the HTML that came."""
    asked = BackMsg()
    asked.rerun_script.query_string = query
    asked.rerun_script.page_name = page
    session.send(asked.SerializeToString())
    html = []
    while True:
        message = ForwardMsg.FromString(bytes(session.recv(TIMEOUT, decode=False)))
        html.append(message.delta.new_element.html.body)
        if message.WhichOneof("type") == "script_finished":
            return "".join(html)


def look_at(server: Server, indexes: Sequence[int]) -> list[int]:
    """Resident bytes after each example. Sessions take turns; after some visits all leave and others come."""
    before = len(runs(server.log))
    for start in range(0, len(indexes), VISITS):
        with ExitStack() as stack:
            sessions = [stack.enter_context(connected(server)) for _ in range(SESSIONS)]
            for turn, index in enumerate(indexes[start : start + VISITS]):
                _look_at_one(sessions[turn % SESSIONS], index)
    return [run.resident for run in runs(server.log)[before:]]


def connected(server: Server) -> ClientConnection:
    """A session of its own, as a browser opens one."""
    address = f"{server.url.replace('http', 'ws', 1)}/_stcore/stream"
    return connect(address, max_size=LONGEST_MESSAGE, compression=None, ping_interval=None)


def _look_at_one(session: ClientConnection, index: int) -> None:
    html = visit(session, text_page.query(text_page.example(index), budgets=text_page.SMALL))
    drawn, wanted = html.count('class="xg-map'), len(text_page.nine())
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=EXAMPLES)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="exegesis-bench-") as folder, watched(Path(folder)) as server:
        computed = look_at(server, range(given.examples))
        cached = look_at(server, range(given.examples))
        troubled = troubles(server.log)
    show("Memory of the server, nine methods", [row("computed", computed), row("cached", cached)], given.json)
    for line in troubled:
        print(f"error: {line}", file=sys.stderr)
    limits = [
        Limit("slope of the second half computed", slope(computed) / 1e3, MOST_SLOPE_KB, UNIT),
        Limit("slope of the second half from the cache", slope(cached) / 1e3, MOST_SLOPE_KB, UNIT),
        Limit("errors in the server's log", len(troubled), 0, ""),
    ]
    return judge(limits)


if __name__ == "__main__":
    sys.exit(main())
