"""Explainers of pictures against the bare passes that they need, on ViT-Base/16: `python -m benchmarks.picture_work`.

Bare: a plain loop over the transformers module, as many rows in batches as large as the explainer's. What the
explainer does besides (replacing patches, drawing coalitions, solving for scores) must stay within a tenth of that.
`kernel_shap` removes superpixels, so that few evaluations do; its superpixels are found within its time.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.limits import Limit, judge, load
from benchmarks.model_work import ours, wait
from benchmarks.timing import in_turn, ratio, show
from benchmarks.vit_base import random_vit_base, task_on
from engine import runtime
from engine.task import Task

STEPS = 12
SAMPLES, SEGMENTS = 56, 40
MOST = 1.10


def bare_forward(task: Task, rows: int) -> Callable[[], None]:
    """Plain batched passes on pictures."""
    pictures, chunk = _pictures(task, rows), runtime.rows_at_once(task.model, len(task.examples[0]))

    def run() -> None:
        with torch.inference_mode():
            for part in pictures.split(chunk):
                task.model.module(pixel_values=part)
            wait(task)

    return run


def bare_gradient(task: Task, rows: int) -> Callable[[], None]:
    """Plain batched passes forward and back to the pixels."""
    pictures = _pictures(task, rows)
    chunk = runtime.rows_at_once(task.model, len(task.examples[0]), gradients=True)

    def run() -> None:
        for part in pictures.split(chunk):
            point = part.clone().requires_grad_()
            logits = task.model.module(pixel_values=point).logits
            torch.autograd.grad(logits[:, task.targets[0]].sum(), point)
        wait(task)

    return run


def _pictures(task: Task, rows: int) -> torch.Tensor:
    return task.batch().pictures.repeat(rows, 1, 1, 1)


def measure(task: Task, rounds: int) -> list[dict[str, Any]]:
    samples = {"n_samples": SAMPLES, "segments": "slic", "n_segments": SEGMENTS}
    pairs = {
        "integrated_gradients": (STEPS, bare_gradient, {"steps": "fixed", "n_steps": STEPS}),
        "kernel_shap": (SAMPLES, bare_forward, samples),
    }
    return [
        row
        for method, (count, bare, params) in pairs.items()
        for row in _pair(method, count, bare(task, count), ours(task, method, **params), rounds)
    ]


def _pair(
    method: str, count: int, bare: Callable[[], Any], run: Callable[[], Any], rounds: int
) -> list[dict[str, Any]]:
    times = in_turn({"bare": bare, "exegesis": run}, rounds)
    return [
        {
            "method": method, "passes": count, "by": name, "s": float(np.median(times[name])),
            **ratio(times, name, "bare"),
        }
        for name in times
    ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    before = load()
    with tempfile.TemporaryDirectory(prefix="exegesis-bench-") as folder:
        rows = measure(task_on(random_vit_base(Path(folder))), given.rounds)
    show(f"Explainers of pictures against the bare passes, load {before} to {load()}", rows, given.json)
    ours = [row for row in rows if row["by"] == "exegesis"]
    return judge([Limit(f"{row['method']}, to bare", row["ratio"], MOST, "times") for row in ours])


if __name__ == "__main__":
    sys.exit(main())
