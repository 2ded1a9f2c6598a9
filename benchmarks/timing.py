"""Times of things that are compared, taken in turn so that a drift of the machine hits them alike."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np


def in_turn(
    work: Mapping[str, Callable[[], object]], rounds: int, before: Callable[[], object] = lambda: None
) -> dict[str, np.ndarray]:
    """Seconds of each round, A B C A B C ...; one round to warm up is not counted, nor what is done `before` each."""
    times: dict[str, list[float]] = {name: [] for name in work}
    for turn in range(rounds + 1):
        for name, run in work.items():
            before()
            started = time.perf_counter()
            run()
            if turn:
                times[name].append(time.perf_counter() - started)
    return {name: np.array(seconds) for name, seconds in times.items()}


def ratio(times: Mapping[str, np.ndarray], name: str, bare: str) -> dict[str, float]:
    """Round by round: the median of the ratios and the middle half of them."""
    low, middle, high = np.percentile(times[name] / times[bare], [25, 50, 75])
    return {"ratio": float(middle), "low": float(low), "high": float(high)}


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    import torch

    kind = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.processor() or platform.machine()
    return {"device": kind, "cores": os.cpu_count(), "threads": torch.get_num_threads(), "torch": torch.__version__}


def show(title: str, rows: list[dict[str, Any]], as_json: bool) -> None:
    """A table, or JSON, on standard output."""
    if as_json:
        print(json.dumps({"title": title, "machine": machine(), "rows": rows}, indent=2))
        return
    columns = list(rows[0])
    cells = [[_cell(row[c]) for c in columns] for row in rows]
    widths = [max(len(c), *(len(row[i]) for row in cells)) for i, c in enumerate(columns)]
    print(f"{title}  ({', '.join(f'{k} {v}' for k, v in machine().items())})")
    for row in [columns, *cells]:
        print("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip())
    print()


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
