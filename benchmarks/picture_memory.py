"""Peak memory of 500 masks of a picture on ViT-Base/16: `python -m benchmarks.picture_memory [--masks 500]`.

In a process of its own: the model is loaded and warmed, then the kernel's own mark of the largest resident memory is
set back, and the masks are evaluated as `kernel_shap` does. The growth must stay within the runtime's budget for a
pass, give or take a tenth. On a GPU the peak is that of torch's allocator.
"""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.harness import Limit, benchmark_parser, judge, peak_memory, reset_peak_memory, scratch_folder, show
from benchmarks.workloads import picture_task, random_vit_base
from engine import runtime
from engine.task import Task

MASKS = 500
MARGIN = 1.10
SHARE_KEPT = 0.5


def growth(task: Task, masks: int, operator: str) -> int:
    """Bytes above what was held before, at the worst moment."""
    features = len(task.examples[0].features)
    kept = np.random.default_rng(0).random((masks, features)) < SHARE_KEPT
    before = reset_peak_memory(task.model)
    task.masked_values([kept], operator)
    return peak_memory(task.model) - before


def main() -> int:
    options = benchmark_parser(__doc__, masks=MASKS, operators="mean,drop").parse_args()
    with scratch_folder() as folder, runtime.turn():
        task = picture_task(random_vit_base(folder))
        task.masked_values([np.ones((1, len(task.examples[0].features)), dtype=bool)], "mean")
        budget = runtime.memory_budget()
        grown = {operator: growth(task, options.masks, operator) for operator in options.operators.split(",")}
    rows = [
        {"operator": operator, "masks": options.masks, "MB": size / 1e6, "budget MB": budget / 1e6}
        for operator, size in grown.items()
    ]
    show("Peak memory of masks of a picture", rows, options.json)
    return judge(
        [Limit(f"growth with {name}", size / 1e6, budget * MARGIN / 1e6, "MB") for name, size in grown.items()]
    )


if __name__ == "__main__":
    sys.exit(main())
