"""Return freed memory to the operating system.

The C library keeps freed memory, for each thread apart: a server that computed for many sessions seemed to grow by
hundreds of MB and held nothing (the benchmark `page_memory`). Torch keeps that of a GPU, which other programs use too.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import math
import sys
import time
from collections.abc import Callable

from engine.lazy import torch

REST_SECONDS = 1.0
_last_release = -math.inf


def release_memory() -> None:
    """Return free memory to the system, at most once in `REST_SECONDS`, where the C library can."""
    global _last_release
    now = time.monotonic()
    if now - _last_release >= REST_SECONDS:
        _last_release = now
        _trim()(0)
        if "torch" in sys.modules and torch.cuda.is_initialized():
            torch.cuda.empty_cache()


def freeze_garbage() -> None:
    """Exclude everything alive now from garbage collection; called once, after the model libraries are imported.

    Streamlit collects all garbage after each run of a page, which took 0.3 s among the objects of torch and
    transformers, and the next run of any session waited for that (the benchmark `picture_page`).
    """
    gc.collect()
    gc.freeze()


@functools.cache
def _trim() -> Callable[[int], int]:
    try:
        trim: Callable[[int], int] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # not glibc: macOS, musl, Windows
        return lambda _: 0
    return trim
