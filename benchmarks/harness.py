"""The frame of all benchmarks: options, times taken in turn, memory, tables, and limits that must be kept."""

from __future__ import annotations

import argparse
import contextlib
import functools
import inspect
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np
import pandas as pd

from engine.lazy import torch
from engine.store import result_store

if TYPE_CHECKING:
    from engine.models.classifier import AnyClassifier

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
RESET_PEAK = "5"
TEXT = "although the plot drags in its second half , the acting is a quiet triumph and stays with you"
"""A text to explain."""

Table = list[dict[str, Any]]
"""Rows of cells by the name of their column."""


@dataclass(frozen=True)
class Limit:
    """`figure` must be at most `most`, both in `unit`."""

    what: str
    figure: float
    most: float
    unit: str = "times"

    @property
    def kept(self) -> bool:
        return self.figure <= self.most


@dataclass(frozen=True)
class Measurement:
    """Tables by their titles, the limits that must be kept, and the errors seen on the way."""

    tables: Mapping[str, Table] = field(default_factory=dict)
    limits: Sequence[Limit] = ()
    errors: Sequence[str] = ()


def benchmark(**options: object) -> Callable[[Callable[..., Measurement]], Callable[..., int]]:
    """Turn a function that measures into a command; its docstring is the help.

    `options`: the default of each parameter, or a dictionary of what `add_argument` takes. The command reads the
    arguments of the command line, prints the tables, or JSON with `--json`, and returns 1 where a limit is broken.
    """

    def decorate(measure: Callable[..., Measurement]) -> Callable[..., int]:
        @functools.wraps(measure)
        def command(arguments: Sequence[str] | None = None) -> int:
            parser = argparse.ArgumentParser(
                description=inspect.getdoc(measure), formatter_class=argparse.RawDescriptionHelpFormatter
            )
            for name, option in options.items():
                keywords = option if isinstance(option, dict) else {"type": type(option), "default": option}
                parser.add_argument(f"--{name}", **keywords)
            parser.add_argument("--json", action="store_true")
            values = vars(parser.parse_args(arguments))
            as_json, load = values.pop("json"), load_average()
            measurement = measure(**values)
            show(measurement.tables, f"{load} to {load_average()}", as_json)
            return judge(measurement.limits, measurement.errors)

        return command

    return decorate


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder that is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="exegesis-bench-") as folder:
        yield Path(folder)


@contextlib.contextmanager
def empty_home() -> Iterator[Path]:
    """A folder as the home of the project, so that nothing is cached; the old one afterwards."""
    with scratch_folder() as folder, mock.patch.dict(os.environ, EXEGESIS_HOME=str(folder)), result_store() as store:
        yield folder
        store.close()


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


def time_rows(times: Mapping[str, np.ndarray], bare: str = "bare", **cells: object) -> Table:
    """A row for each side: the median time, and the ratio to the bare side, round by round."""
    return [
        {**cells, "by": by, "ms": 1e3 * float(np.median(seconds)), **ratio_to(times, by, bare)}
        for by, seconds in times.items()
    ]


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

    def rows(self) -> Table:
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


def show(tables: Mapping[str, Table], load: str, as_json: bool) -> None:
    """Print tables, or JSON."""
    machine = describe_machine() | {"load": load}
    for title, rows in tables.items():
        if as_json:
            print(json.dumps({"title": title, "machine": machine, "rows": rows}, indent=2))
            continue
        print(f"{title}  ({', '.join(f'{name} {value}' for name, value in machine.items())})")
        print(pd.DataFrame(rows).to_string(index=False, float_format="{:.4g}".format), end="\n\n")


def judge(limits: Sequence[Limit], errors: Sequence[str] = ()) -> int:
    """Print `errors` and which limits are kept; the exit code of the benchmark."""
    for line in errors:
        print(f"error: {line}", file=sys.stderr)
    for limit in limits:
        verdict = "kept" if limit.kept else "BROKEN"
        print(f"{verdict}: {limit.what}: {limit.figure:,.4g} {limit.unit}, at most {limit.most:,.4g} {limit.unit}")
    sys.stdout.flush()
    return int(not all(limit.kept for limit in limits))
