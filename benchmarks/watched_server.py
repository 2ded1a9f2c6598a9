"""The server of the dashboard that reports the time of each run: `python -m benchmarks.watched_server --port 8501`.

It is what the launcher starts. Two of Streamlit's classes are watched from outside, so the pages know nothing of it.
`--profile FILE` writes where the processor time of all runs goes, for `python -m pstats FILE`; this slows them.
"""

from __future__ import annotations

import argparse
import cProfile
import ctypes
import functools
import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner.script_runner import ScriptRunner

from components.server import main as start_dashboard
from tests.browser.server import Server, running
from tests.project import ROOT

MARK = "RUN "
TROUBLE = re.compile(r"Traceback|\b\w*(Error|Exception|Warning)\b|\b(ERROR|WARNING|CRITICAL)\b")


@dataclass(frozen=True)
class Run:
    """One run of the script, as one line of the server's log.

    `seconds`: from the browser's request to the message that the script has finished. `cpu`: seconds of processor
    that the script's thread used. `resident`: bytes of the server's process afterwards, without what is free and only
    not yet given back (on Linux: `malloc_trim`), which comes and goes by hundreds of MB.
    """

    session: str
    seconds: float
    cpu: float
    resident: int


@contextmanager
def watched(folder: Path, root: Path = ROOT) -> Iterator[Server]:
    """A fresh server of the checkout `root`, with its home and its log in `folder`."""
    with running(folder, "benchmarks.watched_server", root=root) as server:
        yield server


def runs(log: str) -> list[Run]:
    """Every run so far, in the order in which they ended."""
    lines = (line for line in log.splitlines(keepends=True) if line.endswith("\n"))
    return [Run(**json.loads(line.removeprefix(MARK))) for line in lines if line.startswith(MARK)]


def troubles(log: str) -> list[str]:
    """Lines of the log that tell of an error or a warning."""
    return [line for line in log.splitlines() if not line.startswith(MARK) and TROUBLE.search(line)]


def watch(log: Callable[[Run], None], profiler: cProfile.Profile | None = None) -> None:
    """Report every run of every session from now on."""
    begun: dict[str, float] = {}
    used: dict[str, float] = {}

    def on_message(session: Any, message: Any) -> None:
        if message.WhichOneof("type") == "rerun_script":
            begun[session.id] = time.perf_counter()

    def on_start(runner: Any, *_: Any) -> None:
        used[runner._session_id] = -time.thread_time()
        if profiler is not None:
            profiler.enable()

    def on_end(runner: Any, *_: Any) -> None:
        if profiler is not None:
            profiler.disable()
        used[runner._session_id] += time.thread_time()

    def on_answer(session: Any, message: Any) -> None:
        if message.WhichOneof("type") == "script_finished" and session.id in begun:
            seconds = time.perf_counter() - begun.pop(session.id)
            log(Run(session.id, seconds, used.pop(session.id, 0.0), _resident()))

    _before(AppSession, "handle_backmsg", on_message)
    _before(ScriptRunner, "_run_script", on_start)
    _before(ScriptRunner, "_on_script_finished", on_end)
    _before(AppSession, "_enqueue_forward_msg", on_answer)


def _resident() -> int:
    with suppress(AttributeError, OSError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    return int(psutil.Process().memory_info().rss)


def _before(owner: type, name: str, hook: Callable[..., None]) -> None:
    """Call `hook` with the arguments of every call of the method, before it."""
    method = getattr(owner, name)

    @functools.wraps(method)
    def hooked(*args: Any, **kwargs: Any) -> Any:
        hook(*args, **kwargs)
        return method(*args, **kwargs)

    setattr(owner, name, hooked)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", type=Path)
    options, others = parser.parse_known_args(sys.argv[1:] if argv is None else argv)
    profiler = cProfile.Profile(time.thread_time) if options.profile else None

    def log(run: Run) -> None:
        print(f"{MARK}{json.dumps(asdict(run))}", flush=True)
        if profiler is not None:
            profiler.dump_stats(options.profile)

    watch(log, profiler)
    start_dashboard(others)


if __name__ == "__main__":
    main()
