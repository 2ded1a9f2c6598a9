"""What a computation has freed goes back to the system.

The C library keeps freed memory, for each thread apart: a server that computed for many sessions seemed to grow by
hundreds of MB and held nothing (benchmarks/page_memory.py).
"""

from __future__ import annotations

import ctypes
import functools
import math
import time
from collections.abc import Callable

REST_SECONDS = 1.0
_last = -math.inf


def give_back() -> None:
    """Gives free memory back, at most once in `REST_SECONDS`. Nothing happens where the C library has no such call."""
    global _last
    now = time.monotonic()
    if now - _last >= REST_SECONDS:
        _last = now
        _trim()(0)


@functools.cache
def _trim() -> Callable[[int], int]:
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # not glibc: macOS, musl, Windows
        return lambda _: 0
    return trim
