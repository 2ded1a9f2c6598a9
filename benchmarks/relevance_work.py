"""Relevance methods against one bare pass forward and back: `python -m benchmarks.relevance_work [--rounds 15]`.

Bare: the plain transformers module, with its own attention, from embeddings (a picture: pixels) to the logit and back.
A text of 22 tokens, one of about 200, and a picture on ViT-Base/16. Both methods get their maps from one such pass.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import picture_work, vit_base
from benchmarks.limits import Limit, judge, load
from benchmarks.model_work import TEXT, bare_gradient, ours, task_on
from benchmarks.timing import in_turn, ratio, show
from engine import runtime
from engine.models.loading import load_model
from engine.task import Task

METHODS = ("attention_x_gradient", "attn_lrp")
MOST = 1.3
LONG = 10
"""How often the text is repeated for the long one."""


def measure(name: str, task: Task, bare: Callable[[], Any], rounds: int) -> list[dict[str, Any]]:
    times = in_turn({"bare": bare, **{method: ours(task, method) for method in METHODS}}, rounds)
    return [
        {
            "input": name, "positions": len(task.examples[0]), "by": by, "ms": float(np.median(times[by])) * 1e3,
            **ratio(times, by, "bare"),
        }
        for by in times
    ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="reviews-minilm")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    before, rows = load(), []
    model = load_model(given.model, "float32", runtime.device())
    for name, text in {"text": TEXT, "long text": " ".join([TEXT] * LONG)}.items():
        task = task_on(model, text)
        rows += measure(name, task, bare_gradient(task, 1, 1), given.rounds)
    with tempfile.TemporaryDirectory(prefix="exegesis-bench-") as folder:
        task = vit_base.task_on(vit_base.random_vit_base(Path(folder)))
        rows += measure("picture", task, picture_work.bare_gradient(task, 1), given.rounds)
    show(f"Relevance methods against one bare pass forward and back, load {before} to {load()}", rows, given.json)
    judged = [row for row in rows if row["by"] in METHODS]
    return judge([Limit(f"{row['by']}, {row['input']}, to bare", row["ratio"], MOST, "times") for row in judged])


if __name__ == "__main__":
    sys.exit(main())
