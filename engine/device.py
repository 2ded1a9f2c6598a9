"""The device: whether torch could see a GPU here, and the queue of those who want the device.

Neither imports torch: a cached page needs only the answers.

The queue is among the threads of one process: first come, first served, interactive requests before jobs. There is no
queue between processes: the operating system and the driver share the device among them.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

DRIVER = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
"""The driver library that the CUDA runtime loads first; without it `torch.cuda.is_available()` is False."""
INTERACTIVE_FIRST = 4
"""Interactive requests served before one background request: a job is slowed down, never stopped."""
_CHECK_SECONDS = 0.1

_background: ContextVar[bool] = ContextVar("exegesis_background", default=False)


def gpu_possible() -> bool:
    """Return False only where torch cannot see a GPU: a build for CPUs, or CUDA without its driver."""
    build = _torch_version()
    if build is None or getattr(build, "hip", None) is not None:
        return True
    return getattr(build, "cuda", None) is not None and _loads(DRIVER)


def _torch_version() -> ModuleType | None:
    """torch/version.py, a file of constants, run on its own; None where it cannot be found."""
    package = importlib.util.find_spec("torch")
    file = Path(package.origin).with_name("version.py") if package and package.origin else None
    if file is None or not file.is_file():
        return None
    spec = importlib.util.spec_from_file_location("torch_version", file)
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def in_background() -> Iterator[None]:
    """Run the block at background priority: interactive requests go first."""
    token = _background.set(True)
    try:
        yield
    finally:
        _background.reset(token)


def is_background() -> bool:
    """Whether the caller runs at background priority."""
    return _background.get()


@dataclass(eq=False)
class _Request:
    """A request for the device, interactive or in the background."""

    thread: int
    background: bool
    called: threading.Event = field(default_factory=threading.Event)


class DeviceQueue:
    """A fair lock with two priorities. Use it as a context manager; it is not re-entrant."""

    def __init__(self) -> None:
        self._at: _Request | None = None
        self._interactive_requests, self._background_requests = deque[_Request](), deque[_Request]()
        self._passed = 0
        self._lock = threading.Lock()

    @property
    def waiting(self) -> int:
        """Number of requests that wait."""
        with self._lock:
            return len(self._interactive_requests) + len(self._background_requests)

    def place(self, thread: int | None = None) -> int | None:
        """Count the requests before that of `thread` (default: the caller); 0 has the device, None is not queued."""
        wanted = threading.get_ident() if thread is None else thread
        with self._lock:
            order = [
                request for request in (self._at, *self._interactive_requests, *self._background_requests) if request
            ]
            return next((n for n, request in enumerate(order) if request.thread == wanted), None)

    def take(self, check: Callable[[], None] | None = None) -> None:
        """Wait for the device. `check` is called now and then meanwhile; if it raises, the request is withdrawn."""
        mine = _Request(threading.get_ident(), is_background())
        with self._lock:
            (self._background_requests if mine.background else self._interactive_requests).append(mine)
            self._call_next()
        self._wait(mine, check)

    def lend(self, check: Callable[[], None] | None = None) -> float:
        """Let waiting interactive requests pass, if the caller holds the device in the background; then continue.

        Returns the seconds that it waited. If `check` raises meanwhile, the device is given up.
        """
        started = time.perf_counter()
        with self._lock:
            at = self._at
            if at is None or not at.background or not self._interactive_requests:
                return 0.0
            mine = _Request(at.thread, background=True)
            self._background_requests.appendleft(mine)
            self._at = None
            self._call_next()
        self._wait(mine, check)
        return time.perf_counter() - started

    def give(self) -> None:
        """Release the device, if the caller still holds it; the next request gets it."""
        with self._lock:
            if self._at is not None and self._at.thread == threading.get_ident():
                self._at = None
                self._call_next()

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, *error: object) -> None:
        self.give()

    def _wait(self, mine: _Request, check: Callable[[], None] | None) -> None:
        try:
            while not mine.called.wait(_CHECK_SECONDS if check else None):
                if check:
                    check()
        except BaseException:
            self._leave(mine)
            raise

    def _leave(self, mine: _Request) -> None:
        with self._lock:
            if self._at is mine:
                self._at = None
            else:
                (self._background_requests if mine.background else self._interactive_requests).remove(mine)
            self._call_next()

    def _call_next(self) -> None:
        if self._at is None and (self._interactive_requests or self._background_requests):
            self._at = self._next()
            self._at.called.set()

    def _next(self) -> _Request:
        if self._interactive_requests and not (self._background_requests and self._passed >= INTERACTIVE_FIRST):
            self._passed = self._passed + 1 if self._background_requests else 0
            return self._interactive_requests.popleft()
        self._passed = 0
        return self._background_requests.popleft()
