"""Explainers of pictures against the bare passes that they need, on ViT-Base/16: `python -m benchmarks.picture_work`.

Bare: a plain loop over the transformers module, as many rows in batches as large as the explainer's. What the
explainer does besides (replacing patches, drawing coalitions, solving for scores) must stay within a tenth of that.
`kernel_shap` removes superpixels, so that few evaluations do; its superpixels are found within its time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import (
    Limit,
    benchmark_parser,
    judge,
    load_average,
    ratio_to,
    scratch_folder,
    show,
    time_in_turn,
)
from benchmarks.workloads import bare_picture_forward, bare_picture_gradient, picture_task, random_vit_base, run_method
from engine.task import Task

STEPS = 12
SAMPLES, SEGMENTS = 56, 40
MOST = 1.10


def measure(task: Task, rounds: int) -> list[dict[str, Any]]:
    samples = {"n_samples": SAMPLES, "segments": "slic", "n_segments": SEGMENTS}
    pairs = {
        "integrated_gradients": (STEPS, bare_picture_gradient, {"steps": "fixed", "n_steps": STEPS}),
        "kernel_shap": (SAMPLES, bare_picture_forward, samples),
    }
    return [
        row
        for method, (count, bare, params) in pairs.items()
        for row in _pair(method, count, bare(task, count), run_method(task, method, **params), rounds)
    ]


def _pair(
    method: str, count: int, bare: Callable[[], Any], run: Callable[[], Any], rounds: int
) -> list[dict[str, Any]]:
    times = time_in_turn({"bare": bare, "exegesis": run}, rounds)
    return [
        {
            "method": method, "passes": count, "by": name, "s": float(np.median(times[name])),
            **ratio_to(times, name, "bare"),
        }
        for name in times
    ]  # fmt: skip


def main() -> int:
    options = benchmark_parser(__doc__, rounds=5).parse_args()
    before = load_average()
    with scratch_folder() as folder:
        rows = measure(picture_task(random_vit_base(folder)), options.rounds)
    show(f"Explainers of pictures against the bare passes, load {before} to {load_average()}", rows, options.json)
    return judge(
        [Limit(f"{row['method']}, to bare", row["ratio"], MOST, "times") for row in rows if row["by"] == "exegesis"]
    )


if __name__ == "__main__":
    sys.exit(main())
