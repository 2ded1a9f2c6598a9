"""A copy of the result cache on shared storage, which the workers of a cluster read and the owner alone writes.

The owner is the home folder whose server sets `EXEGESIS_CACHE_MIRROR`. An entry is an object, named by its key and
sealed as in the cache: what is damaged is a miss, and reading it never runs code. Whoever can write to the storage can
forge numbers, and nothing else.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import re
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

from cache.codec import CorruptEntry, verify
from engine.errors import UsageError, excerpt, one_line
from engine.lazy import LazyModule
from engine.telemetry import log_event

fsspec: Any = LazyModule("fsspec")  # only a server with a mirror needs it

MIRROR = "EXEGESIS_CACHE_MIRROR"
"""Address of the storage for fsspec, such as s3://bucket/folder or file:///shared/folder."""
PROBE = "probe"
"""The key of the object that is written at the start of a server."""
LOGIN = re.compile(r"//[^/\s]*@")
PENDING = 256
"""Entries that may wait to be written; then storing waits for the storage."""
_log = logging.getLogger("exegesis.mirror")
_reads: ContextVar[str] = ContextVar("exegesis_cache_mirror", default="")


def configured_mirror() -> str:
    """The address that the owner writes to; empty without a mirror."""
    return os.environ.get(MIRROR, "").strip()


class CacheMirror:
    """The storage at an address. Errors: `UsageError` where fsspec cannot open it."""

    def __init__(self, address: str) -> None:
        is_local = "://" not in address or address.startswith(("file://", "local://"))
        options = {"auto_mkdir": True} if is_local else {}
        try:
            filesystem, self.root = fsspec.core.url_to_fs(address, **options)
        except (ValueError, ImportError, OSError) as error:
            raise UsageError(
                f"{MIRROR}: cannot be opened, got {excerpt(_without_login(address))} ({_without_login(str(error))}). "
                "Use an address such as s3://bucket/folder, and install the package of its protocol."
            ) from None
        self.address = address
        self.filesystem: Any = filesystem
        self._writer = ThreadPoolExecutor(1, "cache mirror")
        self._room = threading.Semaphore(PENDING)

    def check(self) -> None:
        """Write an object and remove it. Errors: `UsageError` where the storage does not take it."""
        probe = self._path(PROBE)
        try:
            self.filesystem.pipe_file(probe, b"")
            self.filesystem.rm_file(probe)
        except Exception as error:  # each storage has errors of its own
            raise UsageError(
                f"{MIRROR}: cannot be written, got {excerpt(_without_login(self.address))} "
                f"({_without_login(one_line(error))}). Check the address and the rights of this server there."
            ) from None

    def read(self, key: str) -> bytes | None:
        """The sealed entry; None where it is missing or damaged, or the storage does not answer."""
        try:
            return verify(self.filesystem.cat_file(self._path(key)), key)
        except FileNotFoundError:
            return None
        except CorruptEntry:
            _log.warning("an entry of the cache mirror is damaged")
        except Exception as error:  # each storage has errors of its own
            _log_failure("the cache mirror cannot be read", error)
        return None

    def write(self, key: str, body: bytes) -> Future[None]:
        """Write a sealed entry in the background."""
        self._room.acquire()
        return self._writer.submit(self._write, key, body)

    def _write(self, key: str, body: bytes) -> None:
        try:
            self.filesystem.pipe_file(self._path(key), body)
        except Exception as error:  # likewise; the cache itself has the entry
            _log_failure("the cache mirror cannot be written", error)
        finally:
            self._room.release()

    def _path(self, key: str) -> str:
        return f"{self.root.rstrip('/')}/{key[:2]}/{key}"


def _log_failure(event: str, error: Exception) -> None:
    log_event(_log, event, logging.WARNING, error=type(error).__name__, reason=_without_login(one_line(error)))


def _without_login(text: str) -> str:
    """The text with the user and password of each address in it left out."""
    return LOGIN.sub("//", text)


@functools.cache
def _mirror(address: str, pid: int) -> CacheMirror:
    return CacheMirror(address)


def mirror_at(address: str) -> CacheMirror:
    """The storage at an address, one per process."""
    return _mirror(address, os.getpid())


@contextlib.contextmanager
def reading_mirror(address: str) -> Iterator[None]:
    """Let results that the cache lacks come from the mirror in the block, on a worker. Empty: from nowhere."""
    token = _reads.set(address)
    try:
        yield
    finally:
        _reads.reset(token)


def read_mirrored(key: str) -> bytes | None:
    """The sealed entry of the mirror that this worker reads, if any."""
    address = _reads.get()
    return mirror_at(address).read(key) if address else None
