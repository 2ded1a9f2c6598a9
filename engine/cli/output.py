"""Output of commands: JSON or tables on stdout, progress on stderr, and files.

Tables are for people and have no color codes when piped. Long work can be stopped by a signal and resumed later.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from engine.errors import ExegesisError, UsageError
from engine.progress import CancelToken, Report

NOTHING = "-"
"""Table cell without a number."""
PIPED_WIDTH = 10_000
"""Width of piped output. Lines are not wrapped, so that other programs can process them."""
LOG_SECONDS = 60.0
"""Minimum time between two progress lines in a log."""
DIRECTION_MARKS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def console(error: bool = False) -> Console:
    """Return a console on the current stdout (or stderr), with colors only on a terminal."""
    stream = sys.stderr if error else sys.stdout
    terminal = Console(file=stream, highlight=False, markup=False, emoji=False, soft_wrap=False)
    return terminal if terminal.is_terminal else Console(
        file=stream, highlight=False, markup=False, emoji=False, width=PIPED_WIDTH, color_system=None
    )  # fmt: skip


def print_json(value: object) -> None:
    """Print `value` as JSON. Unless stdout is UTF-8, non-ASCII characters are escaped."""
    ascii_only = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=ascii_only, allow_nan=False) + "\n")


@contextlib.contextmanager
def stdout_reserved() -> Iterator[None]:
    """Redirect stdout to stderr, since libraries may print while stdout is reserved for the result."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


def table(columns: Sequence[str], right: Sequence[str] = ()) -> Table:
    """Create an empty table. The columns in `right` hold numbers: right-aligned and not wrapped."""
    empty = Table(box=box.SIMPLE, show_edge=False, pad_edge=False)
    for name in columns:
        empty.add_column(name, justify="right" if name in right else "left", no_wrap=name in right)
    return empty


def format_facts(values: Mapping[str, object]) -> str:
    """Format a line per name and value. None and empty values are omitted."""
    texts = {name.replace("_", " "): format_value(v) for name, v in values.items() if v not in (None, "", [], ())}
    width = max(map(len, texts), default=0)
    return "\n".join(f"{name:<{width}}  {text}" for name, text in texts.items())


def format_value(value: object) -> str:
    """Format a value for people: lists with commas, and integers with thousands separators."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(format_value, value))
    return visible(str(value))


def format_time(moment: float | None) -> str:
    """Format seconds since 1970 as local date and time; None is an empty string."""
    return "" if moment is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))


def visible(text: str) -> str:
    """Escape control and direction characters, which would otherwise act on the terminal."""
    return "".join(
        c.encode("unicode_escape").decode() if unicodedata.category(c) == "Cc" or c in DIRECTION_MARKS else c
        for c in text
    )


@contextlib.contextmanager
def progress_bar(title: str, lines: bool = False) -> Iterator[Report]:
    """Report progress on stderr, as a bar with the remaining time, or without a terminal as a line per minute.

    `lines`: also print each label with a colon, which ends an epoch or another large part.
    """
    if not sys.stderr.isatty():
        yield _log_reporter(lines)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(error=True), transient=True) as bar:
        task = bar.add_task(title, total=None)

        def report(done: int, total: int, label: str) -> None:
            bar.update(task, completed=done, total=total, description=label or title)
            if lines and ":" in label:
                bar.console.print(label)

        yield report


def _log_reporter(lines: bool) -> Report:
    """Return a report that prints a line per minute, and with `lines` also each label with a colon."""
    last = time.monotonic()

    def report(done: int, total: int, label: str) -> None:
        nonlocal last
        if (lines and ":" in label) or time.monotonic() - last >= LOG_SECONDS:
            print(f"{done}/{total} {label}", file=sys.stderr, flush=True)
            last = time.monotonic()

    return report


@contextlib.contextmanager
def stoppable() -> Iterator[CancelToken]:
    """Provide a token that the first Ctrl-C (or SIGTERM) cancels, so that work ends after its current part.

    A second signal raises `KeyboardInterrupt`. Outside the main thread, signals are not handled.
    """
    cancel = CancelToken()
    if threading.current_thread() is not threading.main_thread():
        yield cancel
        return

    def stop(number: int, frame: object) -> None:
        if cancel.cancelled:
            raise KeyboardInterrupt
        cancel.cancel()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield cancel
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def is_interactive() -> bool:
    """Whether stdin is a terminal, so that a person can answer a question."""
    return sys.stdin.isatty()


def check_place(option: str, path: Path) -> None:
    """Refuse a path where no file can be written, before long work starts."""
    if path.is_dir():
        raise UsageError(f"{option}: must be a file, got the folder {path}. Add a file name.")
    if not path.parent.is_dir():
        raise UsageError(f"{option}: {path.parent} is not a folder. Create it first, or choose another place.")


def write_file(option: str, path: Path, data: bytes) -> None:
    """Write a file atomically: a reader, even after a crash, finds either the old or the new file."""
    try:
        _replace(path.resolve(), data) if path.is_file() or not path.exists() else path.write_bytes(data)
    except OSError as error:
        raise ExegesisError(f"{option}: {path} cannot be written ({error.strerror}). Choose another place.") from None


def _replace(path: Path, data: bytes) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with open(partial, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise
