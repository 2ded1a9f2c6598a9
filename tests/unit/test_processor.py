"""The last-level cache from the system's own files, on machines of several kinds."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from engine import processor

MIB = 1 << 20


@pytest.fixture(autouse=True)
def _fresh() -> None:
    processor.last_level_cache.cache_clear()


def write_caches(system: Path, number: int, *caches: tuple[int, str, str]) -> None:
    for index, texts in enumerate(caches):
        folder = system / f"cpu{number}" / "cache" / f"index{index}"
        folder.mkdir(parents=True)
        for name, text in zip(("level", "size", "shared_cpu_list"), texts, strict=True):
            (folder / name).write_text(f"{text}\n", encoding="ascii")


def read_linux(system: Path, monkeypatch: pytest.MonkeyPatch, processors: set[int]) -> int:
    monkeypatch.setattr(processor.sys, "platform", "linux")
    monkeypatch.setattr(processor, "SYSTEM", system)
    monkeypatch.setattr(processor, "_usable_processors", lambda: processors)
    return processor.last_level_cache()


def test_a_shared_cache_counts_once_and_others_add_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, shared in enumerate(("0-1", "0-1", "2-3", "2-3")):
        write_caches(tmp_path, number, (1, "32K", str(number)), (2, "1M", str(number)), (3, "16384K", shared))
    assert read_linux(tmp_path, monkeypatch, {0, 1}) == 16 * MIB
    processor.last_level_cache.cache_clear()
    assert read_linux(tmp_path, monkeypatch, {0, 2, 3}) == 32 * MIB


@pytest.mark.parametrize("size", ["", "many", "12Q"])
def test_what_cannot_be_read_is_the_fallback(size: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_caches(tmp_path, 0, (3, size, "0"))
    assert read_linux(tmp_path, monkeypatch, {0, 1}) == processor.FALLBACK


def test_a_system_without_such_files_gets_the_fallback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert read_linux(tmp_path / "missing", monkeypatch, {0}) == processor.FALLBACK


@pytest.mark.parametrize(
    ("known", "size"),
    [({"hw.l3cachesize": "8388608"}, 8 * MIB), ({"hw.perflevel0.l2cachesize": "16777216"}, 16 * MIB), ({}, None)],
)
def test_macos_is_queried(known: dict[str, str], size: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        if command[-1] not in known:
            raise subprocess.CalledProcessError(1, command)
        return subprocess.CompletedProcess(command, 0, known[command[-1]])

    monkeypatch.setattr(processor.sys, "platform", "darwin")
    monkeypatch.setattr(processor.subprocess, "run", run)
    assert processor.last_level_cache() == (size or processor.FALLBACK)
