"""Reads a local text file, or says in one line why it cannot be read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from engine.errors import ExegesisError, UsageError


def read_text(path: Path) -> str:
    """The content of a UTF-8 file without its byte order mark."""
    content = _read_bytes(path)
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in content:
        line = content[: content.find(b"\0") + 1].count(b"\n") + 1
        raise ExegesisError(
            f"{path.name}, line {line}: holds NUL bytes, so it is binary or UTF-16. Save it as UTF-8 text."
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        wrong = f"byte 0x{content[error.start]:02x}"
        raise ExegesisError(f"{path.name}, line {line}: is not UTF-8 ({wrong}). Save it as UTF-8 text.") from None
    if not text.strip():
        raise ExegesisError(f"{path.name}: is empty. Give a file with at least one example.")
    return text


def _read_bytes(path: Path) -> bytes:
    if not path.exists():
        raise UsageError(f"dataset: there is no file {str(path)!r}. Check the path.")
    try:
        return path.read_bytes()
    except OSError as error:
        raise ExegesisError(f"{path.name}: cannot be read ({error.strerror}). Check its permissions.") from None


def content_revision(paths: Iterable[Path], how: Mapping[str, object]) -> str:
    """SHA-256 over the bytes of the files and, where anything was asked for, over how they were read."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    asked = {key: value for key, value in how.items() if value is not None}
    if asked:
        digest.update(json.dumps(asked, sort_keys=True, ensure_ascii=False).encode())
    return digest.hexdigest()


def first_line(path: Path, most: int = 1 << 16) -> str:
    """The beginning of a file up to the end of its first line; nothing where it cannot be read as text."""
    try:
        with path.open("rb") as file:
            return file.readline(most).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return ""
