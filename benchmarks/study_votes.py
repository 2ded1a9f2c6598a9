"""Fifty people voting at once over HTTP: `python -m benchmarks.study_votes [--people 50] [--json]`.

One real server; each person joins, agrees and answers every ballot without a pause, over a connection of its own for
each request: as if all of a lecture hall clicked at the same moment, again and again. Seconds are the client's, whose
threads share the machine with the server; what is judged is the server's processor time a vote, which a busy machine
changes little. The study is on SQLite, or on the PostgreSQL whose address stands in EXEGESIS_DATABASE_URL, which keeps
it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.harness import Limit, benchmark_parser, judge, load_average, scratch_folder, show
from components.server import QUIET_SECONDS
from engine.study.database import ADDRESS
from tests.browser.server import running
from tests.unit.study.polls import open_study
from tests.unit.study.voter import Voter

PEOPLE = 50
IDLE_PERCENT = 10.0
EACH = 6
MOST_CPU_MS = 100.0
"""A ballot and its vote. People look for at least five seconds: fifty of them give ten votes a second, one core's."""


class TimedVoter(Voter):
    """Keeps the seconds of each request by what was asked."""

    def __init__(self, link: str) -> None:
        super().__init__(link)
        self.seconds: list[tuple[str, float]] = []

    def request(self, server: str, method: str, what: str, said: object = None) -> tuple[int, dict[str, Any]]:
        begun = time.perf_counter()
        try:
            return super().request(server, method, what, said)
        finally:
            self.seconds.append((what, time.perf_counter() - begun))


def measure(people: int, folder: Path) -> tuple[list[TimedVoter], float, float]:
    """All of them, when they are through; seconds from the first request to the last answer; the server's seconds."""
    os.environ["EXEGESIS_HOME"] = str(folder / "home")
    study = open_study(items=10, practice=1, items_per_annotator=EACH, repeats=1)
    voters = [TimedVoter(study.token) for _ in range(people)]
    with running(folder) as server:
        process = psutil.Process(server.pid)
        _settle(process)
        used = _cpu(process)
        threads = [threading.Thread(target=voter.vote, args=(server.url,)) for voter in voters]
        begun = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return voters, time.perf_counter() - begun, _cpu(process) - used


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _settle(process: psutil.Process) -> None:
    """Waits until the server has imported what runs models, which it does when nobody comes: no vote needs it."""
    time.sleep(QUIET_SECONDS + 1)
    while process.cpu_percent(1.0) > IDLE_PERCENT:
        pass


def row(what: str, voters: Sequence[TimedVoter]) -> dict[str, Any]:
    seconds = [spent for voter in voters for asked, spent in voter.seconds if asked == what]
    middle, slow = np.percentile(seconds, [50, 95])
    return {
        "request": what,
        "number": len(seconds),
        "s, median": float(middle),
        "s, 95 %": float(slow),
        "s, worst": max(seconds),
    }


def main() -> int:
    parser = benchmark_parser(__doc__)
    parser.add_argument("--people", type=int, default=PEOPLE, choices=range(1, 61), metavar="1..60")
    options = parser.parse_args()
    before = load_average()
    with scratch_folder() as folder:
        voters, seconds, used = measure(options.people, folder)
    rows = [row(what, voters) for what in ("join", "consent", "ballot", "answer")]
    votes = sum(len(voter.acknowledged) for voter in voters)
    where = "the database of " + ADDRESS if os.environ.get(ADDRESS) else "SQLite"
    title = f"{options.people} people vote at once, {where}: {votes / seconds:.0f} votes a second"
    show(f"{title}, load {before} to {load_average()}", rows, options.json)
    return judge(
        [
            Limit("people who did not get through", sum(not voter.through for voter in voters), 0, ""),
            Limit("the server's processor time, a vote and its ballot", used / votes * 1e3, MOST_CPU_MS, "ms"),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
