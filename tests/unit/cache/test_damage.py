"""Whatever happens to the file or its folder, the store gives right data or none, and says what is wrong."""

from __future__ import annotations

import os
import pickle
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from cache import Store, decode, encode
from cache.database import FILE, PAGE_BYTES, SCHEMA, Database, Link
from tests.storage import edit, entry, in_child, wait_for

KEYS = [f"k{number}" for number in range(20)]


def fill(store: Store) -> None:
    for number, key in enumerate(KEYS):
        assert store.put(key, *entry(number))


def number_of(store: Store, key: str) -> int | None:
    found = store.get(key)
    return None if found is None else found[0]["number"]


def assert_heals(store: Store, key: str) -> None:
    """A miss, which the next put mends."""
    assert store.get(key) is None
    assert not store.contains(key)
    assert store.put(key, *entry(77))
    assert number_of(store, key) == 77


TAMPERED = {
    "cut short": lambda body: body[:-1],
    "emptied": lambda body: b"",
    "made longer": lambda body: body + b"\0",
    "turned to text": lambda body: "text",
    "turned to broken text": lambda body: "\x00ab",
    "turned to a number": lambda body: 5,
    "another entry's": lambda body: encode(*entry(8), "k8"),
    "an older format's": lambda body: b"EXEGESI0" + body[8:],
    "a pickle": lambda body: pickle.dumps({"number": 7}),
}


@pytest.mark.parametrize("tamper", TAMPERED.values(), ids=TAMPERED.keys())
def test_a_tampered_row_is_a_miss_that_heals(store: Store, tamper: Callable[[bytes], object]) -> None:
    fill(store)
    body = encode(*entry(7), "k7")
    edit(store, "UPDATE bodies SET body = ? WHERE id = (SELECT id FROM entries WHERE key = 'k7')", tamper(body))
    assert_heals(store, "k7")
    assert number_of(store, "k8") == 8
    assert store.check().ok


def test_every_flipped_byte_of_a_row_is_a_miss(store: Store) -> None:
    store.put("a", *entry(1))
    body = encode(*entry(1), "a")
    for place in range(0, len(body), 7):
        flipped = body[:place] + bytes([body[place] ^ 4]) + body[place + 1 :]
        edit(store, "UPDATE bodies SET body = ?", flipped)
        assert store.get("a") is None
        store.put_body("a", body)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET key = 'x' || key",
        "DELETE FROM bodies",
        "UPDATE bodies SET id = id + 1000",
        "UPDATE entries SET id = id + 1000",
        "DELETE FROM entries",
        "DROP TABLE bodies",
        "DROP TABLE totals",
        "ALTER TABLE entries RENAME COLUMN key TO name",
        f"PRAGMA user_version = {SCHEMA + 1}",
    ],
)
def test_tampered_tables_are_misses_that_heal(store: Store, statement: str) -> None:
    fill(store)
    store.close()
    edit(store, statement)
    for key in KEYS:
        assert store.get(key) is None
    assert_heals(store, "k7")
    store.check()
    assert number_of(store, "k7") == 77


@pytest.mark.parametrize("totals", ["bytes = 10000000000000", "bytes = 'many'", "bytes = -5"])
def test_tampered_totals_are_set_right(store: Store, totals: str) -> None:
    fill(store)
    good = store.stats()
    edit(store, f"UPDATE totals SET {totals}")
    store.check()
    assert (store.stats().entries, store.stats().bytes) == (good.entries, good.bytes)
    assert store.status == ""


@pytest.mark.parametrize("totals", ["entries = 'none'", "bytes = 'many'"])
def test_totals_that_are_no_numbers_are_counted_anew_when_they_are_read(store: Store, totals: str) -> None:
    fill(store)
    good = store.stats()
    edit(store, f"UPDATE totals SET {totals}")
    assert (store.stats().entries, store.stats().bytes) == (good.entries, good.bytes)


def test_check_drops_the_corrupt_and_keeps_the_good(store: Store) -> None:
    fill(store)
    edit(store, "UPDATE bodies SET body = x'00' WHERE id IN (3, 5)")
    edit(store, "DELETE FROM bodies WHERE id = 8")
    edit(store, "INSERT INTO bodies VALUES (900, x'00')")
    edit(store, "UPDATE entries SET key = x'ff' WHERE id = 10")
    report = store.check()
    assert (report.checked, report.dropped, report.replaced) == (20, 4, False)
    assert not report.ok
    assert sum(store.contains(key) for key in KEYS) == 16
    assert store.check().ok


def flip(path: Path, place: int, bits: int = 0x55) -> None:
    content = bytearray(path.read_bytes())
    content[place] ^= bits
    path.write_bytes(content)


def test_a_flipped_byte_anywhere_in_the_file_never_gives_wrong_data(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    with Store(whole, 10**8) as store:
        fill(store)
    size = (whole / FILE).stat().st_size
    places = [*range(0, 110, 9), *range(size // 37, size, size // 37)]
    for place in places:
        folder = tmp_path / str(place)
        shutil.copytree(whole, folder)
        flip(folder / FILE, place)
        with Store(folder, 10**8) as store:
            for number, key in enumerate(KEYS):
                assert number_of(store, key) in (number, None)
            assert store.put("k1", *entry(77))
            assert number_of(store, "k1") == 77
            store.check()
            assert number_of(store, "k1") in (77, None)
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    "step", [89, pytest.param(1, marks=pytest.mark.slow(reason="1,200 stores are made, damaged and opened: 10 s"))]
)
def test_a_flipped_byte_in_the_first_page_is_survived(tmp_path: Path, step: int) -> None:
    """It holds the schema, of which SQLite's own messages quote what is no UTF-8. Of the room between header and
    schema, which SQLite does not read, a sample is enough."""
    whole = tmp_path / "whole"
    with Store(whole, 10**8) as store:
        fill(store)
    page = (whole / FILE).read_bytes()[:PAGE_BYTES]
    free = range(128, page.index(b"CREATE ") - 128)
    assert len(free) > 5000
    assert not any(page[place] for place in free)
    for place in (8052, *(place for place in range(0, PAGE_BYTES, step) if place not in free or place % 89 == 0)):
        shutil.copytree(whole, tmp_path / "flipped")
        flip(tmp_path / "flipped" / FILE, place, 0xFF)
        with Store(tmp_path / "flipped", 10**8) as store:
            for number, key in enumerate(KEYS[:5]):
                assert number_of(store, key) in (number, None)
            store.check()
            store.clear()
            assert store.put("k1", *entry(77))
            assert number_of(store, "k1") == 77, place
        shutil.rmtree(tmp_path / "flipped")


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.5, 0.9, 0.999])
def test_a_cut_file_heals(tmp_path: Path, share: float) -> None:
    with Store(tmp_path, 10**8) as store:
        fill(store)
    os.truncate(tmp_path / FILE, int((tmp_path / FILE).stat().st_size * share))
    with Store(tmp_path, 10**8) as store:
        for number, key in enumerate(KEYS):
            assert number_of(store, key) in (number, None)
        fill(store)
        assert [number_of(store, key) for key in KEYS] == list(range(20))


@pytest.mark.parametrize("suffix", ["", "-wal"])
def test_a_file_that_is_overwritten_while_it_is_open_heals(store: Store, suffix: str) -> None:
    fill(store)
    path = store.folder / f"{FILE}{suffix}"
    path.write_bytes(b"nonsense" * 1000)
    for number, key in enumerate(KEYS):
        assert number_of(store, key) in (number, None)
    fill(store)
    store.close()
    fill(store)
    assert number_of(store, "k3") == 3


def test_a_file_that_is_no_database_is_replaced_and_said(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"not a database" * 1000)
    with Store(tmp_path, 10**8) as store:
        assert store.get("a") is None
        assert f"The cache in {tmp_path} was damaged" in store.status
        assert "A new cache was started" in store.status
        assert store.put("a", *entry(1))
        assert number_of(store, "a") == 1


def test_a_folder_that_is_removed_while_it_is_open_heals(store: Store) -> None:
    fill(store)
    shutil.rmtree(store.folder)
    assert_heals(store, "k1")
    assert (store.folder / FILE).exists()


def test_two_stores_see_one_replacement(tmp_path: Path) -> None:
    one, two = Store(tmp_path, 10**8), Store(tmp_path, 10**8)
    fill(one)
    fill(two)
    (tmp_path / FILE).unlink()
    assert one.put("a", *entry(1))
    assert number_of(two, "a") == 1
    one.close()
    two.close()
    assert number_of(two, "a") == 1
    two.close()


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")
    store = Store(tmp_path / "cache", 10**8)
    assert not store.put("a", *entry(1))
    assert store.get("a") is None
    assert not store.contains("a")
    assert store.stats().entries == 0
    assert store.prune() == store.clear() == 0
    assert not store.check().ok
    assert "cannot be used" in store.status
    assert "Make the folder writable or choose another one." in store.status
    (tmp_path / "cache").unlink()
    assert store.put("a", *entry(1))
    assert store.status == ""
    store.close()


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX users")
@pytest.mark.parametrize("state", ["empty", "closed", "open"])
def test_a_read_only_folder_still_gives_what_it_has(state: str) -> None:
    folder = Path(tempfile.mkdtemp())
    keeper = Store(folder, 10**8)
    if state != "empty":
        fill(keeper)
    if state == "closed":
        keeper.close()
    for path in [*folder.iterdir(), folder]:
        path.chmod(0o555 if path.is_dir() else 0o444)

    def read() -> None:
        store = Store(folder, 10**8)
        assert number_of(store, "k7") == (None if state == "empty" else 7)
        assert not store.put("new", *entry(1))
        assert store.get("new") is None
        assert "The cache" in store.status
        assert "writable" in store.status
        assert number_of(store, "k7") == (None if state == "empty" else 7)
        assert "writable" in Store(folder, 10**8).stats().status

    def become_nobody() -> None:
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)

    try:
        wait_for(in_child(read, become_nobody))
    finally:
        folder.chmod(0o755)
        keeper.close()
        shutil.rmtree(folder)


def test_a_full_disk(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(store)
    link = Database._link

    def small(self: Database, uri: str) -> Link:
        opened = link(self, uri)
        opened.execute("PRAGMA max_page_count=1")
        return opened

    store.close()
    monkeypatch.setattr(Database, "_link", small)
    outcomes = [store.put(f"more{number}", *entry(number)) for number in range(60)]
    assert outcomes[-1] is False
    assert "is full, so new results are not cached. Free space or move the cache." in store.status
    assert [number_of(store, key) for key in KEYS] == list(range(20))
    assert store.get("more59") is None
    monkeypatch.undo()
    store.close()
    assert store.put("more59", *entry(59))
    assert store.status == ""


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), sqlite3.OperationalError("disk I/O error")])
def test_an_error_of_the_disk_is_said_and_passes(
    store: Store, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    fill(store)

    def fail(self: Database) -> Link:
        raise error

    monkeypatch.setattr(Database, "_take", fail)
    assert store.get("k1") is None
    assert not store.put("k1", *entry(1))
    assert str(store.folder) in store.status
    monkeypatch.undo()
    assert number_of(store, "k1") == 1
    assert store.put("k1", *entry(1))
    assert store.status == ""


def test_a_writer_that_hangs_does_not_stop_readers(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cache.database.BUSY_SECONDS", 0.05)
    fill(store)
    store.close()
    hand = sqlite3.connect(store.folder / FILE, isolation_level=None)
    hand.execute("BEGIN IMMEDIATE")
    assert number_of(store, "k7") == 7
    assert not store.put("a", *entry(1))
    assert "Another process locked the cache" in store.status
    hand.execute("ROLLBACK")
    hand.close()
    assert store.put("a", *entry(1))


def test_a_killed_writer_leaves_nothing_half_done(store: Store) -> None:
    fill(store)
    pid = in_child(lambda: [store.put(KEYS[n % 20], *entry(n % 20)) for n in range(10**6)])
    for _ in range(200):
        assert number_of(store, "k7") == 7
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    assert store.check().ok
    assert [number_of(store, key) for key in KEYS] == list(range(20))


def test_nothing_of_the_cache_mentions_pickle_but_to_refuse_it() -> None:
    folder = Path(encode.__code__.co_filename).parent
    for path in folder.glob("*.py"):
        code = [line for line in path.read_text().splitlines() if "import" in line]
        assert not any("pickle" in line or "marshal" in line or "shelve" in line for line in code), path
    assert decode(encode({}, {})) == ({}, {})
