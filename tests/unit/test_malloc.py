"""Freed memory goes back to the system, and not after every small computation."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import numpy as np
import pytest

from engine import malloc, runtime

BLOCK, BLOCKS = 64 << 10, 4096
PAGE = 4096


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_what_was_freed_between_kept_blocks_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(malloc, "_last_release", -np.inf)
    blocks = [np.ones(BLOCK, dtype=np.uint8) for _ in range(BLOCKS)]
    kept = blocks[::16]
    del blocks
    before = resident()
    malloc.release_memory()
    assert before - resident() > BLOCK * BLOCKS // 2
    assert all(block.all() for block in kept)


@pytest.fixture
def trims(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    found: list[int] = []
    monkeypatch.setattr(malloc, "_trim", lambda: found.append)
    monkeypatch.setattr(malloc, "_last_release", -np.inf)
    return found


def test_many_short_turns_give_back_once(trims: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(malloc.time, "monotonic", lambda: now)
    for _ in range(3):
        with runtime.turn():
            assert len(trims) <= 1
    assert trims == [0]
    now += malloc.REST_SECONDS
    with runtime.turn():
        pass
    assert trims == [0, 0]


def test_a_c_library_without_the_call_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(malloc.ctypes, "CDLL", lambda _: object())
    malloc._trim.cache_clear()
    try:
        assert malloc._trim()(0) == 0
    finally:
        malloc._trim.cache_clear()


def test_what_lives_is_not_looked_through_again() -> None:
    before, alive = gc.get_freeze_count(), [[number] for number in range(2000)]
    malloc.freeze_garbage()
    assert gc.get_freeze_count() > before + len(alive) // 2
