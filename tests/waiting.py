"""Waiting for what another thread or process does."""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS = 20.0


def until(condition: Callable[[], object], seconds: float = SECONDS) -> None:
    """Returns when the condition holds; fails when it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)
