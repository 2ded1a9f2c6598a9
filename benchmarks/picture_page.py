"""Server time of the Images page with cached maps: `python -m benchmarks.picture_page [--rounds 8] [--json]`.

A real server; a plain websocket client takes the browser's part and asks for one picture after the other, as the
address bar does. Each is computed at its first visit, with the methods that the page starts with; judged are the
visits after that. Times are the server's, from the request to the message that the script has finished.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from urllib.parse import urlencode

import numpy as np

from benchmarks.harness import Limit, benchmark_parser, judge, load_average, scratch_folder, show
from benchmarks.served_pages import open_session, run_rows, visit_page
from benchmarks.watched_server import Run, runs, troubles, watched
from components.images.state import START
from components.navigation import IMAGES
from tests.browser.server import Server

MODEL, DATA = "scenes-vit", "scenes"
EXAMPLES = (3, 11, 42, 77, 120)
MAP = " data-g="
MOST_MS = 200


def query(index: int) -> str:
    """A link to one picture of the set."""
    return urlencode({"model": MODEL, "data": DATA, "index": index})


def measure(server: Server, rounds: int) -> dict[str, list[Run]]:
    """The runs of the first visits, which compute, and of those that find everything in the cache."""
    with open_session(server) as session:
        for index in EXAMPLES * (rounds + 1):
            html = visit_page(session, query(index), IMAGES.url_path)
            if html.count(MAP) < len(START):
                raise RuntimeError(f"picture {index}: {html.count(MAP)} maps came, not {len(START)}.")
    taken = runs(server.log)
    return {"computed": taken[: len(EXAMPLES)], "cached": taken[len(EXAMPLES) :]}


def cached_ms(taken: Sequence[Run]) -> float:
    return float(np.median([run.seconds for run in taken])) * 1e3


def main() -> int:
    options = benchmark_parser(__doc__, rounds=8).parse_args()
    before = load_average()
    with scratch_folder() as folder, watched(folder) as server:
        taken = measure(server, options.rounds)
        errors = troubles(server.log)
    show(f"Server script time of the Images page, load {before} to {load_average()}", run_rows(taken), options.json)
    return judge(
        [
            Limit("median of the cached page", cached_ms(taken["cached"]), MOST_MS, "ms"),
            Limit("errors in the server's log", len(errors), 0, ""),
        ],
        errors,
    )


if __name__ == "__main__":
    sys.exit(main())
