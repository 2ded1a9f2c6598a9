"""Model evaluations until integrated gradients are complete to 1 %: `python -m benchmarks.path_evaluations [--json]`.

`auto` counts all its evaluations, from the first round on, both ends of the path included. Captum's rules are tried at
every power of two, and counted is the first number of steps alone that is good enough: a kinder count than ours.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from benchmarks.model_work import ours, task_on
from benchmarks.peers import captum_ig, ends, logit_of_embeddings
from benchmarks.timing import show
from engine import runtime
from engine.data.datasets import load
from engine.models.load import load_model
from engine.task import Task

RULES = ("gausslegendre", "riemann_trapezoid", "riemann_middle", "riemann_right")
MOST = 4096
LIMIT = 0.01


def gap(task: Task, steps: int, rule: str) -> float:
    """Captum's completeness gap, as the design defines it."""
    forward, (x, baseline) = logit_of_embeddings(task), ends(task)
    change = float((forward(x) - forward(baseline)).detach())
    total = float(captum_ig(task, steps, rule)().sum())
    return abs(total - change) / max(abs(change), 1e-3)


def evaluations(task: Task, rule: str) -> float:
    steps = 4
    while steps <= MOST:
        if gap(task, steps, rule) < LIMIT:
            return steps
        steps *= 2
    return float("inf")


def measure(model: str, texts: int) -> list[dict[str, Any]]:
    loaded = load_model(model, "float32", runtime.device())
    tasks = [task_on(loaded, example.text) for example in load("reviews", limit=texts).examples]
    auto = [ours(task, "integrated_gradients", steps="auto")()[0] for task in tasks]
    rows = [_row("exegesis auto", [a.evaluations for a in auto], [a.check.value for a in auto if a.check])]
    for rule in RULES:
        rows.append(_row(f"captum {rule}", [evaluations(t, rule) for t in tasks], [gap(t, 50, rule) for t in tasks]))
    return rows


def _row(name: str, counts: list[float], gaps: list[float]) -> dict[str, Any]:
    return {
        "by": name,
        "evaluations, median": float(np.median(counts)),
        "90 %": float(np.percentile(counts, 90)),
        "worst": float(np.max(counts)),
        "gap, median (auto: reached, captum: at 50 steps)": float(np.median(gaps)),
        "gap, worst": float(np.max(gaps)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="reviews-minilm")
    parser.add_argument("--texts", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    show("Integrated gradients: evaluations to a 1 % gap", measure(given.model, given.texts), given.json)


if __name__ == "__main__":
    main()
