"""How long a cache hit takes in a large store while four processes read and one writes.

    python -m benchmarks.cache_hits [--entries 100000] [--readers 4] [--seconds 10] [--json]

Three loads: `flat out`, where each process asks again at once; `floor`, the same with the entry already in
memory and only decoded, which shows how much of that tail is the scheduler's on a machine with fewer cores than
processes; and `paced`, where a reader pauses a millisecond between two questions, as people do at most.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cache import Store, decode, encode, key_for, open_store

LOADS = ("flat out", "floor", "paced")
PAUSE = 0.001
COLUMNS = ("load", "hits", "median", "p99", "p99.9", "worst", "first", "puts", "put median")


def key(number: int) -> str:
    return key_for({"number": number})


def entry(number: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What an explanation of a 60-token sentence takes: about 1.5 kB of meta and 60 scores."""
    dice = np.random.default_rng(number)
    tokens = [f"token{n}" for n in dice.integers(1_000, size=60)]
    meta = {
        "model": "reviews-minilm",
        "revision": key(0),
        "method": "integrated_gradients",
        "params": {"n_steps": 50, "quadrature": "gauss_legendre", "baseline": "mask"},
        "tokens": tokens,
        "offsets": [[6 * n, 6 * n + 5] for n in range(60)],
        "probabilities": dice.random(2).tolist(),
        "seconds": float(dice.random()),
    }
    return meta, {"scores": dice.standard_normal(60)}


def read(store: Store, entries: int, seconds: float, load: str, seed: int) -> dict[str, list[float]]:
    """Seconds of each hit, at random over all entries."""
    body = encode(*entry(seed))
    ask: Callable[[str], object] = (lambda _: decode(body)) if load == "floor" else store.get
    keys = [key(number) for number in np.random.default_rng(seed).integers(entries, size=20_000).tolist()]
    times, end, at = [], time.monotonic() + seconds, 0
    while time.monotonic() < end:
        begun = time.perf_counter()
        found = ask(keys[at % len(keys)])
        times.append(time.perf_counter() - begun)
        assert found is not None, "a miss in the benchmark: the store dropped an entry"
        at += 1
        if load == "paced":
            time.sleep(PAUSE)
    return {"times": times}


def write(store: Store, entries: int, seconds: float, seed: int) -> dict[str, list[float]]:
    """Seconds of each put, half of them new and half replacing."""
    times, end = [], time.monotonic() + seconds
    dice = np.random.default_rng(seed)
    while time.monotonic() < end:
        number = int(dice.integers(2 * entries))
        name, (meta, arrays) = key(number), entry(number)
        begun = time.perf_counter()
        store.put(name, meta, arrays)
        times.append(time.perf_counter() - begun)
    return {"times": times}


def measure(folder: Path, entries: int, readers: int, seconds: float, load: str) -> dict[str, Any]:
    started = [start(folder, entries, seconds, load, "write", 0)]
    started += [start(folder, entries, seconds, load, "read", seed) for seed in range(1, readers + 1)]
    puts, *reads = [np.array(json.loads(process.communicate()[0])["times"]) * 1e3 for process in started]
    hits = np.concatenate([times[1:] for times in reads])
    row = [load, len(hits), *np.percentile(hits, [50, 99, 99.9, 100]), max(times[0] for times in reads)]
    return dict(zip(COLUMNS, [*row, len(puts), float(np.median(puts))], strict=True))


def start(folder: Path, entries: int, seconds: float, load: str, role: str, seed: int) -> subprocess.Popen[str]:
    options = {"entries": entries, "seconds": seconds, "load": load, "role": role, "seed": seed, "folder": folder}
    command = [sys.executable, "-m", "benchmarks.cache_hits"]
    command += [part for name, value in options.items() for part in (f"--{name}", str(value))]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def fill(folder: Path, entries: int) -> dict[str, Any]:
    with open_store(folder) as store:
        begun = time.perf_counter()
        for number in range(entries):
            store.put(key(number), *entry(number))
        seconds = time.perf_counter() - begun
        stats = store.stats()
    return {"seconds": seconds, "entries": stats.entries, "bytes": stats.bytes, "file_bytes": stats.file_bytes}


def table(rows: list[dict[str, Any]]) -> str:
    """Times in milliseconds."""
    lines = [f"{'ms':>10} " + " ".join(f"{name:>10}" for name in COLUMNS[1:])]
    for row in rows:
        cells = (f"{row[n]:>10,}" if isinstance(row[n], int) else f"{row[n]:>10.3f}" for n in COLUMNS[1:])
        lines.append(f"{row['load']:>10} " + " ".join(cells))
    return "\n".join(lines)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--readers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--json", action="store_true")
    for hidden in ("--role", "--folder", "--load"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    given = options()
    if given.role:
        with open_store(Path(given.folder)) as store:
            if given.role == "read":
                print(json.dumps(read(store, given.entries, given.seconds, given.load, given.seed)))
            else:
                print(json.dumps(write(store, given.entries, given.seconds, given.seed)))
        return
    folder = Path(tempfile.mkdtemp(prefix="exegesis-bench-"))
    try:
        filled = fill(folder, given.entries)
        rows = [measure(folder, given.entries, given.readers, given.seconds, load) for load in LOADS]
    finally:
        shutil.rmtree(folder)
    if given.json:
        print(json.dumps({"filled": filled, "readers": given.readers, "loads": rows}, indent=2))
    else:
        size = f"{filled['bytes'] / 2**20:.0f} MiB, file {filled['file_bytes'] / 2**20:.0f} MiB"
        print(f"{filled['entries']:,} entries ({size}) written in {filled['seconds']:.1f} s")
        print(f"{given.readers} readers and 1 writer; times in milliseconds")
        print(table(rows))


if __name__ == "__main__":
    main()
