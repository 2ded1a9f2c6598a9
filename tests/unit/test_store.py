"""The store of a process, and the texts and pictures in it that a link names by their hash."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import numpy as np
import pytest

from cache import DEFAULT_BYTES
from engine.errors import UsageError
from engine.store import load_picture, load_text, result_store, store_picture, store_text
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


def picture(height: int = 5, width: int = 7) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)


def test_a_text_comes_back_by_its_sha_256() -> None:
    digest = store_text("Ünwieldy text.")
    assert digest == hashlib.sha256("Ünwieldy text.".encode()).hexdigest()
    assert load_text(digest) == "Ünwieldy text."
    assert load_text("0" * 64) is None


def test_a_picture_comes_back_by_the_hash_of_its_size_and_pixels() -> None:
    digest = store_picture(picture())
    assert digest == hashlib.sha256(b"7x5:" + picture().tobytes()).hexdigest()
    found = load_picture(digest)
    assert found is not None
    assert found.dtype == np.uint8
    assert np.array_equal(found, picture())
    with pytest.raises(ValueError, match="read-only"):
        found[0, 0, 0] = 1


def test_the_same_bytes_in_another_size_are_another_picture() -> None:
    wide, tall = picture(4, 6), picture(4, 6).reshape(6, 4, 3)
    digests = [store_picture(wide), store_picture(tall)]
    assert digests[0] != digests[1]
    found = [load_picture(digest) for digest in digests]
    assert [None if pixels is None else pixels.shape for pixels in found] == [(4, 6, 3), (6, 4, 3)]


def test_a_picture_that_is_a_view_is_kept_as_it_looks() -> None:
    turned = picture()[::-1, ::2]
    found = load_picture(store_picture(turned))
    assert found is not None
    assert np.array_equal(found, turned)


def test_a_picture_is_kept_once() -> None:
    first = store_picture(picture())
    size = result_store().stats().bytes
    assert store_picture(picture().copy()) == first
    assert (result_store().stats().entries, result_store().stats().bytes) == (1, size)


@pytest.mark.parametrize("given", ["", "0" * 63, "0" * 65, "G" * 64, "A" * 64, "../" * 22, "0" * 64 + "\n", "é" * 64])
def test_what_is_no_hash_is_never_looked_up(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.store.result_store", lambda: pytest.fail("looked up"))
    assert load_picture(given) is None


def test_a_text_and_a_picture_never_meet() -> None:
    digest = store_picture(picture())
    assert load_text(digest) is None
    assert load_picture(store_text("a text")) is None


def test_what_the_cache_let_go_is_none() -> None:
    digest = store_picture(picture())
    result_store().clear()
    assert load_picture(digest) is None
