"""A copy of the result cache on shared storage, read by the workers of a cluster and written only by its owner.

The owner is the home folder whose server sets `EXEGESIS_CACHE_MIRROR`. An entry is an object, named by its key and
sealed as in the cache: a damaged entry counts as a miss, and reading one never runs code. Whoever can write to the
storage can forge results, but nothing else.
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
"""The key of the object that is written when a server starts, to test the storage."""
LOGIN = re.compile(r"//[^/\s]*@")
PENDING = 256
"""Maximum number of entries that wait to be written; beyond it, `write` blocks."""
_log = logging.getLogger("exegesis.mirror")
_reads: ContextVar[str] = ContextVar("exegesis_cache_mirror", default="")


def configured_mirror() -> str:
    """Return the address that the owner writes to, or an empty string without a mirror."""
    return os.environ.get(MIRROR, "").strip()


class CacheMirror:
    """A mirror at a storage address. Errors: `UsageError` if fsspec cannot open it."""

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
        """Write an object and remove it. Errors: `UsageError` if the storage cannot be written."""
        probe = self._path(PROBE)
        try:
            self.filesystem.pipe_file(probe, b"")
            self.filesystem.rm_file(probe)
        except Exception as error:  # each storage raises its own errors
            raise UsageError(
                f"{MIRROR}: cannot be written, got {excerpt(_without_login(self.address))} "
                f"({_without_login(one_line(error))}). Check the address and the rights of this server there."
            ) from None

    def read(self, key: str) -> bytes | None:
        """Return the sealed entry, or None if it is missing or damaged, or the storage does not answer."""
        try:
            return verify(self.filesystem.cat_file(self._path(key)), key)
        except FileNotFoundError:
            return None
        except CorruptEntry:
            _log.warning("an entry of the cache mirror is damaged")
        except Exception as error:  # each storage raises its own errors
            _log_failure("the cache mirror cannot be read", error)
        return None

    def write(self, key: str, body: bytes) -> Future[None]:
        """Write a sealed entry in the background."""
        self._room.acquire()
        return self._writer.submit(self._write, key, body)

    def _write(self, key: str, body: bytes) -> None:
        try:
            self.filesystem.pipe_file(self._path(key), body)
        except Exception as error:  # likewise; the entry is still in the cache itself
            _log_failure("the cache mirror cannot be written", error)
        finally:
            self._room.release()

    def _path(self, key: str) -> str:
        return f"{self.root.rstrip('/')}/{key[:2]}/{key}"


def _log_failure(event: str, error: Exception) -> None:
    log_event(_log, event, logging.WARNING, error=type(error).__name__, reason=_without_login(one_line(error)))


def _without_login(text: str) -> str:
    """Return the text without the user name and password of each address in it."""
    return LOGIN.sub("//", text)


@functools.cache
def _mirror(address: str, pid: int) -> CacheMirror:
    return CacheMirror(address)


def mirror_at(address: str) -> CacheMirror:
    """Return the mirror at an address, one instance per process."""
    return _mirror(address, os.getpid())


@contextlib.contextmanager
def reading_mirror(address: str) -> Iterator[None]:
    """Read results that the cache lacks from the mirror in the block, on a worker. An empty address disables this."""
    token = _reads.set(address)
    try:
        yield
    finally:
        _reads.reset(token)


def read_mirrored(key: str) -> bytes | None:
    """Return the sealed entry from the mirror that this worker reads, or None."""
    address = _reads.get()
    return mirror_at(address).read(key) if address else None
