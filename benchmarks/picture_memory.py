"""Peak memory of 500 masks of a picture on ViT-Base/16: `python -m benchmarks.picture_memory [--masks 500]`.

In a process of its own: the model is loaded and warmed, then the kernel's own mark of the largest resident memory is
set back, and the masks are evaluated as `kernel_shap` does. The growth must stay within the runtime's budget for a
pass, give or take a tenth. On a GPU the peak is that of torch's allocator.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

from benchmarks.limits import Limit, judge
from benchmarks.timing import show
from benchmarks.vit_base import random_vit_base, task_on
from engine import runtime
from engine.models.classifier import AnyClassifier
from engine.task import Task

MASKS = 500
MARGIN = 1.10
SHARE_KEPT = 0.5
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
RESET_PEAK = "5"


def growth(task: Task, masks: int, operator: str) -> int:
    """Bytes above what was held before, at the worst moment."""
    features = len(task.examples[0].features)
    kept = np.random.default_rng(0).random((masks, features)) < SHARE_KEPT
    before = held(task.model)
    task.masked_values([kept], operator)
    return peak(task.model) - before


def held(model: AnyClassifier) -> int:
    """Bytes in use now; the mark of the most is set back to them."""
    if model.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated()
    CLEAR.write_text(RESET_PEAK)
    return _status("VmRSS")


def peak(model: AnyClassifier) -> int:
    """The most bytes that were in use since."""
    return torch.cuda.max_memory_allocated() if model.device.type == "cuda" else _status("VmHWM")


def _status(name: str) -> int:
    """A line of the kernel's account of this process, in bytes."""
    [line] = [line for line in STATUS.read_text().splitlines() if line.startswith(f"{name}:")]
    return int(line.split()[1]) * 1024


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--masks", type=int, default=MASKS)
    parser.add_argument("--operators", default="mean,drop")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="exegesis-bench-") as folder, runtime.turn():
        task = task_on(random_vit_base(Path(folder)))
        task.masked_values([np.ones((1, len(task.examples[0].features)), dtype=bool)], "mean")
        budget = runtime.memory_budget()
        grown = {operator: growth(task, given.masks, operator) for operator in given.operators.split(",")}
    rows = [
        {"operator": operator, "masks": given.masks, "MB": size / 1e6, "budget MB": budget / 1e6}
        for operator, size in grown.items()
    ]
    show("Peak memory of masks of a picture", rows, given.json)
    return judge(
        [Limit(f"growth with {name}", size / 1e6, budget * MARGIN / 1e6, "MB") for name, size in grown.items()]
    )


if __name__ == "__main__":
    sys.exit(main())
