from __future__ import annotations

import threading
from pathlib import Path

import pytest

from cache import DEFAULT_BYTES
from engine.errors import UsageError
from engine.store import result_store
from tests.storage import entry, in_child, wait_for


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path))
    monkeypatch.delenv("EXEGESIS_CACHE_BYTES", raising=False)


def test_one_store_a_process(tmp_path: Path) -> None:
    found = []
    threads = [threading.Thread(target=lambda: found.append(result_store())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1
    assert found[0].folder == tmp_path / "cache"
    assert found[0].max_bytes == DEFAULT_BYTES


def test_another_home_or_bound_is_another_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = result_store()
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path / "other"))
    second = result_store()
    monkeypatch.setenv("EXEGESIS_CACHE_BYTES", "12345")
    third = result_store()
    assert (first.folder, second.folder) == (tmp_path / "cache", tmp_path / "other" / "cache")
    assert (third.folder, third.max_bytes) == (second.folder, 12345)


def test_a_forked_process_shares_the_folder_and_not_the_store() -> None:
    before = result_store()
    before.put("a", *entry(1))

    def child() -> None:
        assert result_store() is not before
        assert result_store().contains("a")
        result_store().put("b", *entry(2))

    wait_for(in_child(child))
    assert result_store() is before
    assert before.contains("b")


@pytest.mark.parametrize("bad", ["many", "-1", "1.5"])
def test_a_bound_that_is_no_number_is_refused(bad: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXEGESIS_CACHE_BYTES", bad)
    with pytest.raises(UsageError, match="EXEGESIS_CACHE_BYTES: must be a whole number of bytes, got"):
        result_store()
