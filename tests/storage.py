"""Helpers for the tests of the cache: entries, a tampering hand, forked processes."""

from __future__ import annotations

import os
import sqlite3
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from cache import Store
from cache.database import FILE


def entry(number: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    return {"number": number}, {"scores": np.full(5, float(number))}


def edit(store: Store, statement: str, *values: Any) -> None:
    """Changes rows behind the store's back, as a tampering hand would."""
    hand = sqlite3.connect(store.folder / FILE, isolation_level=None)
    hand.execute(statement, values)
    hand.close()


def in_child(action: Callable[[], object], before: Callable[[], None] = lambda: None) -> int:
    """The pid of a forked process that runs `action` and exits with 0 if nothing was raised."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        before()
        action()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def wait_for(*pids: int) -> None:
    for pid in pids:
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
