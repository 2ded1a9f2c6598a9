"""How long a cache hit takes: in a large store under load, and in a whole `engine.explain`."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import TEXT, Measurement, Table, benchmark, empty_home, scratch_folder
from cache import decode, encode, key_for, open_store
from engine.explain import explain
from engine.models.catalog import revision
from engine.request import Example, Request

LOADS = ("flat out", "floor", "paced")
PAUSE = 0.001
COLUMNS = ("load", "hits", "median", "p99", "p99.9", "worst", "first", "puts", "put median")


@benchmark(entries=100_000, readers=4, seconds=10.0)
def cache_hits(entries: int, readers: int, seconds: float) -> Measurement:
    """How long a cache hit takes in a large store while four processes read and one writes.

    Three loads: `flat out`, where each process asks again at once; `floor`, the same with the entry already in memory
    and only decoded, which shows how much of that tail is the scheduler's on a machine with fewer cores than processes;
    and `paced`, where a reader pauses a millisecond between two questions, as people do at most. Milliseconds.
    """
    with scratch_folder() as folder:
        filled = fill(folder, entries)
        rows = [measure(folder, entries, readers, seconds, load) for load in LOADS]
    return Measurement({f"{filled}; {readers} readers and 1 writer, ms": rows})


def measure(folder: Path, entries: int, readers: int, seconds: float, load: str) -> dict[str, Any]:
    """A row of a load: each reader and the writer in a process of its own; they begin when all are there."""
    context = multiprocessing.get_context("spawn")
    begin = context.Barrier(readers + 1).wait
    with ProcessPoolExecutor(readers + 1, context, initializer=begin) as processes:
        writing = processes.submit(write, folder, entries, seconds, 0)
        reading = [processes.submit(read, folder, entries, seconds, load, seed) for seed in range(1, readers + 1)]
        puts, reads = _ms(writing.result()), [_ms(reader.result()) for reader in reading]
    hits = np.concatenate([times[1:] for times in reads])
    row = [load, len(hits), *np.percentile(hits, [50, 99, 99.9, 100]), max(times[0] for times in reads)]
    return dict(zip(COLUMNS, [*row, len(puts), float(np.median(puts))], strict=True))


def _ms(seconds: Sequence[float]) -> np.ndarray:
    return np.array(seconds) * 1e3


def key(number: int) -> str:
    return key_for({"number": number})


def entry(number: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What an explanation of a 60-token sentence takes: about 1.5 kB of meta and 60 scores."""
    draw = np.random.default_rng(number)
    tokens = [f"token{n}" for n in draw.integers(1_000, size=60)]
    meta = {
        "model": "reviews-minilm",
        "revision": key(0),
        "method": "integrated_gradients",
        "params": {"n_steps": 50, "quadrature": "gauss_legendre", "baseline": "mask"},
        "tokens": tokens,
        "offsets": [[6 * n, 6 * n + 5] for n in range(60)],
        "probabilities": draw.random(2).tolist(),
        "seconds": float(draw.random()),
    }
    return meta, {"scores": draw.standard_normal(60)}


def read(folder: Path, entries: int, seconds: float, load: str, seed: int) -> list[float]:
    """Seconds of each hit, at random over all entries."""
    body, times, at = encode(*entry(seed)), [], 0
    keys = [key(number) for number in np.random.default_rng(seed).integers(entries, size=20_000).tolist()]
    with open_store(folder) as store:
        ask: Callable[[str], object] = (lambda _: decode(body)) if load == "floor" else store.get
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            begun = time.perf_counter()
            hit = ask(keys[at % len(keys)])
            times.append(time.perf_counter() - begun)
            assert hit is not None, "a miss in the benchmark: the store dropped an entry"
            at += 1
            if load == "paced":
                time.sleep(PAUSE)
    return times


def write(folder: Path, entries: int, seconds: float, seed: int) -> list[float]:
    """Seconds of each put, half of them new and half replacing."""
    draw, times = np.random.default_rng(seed), []
    with open_store(folder) as store:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            number = int(draw.integers(2 * entries))
            name, (meta, arrays) = key(number), entry(number)
            begun = time.perf_counter()
            store.put(name, meta, arrays)
            times.append(time.perf_counter() - begun)
    return times


def fill(folder: Path, entries: int) -> str:
    """Write the entries; their number, size and time in words."""
    with open_store(folder) as store:
        begun = time.perf_counter()
        for number in range(entries):
            store.put(key(number), *entry(number))
        seconds, stats = time.perf_counter() - begun, store.stats()
    size = f"{stats.bytes / 2**20:.0f} MiB, file {stats.file_bytes / 2**20:.0f} MiB"
    return f"{stats.entries:,} entries ({size}) written in {seconds:.1f} s"


@benchmark(model="reviews-minilm", rounds=1000)
def explain_hit(model: str, rounds: int) -> Measurement:
    """How long `engine.explain` takes for a cached request.

    In a cache of its own. Beside it the look for changed model files, which comes before the cache may be trusted.
    """
    request = Request(model, "gradient_x_input", Example(TEXT))
    with empty_home():
        explain(request)
        assert explain(request).cached, "the second answer must come from the cache"
        work: dict[str, Callable[[], object]] = {
            "cached explain": lambda: explain(request),
            "of which: have the files changed?": lambda: revision(model),
        }
        rows: Table = []
        for what, run in work.items():
            times = []
            for _ in range(rounds):
                begun = time.perf_counter()
                run()
                times.append((time.perf_counter() - begun) * 1e3)
            median, slow = np.percentile(times, [50, 99])
            rows.append({"what": what, "ms, median": float(median), "ms, p99": float(slow)})
    return Measurement({"A cached explanation": rows})
