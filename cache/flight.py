"""Single flight: concurrent requests for the same result share one computation."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from cache import codec
from cache.codec import Arrays, Meta
from cache.store import Store

Compute = Callable[[], tuple[Meta, Arrays]]
_POLL_SECONDS = 0.05


class _Call:
    """A running computation and its result."""

    def __init__(self) -> None:
        self.over = threading.Event()
        self.body: bytes | None = None
        self.error: BaseException | None = None


def single_flight(
    store: Store,
    key: str,
    compute: Compute,
    *,
    alone: tuple[type[BaseException], ...] = (),
    check: Callable[[], None] | None = None,
) -> tuple[Meta, Arrays, bool]:
    """Return (meta, arrays, hit) from the store, from a computation in progress, or from `compute`.

    `hit` is False only for the caller that computed. An exception of `compute` is raised in all waiting threads of this
    process, except the types in `alone` (such as a cancellation): they concern one caller, and the next one computes.
    `check` is called while waiting and may raise to give up. A miss returns the same values as a later hit.
    """
    while True:
        entry = store.get(key)
        if entry is not None:
            return *entry, True
        call, first = _join((os.getpid(), str(store.folder.absolute()), key))
        if first:
            return _lead(store, key, compute, call, alone, check)
        _await(call, check)
        if call.body is not None:
            return *codec.decode(call.body, key), True
        if call.error is not None:
            raise call.error


def _join(name: tuple[int, str, str]) -> tuple[_Call, bool]:
    with _lock:
        call = _calls.get(name)
        if call is not None:
            return call, False
        call = _calls[name] = _Call()
        return call, True


def _lead(
    store: Store,
    key: str,
    compute: Compute,
    call: _Call,
    alone: tuple[type[BaseException], ...],
    check: Callable[[], None] | None,
) -> tuple[Meta, Arrays, bool]:
    try:
        with _locked(store.folder / "flights" / hashlib.sha256(key.encode()).hexdigest(), check):
            entry = store.get(key)
            if entry is not None:
                return *entry, True
            call.body = codec.encode(*compute(), key)
            store.put_body(key, call.body)
        return *codec.decode(call.body, key), False
    except Exception as error:
        call.error = None if isinstance(error, alone) else error
        raise
    finally:
        with _lock:
            del _calls[os.getpid(), str(store.folder.absolute()), key]
        call.over.set()


def _await(call: _Call, check: Callable[[], None] | None) -> None:
    while not call.over.wait(_POLL_SECONDS if check else None):
        if check:
            check()


@contextlib.contextmanager
def _locked(path: Path, check: Callable[[], None] | None) -> Iterator[None]:
    """Hold the lock of a key across processes. The system releases it if the process dies.

    If no lock file can be created (a read-only or full folder), only the threads of this process exclude each other.
    """
    handle = None
    while handle is None:
        try:
            handle = _try_lock(path)
        except OSError:
            break
        if handle is None:
            if check:
                check()
            time.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        if handle is not None:
            path.unlink(missing_ok=True)
            fcntl.flock(handle, fcntl.LOCK_UN)
            os.close(handle)


def _try_lock(path: Path) -> int | None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(handle).st_ino == path.stat().st_ino:
            return handle
    except (BlockingIOError, FileNotFoundError):
        pass  # held by another process, or just deleted by its last holder: try again
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


def _forget_flights() -> None:
    """Forget all computations in a forked child: they run in its parent."""
    global _lock
    _lock = threading.Lock()
    _calls.clear()


_lock = threading.Lock()
_calls: dict[tuple[int, str, str], _Call] = {}
os.register_at_fork(after_in_child=_forget_flights)
