"""Texts and pictures that a link names by their hash."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from engine.store import load_picture, load_text, result_store, store_picture, store_text


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXEGESIS_HOME", str(tmp_path))


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
