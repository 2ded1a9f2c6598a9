"""Relevance methods against one bare pass forward and back: `python -m benchmarks.relevance_work [--rounds 15]`.

Bare: the plain transformers module, with its own attention, from embeddings (a picture: pixels) to the logit and back.
A text of 22 tokens, one of about 200, and a picture on ViT-Base/16. Both methods get their maps from one such pass.
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
from benchmarks.workloads import (
    LONG_TEXT,
    TEXT,
    bare_picture_gradient,
    bare_text_gradient,
    picture_task,
    random_vit_base,
    run_method,
    text_task,
)
from engine import runtime
from engine.models.loading import load_model
from engine.task import Task

METHODS = ("attention_x_gradient", "attn_lrp")
MOST = 1.3


def measure(name: str, task: Task, bare: Callable[[], Any], rounds: int) -> list[dict[str, Any]]:
    times = time_in_turn({"bare": bare, **{method: run_method(task, method) for method in METHODS}}, rounds)
    return [
        {
            "input": name, "positions": len(task.examples[0]), "by": by, "ms": float(np.median(times[by])) * 1e3,
            **ratio_to(times, by, "bare"),
        }
        for by in times
    ]  # fmt: skip


def main() -> int:
    options = benchmark_parser(__doc__, model="reviews-minilm", rounds=15).parse_args()
    before, rows = load_average(), []
    model = load_model(options.model, "float32", runtime.device())
    for name, text in {"text": TEXT, "long text": LONG_TEXT}.items():
        task = text_task(model, text)
        rows += measure(name, task, bare_text_gradient(task, 1, 1), options.rounds)
    with scratch_folder() as folder:
        task = picture_task(random_vit_base(folder))
        rows += measure("picture", task, bare_picture_gradient(task, 1), options.rounds)
    show(
        f"Relevance methods against one bare pass forward and back, load {before} to {load_average()}",
        rows,
        options.json,
    )
    judged = [row for row in rows if row["by"] in METHODS]
    return judge([Limit(f"{row['by']}, {row['input']}, to bare", row["ratio"], MOST, "times") for row in judged])


if __name__ == "__main__":
    sys.exit(main())
