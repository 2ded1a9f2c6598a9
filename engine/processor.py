"""The last-level cache of the processor, whose size bounds a pass on a CPU."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import subprocess
import sys
from pathlib import Path

SYSTEM = Path("/sys/devices/system/cpu")
FALLBACK = 16 << 20
"""Used if the system does not state the size: a typical value of desktop and laptop processors."""
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
SYSCTL = ("hw.l3cachesize", "hw.perflevel0.l2cachesize", "hw.l2cachesize")
"""Names on macOS: the L3 cache of Intel, else the L2 cache that the performance cores of Apple silicon share."""


@functools.cache
def last_level_cache() -> int:
    """Return the total size in bytes of the last-level caches of all processors that this process may use."""
    size = _from_sysctl() if sys.platform == "darwin" else _from_sysfs(SYSTEM, _usable_processors())
    return size or FALLBACK


def _usable_processors() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _from_sysfs(system: Path, processors: set[int]) -> int:
    """Sum the highest-level caches on Linux. Processors that share a cache state the same list of processors for it."""
    caches: dict[str, int] = {}
    for number in processors:
        levels = []
        for index in (system / f"cpu{number}" / "cache").glob("index*"):
            with contextlib.suppress(OSError, ValueError):
                level, size, shared = (_read(index / name) for name in ("level", "size", "shared_cpu_list"))
                levels.append((int(level), shared, _parse_size(size)))
        if levels:
            _, shared, size_bytes = max(levels)
            caches[shared] = size_bytes
    return sum(caches.values())


def _read(file: Path) -> str:
    return file.read_text(encoding="ascii").strip()


def _parse_size(text: str) -> int:
    """Return a size in bytes; 32768K is 32 MiB. Errors: ValueError unless it is a number with an optional unit."""
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    if match is None:
        raise ValueError(text)
    return int(match[1]) * UNITS[match[2]]


def _from_sysctl() -> int:
    for name in SYSCTL:
        with contextlib.suppress(OSError, subprocess.SubprocessError, ValueError):
            result = subprocess.run(["sysctl", "-n", name], capture_output=True, text=True, check=True, timeout=5)
            if size := int(result.stdout):
                return size
    return 0
