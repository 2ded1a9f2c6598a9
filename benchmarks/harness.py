"""Shared machinery of the benchmarks: options, times taken in turn, memory, tables, and limits that must be kept."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine.models.classifier import AnyClassifier

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
RESET_PEAK = "5"


def benchmark_parser(description: str | None, as_json: bool = True, **defaults: int | str) -> argparse.ArgumentParser:
    """A parser with an option for each default, and `--json` where the benchmark prints a table."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        parser.add_argument(f"--{name}", type=type(default), default=default)
    if as_json:
        parser.add_argument("--json", action="store_true")
    return parser


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder that is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="exegesis-bench-") as folder:
        yield Path(folder)


@contextlib.contextmanager
def empty_home() -> Iterator[Path]:
    """A folder as the home of the project, so that nothing is cached; the old one afterwards."""
    from engine.store import result_store

    before = os.environ.get("EXEGESIS_HOME")
    with scratch_folder() as folder:
        os.environ["EXEGESIS_HOME"] = str(folder)
        try:
            with result_store() as store:
                yield folder
                store.close()
        finally:
            os.environ.pop("EXEGESIS_HOME")
            os.environ.update({} if before is None else {"EXEGESIS_HOME": before})


def time_in_turn(
    work: Mapping[str, Callable[[], object]],
    rounds: int,
    before: Callable[[], object] = lambda: None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, np.ndarray]:
    """Seconds of each round, A B C A B C ..., so that a drift of the machine hits all alike.

    One round to warm up is not counted, nor is `before`, which runs before each. `clock`: `time.process_time` counts
    the processor's time alone, whatever else runs.
    """
    times: dict[str, list[float]] = {name: [] for name in work}
    for turn in range(rounds + 1):
        for name, run in work.items():
            before()
            started = clock()
            run()
            if turn:
                times[name].append(clock() - started)
    return {name: np.array(seconds) for name, seconds in times.items()}


def ratio_to(times: Mapping[str, np.ndarray], name: str, bare: str) -> dict[str, float]:
    """Round by round: the median of the ratios and the middle half of them."""
    low, middle, high = np.percentile(times[name] / times[bare], [25, 50, 75])
    return {"ratio": float(middle), "low": float(low), "high": float(high)}


class PairedClocks:
    """Two clocks for a long piece of work and the bare passes that it needs, step by step in turn.

    Ours runs until it is `paused`. `most`: bytes above the start that were in use at most while ours ran, with what
    the bare work has left: to give that back in between would make ours wait for memory that the bare work finds ready.
    """

    def __init__(self, model: AnyClassifier) -> None:
        self.model, self.most = model, 0
        self.ours: list[float] = []
        self.bare: list[float] = []
        self._before = reset_peak_memory(model)
        self._since = self._now()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Between two steps of ours: for the bare work of the next one, and what it needs beforehand."""
        self.stop()
        yield
        reset_peak_memory(self.model)  # the peak of ours counts from here on
        self._since = self._now()

    def stop(self) -> None:
        """End a step of ours."""
        self.ours.append(self._now() - self._since)
        self.most = max(self.most, peak_memory(self.model) - self._before)

    def time(self, work: Callable[[], object]) -> None:
        """Time the bare work of a step."""
        started = self._now()
        work()
        self.bare.append(self._now() - started)

    def rows(self) -> list[dict[str, Any]]:
        """A row a side. `ratio` is that of all seconds, `low` to `high` the middle half of those of the steps."""
        steps = {"bare": np.array(self.bare), "exegesis": np.array(self.ours[1:])}  # before the first: our preparations
        seconds = {"bare": sum(self.bare), "exegesis": sum(self.ours)}
        return [
            {"by": by, "seconds": seconds[by], **ratio_to(steps, by, "bare"), "ratio": seconds[by] / seconds["bare"],
             "more MB": round(self.most / 1e6) if by == "exegesis" else ""}
            for by in steps
        ]  # fmt: skip

    def _now(self) -> float:
        if self.model.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter()


def reset_peak_memory(model: AnyClassifier) -> int:
    """Bytes in use now; the peak is set back to them."""
    if model.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated()
    CLEAR.write_text(RESET_PEAK)
    return _process_status("VmRSS")


def peak_memory(model: AnyClassifier) -> int:
    """The most bytes in use since the peak was reset: on a GPU those of torch's allocator, else resident."""
    return torch.cuda.max_memory_allocated() if model.device.type == "cuda" else _process_status("VmHWM")


def _process_status(name: str) -> int:
    """A line of the kernel's account of this process, in bytes."""
    [line] = [line for line in STATUS.read_text().splitlines() if line.startswith(f"{name}:")]
    return int(line.split()[1]) * 1024


def describe_machine() -> dict[str, Any]:
    """The device and library that the figures are of."""
    kind = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.processor() or platform.machine()
    return {"device": kind, "cores": os.cpu_count(), "threads": torch.get_num_threads(), "torch": torch.__version__}


def load_average() -> float:
    """Processes that wanted to run in the last minute: beside times, or they mean nothing on a shared machine."""
    return round(os.getloadavg()[0], 1)


def show(title: str, rows: list[dict[str, Any]], as_json: bool) -> None:
    """Print a table, or JSON."""
    if as_json:
        print(json.dumps({"title": title, "machine": describe_machine(), "rows": rows}, indent=2))
        return
    columns = list(rows[0])
    cells = [[_cell(row[c]) for c in columns] for row in rows]
    widths = [max(len(c), *(len(row[i]) for row in cells)) for i, c in enumerate(columns)]
    print(f"{title}  ({', '.join(f'{k} {v}' for k, v in describe_machine().items())})")
    for row in [columns, *cells]:
        print("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())
    print()


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Limit:
    """`figure` must be at most `most`, both in `unit`."""

    what: str
    figure: float
    most: float
    unit: str

    @property
    def kept(self) -> bool:
        return self.figure <= self.most


def judge(limits: Sequence[Limit], errors: Sequence[str] = ()) -> int:
    """Print `errors` and which limits are kept; the exit code of the benchmark."""
    for line in errors:
        print(f"error: {line}", file=sys.stderr)
    for limit in limits:
        verdict = "kept" if limit.kept else "BROKEN"
        print(f"{verdict}: {limit.what}: {limit.figure:,.4g} {limit.unit}, at most {limit.most:,.4g} {limit.unit}")
    sys.stdout.flush()
    return int(not all(limit.kept for limit in limits))
