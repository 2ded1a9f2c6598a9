"""The process that works on a job, and whether it is still alive."""

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
class Process:
    """A process by its machine, its pid and when it started (seconds since 1970), so that a reused pid is no lie."""

    host: str
    pid: int
    started: float


def this_process() -> Process:
    """The process that runs this code."""
    return process_of(os.getpid())


@functools.cache
def process_of(pid: int) -> Process:
    """The process on this machine that has this pid now."""
    return Process(socket.gethostname(), pid, psutil.Process(pid).create_time())


def is_alive(process: Process, heartbeat: float) -> bool:
    """Whether the process still runs. On another machine only its heartbeat can tell."""
    if process.host != socket.gethostname():
        return time.time() - heartbeat < _SILENT_SECONDS
    if process.pid == os.getpid():
        return abs(this_process().started - process.started) < _SAME_START_SECONDS
    try:
        running = psutil.Process(process.pid)
        if running.status() == psutil.STATUS_ZOMBIE:
            return False
        return abs(running.create_time() - process.started) < _SAME_START_SECONDS
    except psutil.Error:
        return False
