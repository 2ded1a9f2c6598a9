"""Files that a command writes: whole, or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from engine.errors import ExegesisError, UsageError


def check_place(option: str, path: Path) -> None:
    """Refuses a place where no file can be, before long work is done for it."""
    if path.is_dir():
        raise UsageError(f"{option}: must be a file, got the folder {path}. Add a name.")
    if not path.parent.is_dir():
        raise UsageError(f"{option}: {path.parent} is no folder. Make it first, or choose another place.")


def write(option: str, path: Path, data: bytes) -> None:
    """Puts `data` there in one step: whoever reads meanwhile, or after a crash, finds the old file or the new one."""
    try:
        _replace(path.resolve(), data) if path.is_file() or not path.exists() else path.write_bytes(data)
    except OSError as error:
        raise ExegesisError(f"{option}: {path} cannot be written ({error.strerror}). Choose another place.") from None


def _replace(path: Path, data: bytes) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with open(partial, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            partial.unlink()
        raise
