"""Amounts in words, the same on the page and on the command line."""

from __future__ import annotations


def byte_size(count: int | None) -> str:
    """Bytes in powers of 1,000; nothing where the size is not known."""
    if count is None:
        return ""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} bytes"
