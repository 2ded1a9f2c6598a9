"""Which process works on a job, and whether it still lives."""

from __future__ import annotations

import functools
import os
import socket
import time
from dataclasses import dataclass

import psutil

HEARTBEAT_SECONDS = 2.0
_SILENT_SECONDS = 60.0
_SAME_START_SECONDS = 2.0


@dataclass(frozen=True)
class Owner:
    """A process: its machine, its pid and when it started (seconds since 1970), so that a reused pid is no lie."""

    host: str
    pid: int
    started: float


def me() -> Owner:
    """This process."""
    return _process(os.getpid())


@functools.cache
def _process(pid: int) -> Owner:
    return Owner(socket.gethostname(), pid, psutil.Process(pid).create_time())


def lives(owner: Owner, heartbeat: float) -> bool:
    """Whether the process still runs. On another machine only its heartbeat can tell."""
    if owner.host != socket.gethostname():
        return time.time() - heartbeat < _SILENT_SECONDS
    if owner.pid == os.getpid():
        return abs(me().started - owner.started) < _SAME_START_SECONDS
    try:
        process = psutil.Process(owner.pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return abs(process.create_time() - owner.started) < _SAME_START_SECONDS
    except psutil.Error:
        return False
