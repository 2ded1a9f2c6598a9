"""Progress on stderr: a bar on a terminal, a line for each closed part otherwise."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from engine.progress import Report, silent


@contextlib.contextmanager
def shown(title: str, lines: bool = False) -> Iterator[Report]:
    """A report that draws a bar with the time left; without a terminal it is silent, or prints `lines`."""
    if not sys.stderr.isatty():
        yield _line if lines else silent
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from engine.cli.output import console

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(error=True), transient=True) as bar:
        task = bar.add_task(title, total=None)

        def report(done: int, total: int, label: str) -> None:
            bar.update(task, completed=done, total=total, description=label or title)
            if lines and ":" in label:
                bar.console.print(label)

        yield report


def _line(done: int, total: int, label: str) -> None:
    # Labels with a colon close an epoch or another large part; the others would flood a log.
    if ":" in label:
        print(f"{done}/{total} {label}", file=sys.stderr, flush=True)
