from __future__ import annotations

import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from cache import Store, open_store
from tests.storage import entry, in_child, wait_for


def test_what_was_put_is_found(store: Store) -> None:
    meta, arrays = entry(3)
    assert store.get("a") is None
    assert not store.contains("a")
    assert store.put("a", meta, arrays)
    assert store.contains("a")
    found = store.get("a")
    assert found is not None
    assert found[0] == meta
    np.testing.assert_array_equal(found[1]["scores"], arrays["scores"])
    assert store.status == ""


def test_a_second_put_replaces_the_first(store: Store) -> None:
    store.put("a", *entry(1))
    size = store.stats().bytes
    store.put("a", *entry(2))
    assert store.get("a")[0] == {"number": 2}  # type: ignore[index]
    assert (store.stats().entries, store.stats().bytes) == (1, size)


def test_entries_outlive_the_store(tmp_path: Path) -> None:
    with open_store(tmp_path) as first:
        first.put("a", *entry(1))
    with open_store(tmp_path) as second:
        assert second.get("a")[0] == {"number": 1}  # type: ignore[index]


def test_the_store_works_again_after_close(store: Store) -> None:
    store.put("a", *entry(1))
    store.close()
    assert store.contains("a")


def test_stats_count(store: Store) -> None:
    for number in range(4):
        store.put(f"k{number}", *entry(number))
    store.get("k1")
    store.get("k9")
    stats = store.stats()
    assert (stats.entries, stats.hits, stats.misses, stats.max_bytes) == (4, 1, 1, 10**8)
    assert stats.file_bytes >= 8192
    assert stats.as_plain()["folder"] == str(store.folder)


def size_of_one(store: Store) -> int:
    store.put("first", *entry(0))
    size = store.stats().bytes
    store.clear()
    return size


def kept(store: Store, keys: str) -> str:
    return "".join(key for key in keys if store.contains(key))


def test_the_least_recently_used_makes_room(store: Store) -> None:
    store.max_bytes = 3 * size_of_one(store)
    for key in "abc":
        store.put(key, *entry(1))
    store.get("a")
    store.put("d", *entry(1))
    assert kept(store, "abcd") == "acd"
    store.get("c")
    store.put("a", *entry(1))
    store.put("e", *entry(1))
    assert kept(store, "abcde") == "ace"


def test_uses_are_written_down_at_close_for_other_processes(store: Store) -> None:
    store.max_bytes = 2 * size_of_one(store)
    store.put("a", *entry(1))
    store.put("b", *entry(1))
    store.get("a")
    store.close()
    with Store(store.folder, store.max_bytes) as other:
        other.put("c", *entry(1))
        assert kept(other, "abc") == "ac"


def test_uses_are_written_down_now_and_then(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.max_bytes = 2 * size_of_one(store)
    store.put("a", *entry(1))
    store.put("b", *entry(1))
    monkeypatch.setattr("cache.store._USE_SECONDS", -1.0)
    before = order_of_use(store)
    store.get("a")
    end = time.monotonic() + 20
    while order_of_use(store) == before and time.monotonic() < end:
        time.sleep(0.01)
    assert (before, order_of_use(store)) == ([b"a", b"b"], [b"b", b"a"])


def test_uses_are_written_down_by_a_process_that_exits(store: Store) -> None:
    store.put("a", *entry(1))
    store.put("b", *entry(1))
    code = f"from cache import Store; from pathlib import Path; Store(Path({str(store.folder)!r}), 10**8).get('a')"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, cwd=Path(__file__).parents[3])
    assert order_of_use(store) == [b"b", b"a"]


def order_of_use(store: Store) -> list[bytes]:
    with store._database.lend() as link:
        return [key for (key,) in link.execute("SELECT key FROM entries ORDER BY used")]


def test_a_clock_that_was_set_back_does_not_make_new_entries_old(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.max_bytes = 2 * size_of_one(store)
    for when, key in ((10**9, "a"), (5 * 10**8, "b"), (10**8, "c")):
        monkeypatch.setattr("cache.database.time.time_ns", lambda when=when: when)
        store.put(key, *entry(1))
    assert kept(store, "abc") == "bc"


def test_bytes_stay_within_the_bound_and_the_file_near_it(store: Store) -> None:
    store.max_bytes = 400_000
    for number in range(300):
        size = (number * 37) % 900
        store.put(str(number), {"n": number}, {"scores": np.zeros(size)})
        assert store.stats().bytes <= store.max_bytes
    assert store.contains("299")
    assert not store.contains("0")
    assert store.stats().file_bytes < 1.2 * store.max_bytes
    assert store.check().ok


def test_what_is_larger_than_the_bound_is_not_kept_and_drops_nothing(store: Store) -> None:
    store.put("a", *entry(1))
    store.max_bytes = 5_000
    assert not store.put("b", {}, {"scores": np.zeros(1_000)})
    assert "was not cached: the limit is 5,000 bytes" in store.status
    assert store.contains("a")


def test_prune_gives_space_back_and_keeps_the_newest(store: Store) -> None:
    for number in range(100):
        store.put(str(number), {}, {"scores": np.zeros(1_000)})
    before = store.stats()
    assert store.prune(before.bytes // 10) == 90
    after = store.stats()
    assert after.file_bytes < before.file_bytes / 4
    assert store.contains("99")
    assert not store.contains("89")


def test_clear_drops_everything(store: Store) -> None:
    for number in range(600):
        store.put(str(number), *entry(number))
    assert store.clear() == 600
    assert (store.stats().entries, store.stats().bytes) == (0, 0)
    assert not store.contains("1")


@pytest.mark.parametrize("bad", ["", "é", "x" * 201])
def test_keys_that_are_no_keys_are_refused(store: Store, bad: str) -> None:
    with pytest.raises(ValueError, match="key: must be 1 to 200 ASCII characters"):
        store.get(bad)


def test_values_that_are_not_plain_are_the_callers_error(store: Store) -> None:
    with pytest.raises(TypeError, match="meta"):
        store.put("a", {"x": object()}, {})


def work(store: Store, seed: int, rounds: int) -> None:
    """Puts and reads at random; each value says by its key what it must be."""
    dice = np.random.default_rng(seed)
    for _ in range(rounds):
        number = int(dice.integers(40))
        if dice.random() < 0.4:
            assert store.put(f"k{number}", *entry(number))
        else:
            found = store.get(f"k{number}")
            assert found is None or found[1]["scores"].tolist() == [number] * 5


def test_many_threads(store: Store) -> None:
    errors: list[BaseException] = []

    def run(seed: int) -> None:
        try:
            work(store, seed, 60)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert store.check().ok
    assert store.status == ""


def test_many_processes_that_share_a_store_across_forks(store: Store) -> None:
    store.put("k0", *entry(0))
    children = [in_child(partial(work, store, seed, 80)) for seed in range(4)]
    work(store, 99, 80)
    wait_for(*children)
    assert store.check().ok
    assert store.status == ""


def test_many_processes_within_a_small_bound(store: Store) -> None:
    store.max_bytes = 10 * size_of_one(store)
    wait_for(*[in_child(partial(work, store, seed, 80)) for seed in range(4)])
    assert 0 < store.stats().bytes <= store.max_bytes
    assert store.check().ok


def test_a_store_that_is_dropped_leaves_no_open_file(tmp_path: Path) -> None:
    store = Store(tmp_path, 10**6)
    store.put("a", *entry(1))
    links = list(store._database._idle)
    del store
    assert len(links) == 1
    with pytest.raises(Exception, match="closed"):
        links[0].execute("SELECT 1")
