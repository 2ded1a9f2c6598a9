"""Stopping long work from outside so that it can go on later."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

from engine.progress import CancelToken


@contextlib.contextmanager
def stoppable() -> Iterator[CancelToken]:
    """The first Ctrl-C (or SIGTERM) asks the work to stop between two parts, a second one stops at once."""
    cancel = CancelToken()
    if threading.current_thread() is not threading.main_thread():
        yield cancel
        return

    def ask(number: int, frame: object) -> None:
        if cancel.cancelled:
            raise KeyboardInterrupt
        cancel.cancel()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield cancel
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
