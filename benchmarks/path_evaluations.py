"""Model evaluations until integrated gradients are right to 1 %: `python -m benchmarks.path_evaluations [--json]`.

Right: the completeness gap is under 1 %, and so is the largest error of a score, relative to the largest score of 257
nodes of Gauss-Legendre. `auto` counts all its evaluations, from the first round on, both ends of the path included; it
knows no error and stops when its scores settle. Captum's rules are tried at every power of two, and counted is the
first number of steps alone that is good enough, as if one knew it beforehand: a kinder count than ours.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import benchmark_parser, show
from benchmarks.peers import captum_ig, logit_of_embeddings, path_ends
from benchmarks.workloads import run_method, text_task
from engine import runtime
from engine.data.datasets import load
from engine.models.loading import load_model
from engine.task import Task

RULES = ("gausslegendre", "riemann_trapezoid", "riemann_middle", "riemann_right")
MOST = 4096
EXACT = 257
LIMIT = 0.01
Errors = tuple[float, float]
"""The completeness gap, as the design defines it, and the largest error of a score."""


def scores(task: Task, steps: int, rule: str = RULES[0]) -> np.ndarray:
    """Captum's, a score a token."""
    return captum_ig(task, steps, rule)().sum(-1)[0].detach().double().numpy()


def errors(task: Task, made: np.ndarray, exact: np.ndarray) -> Errors:
    forward, (x, baseline) = logit_of_embeddings(task), path_ends(task)
    change = float((forward(x) - forward(baseline)).detach())
    gap = abs(made.sum() - change) / max(abs(change), 1e-3)
    return float(gap), float(np.abs(made - exact).max() / np.abs(exact).max())


def evaluations(task: Task, rule: str, exact: np.ndarray) -> float:
    steps = 4
    while steps <= MOST:
        if max(errors(task, scores(task, steps, rule), exact)) < LIMIT:
            return steps
        steps *= 2
    return float("inf")


def measure(model: str, texts: int) -> list[dict[str, Any]]:
    loaded = load_model(model, "float32", runtime.device())
    tasks = [text_task(loaded, example.text) for example in load("reviews", limit=texts).examples]
    exact = [scores(task, EXACT) for task in tasks]
    pairs = list(zip(tasks, exact, strict=True))
    auto = [run_method(task, "integrated_gradients", steps="auto")()[0] for task in tasks]
    reached = [errors(task, a.scores, e) for (task, e), a in zip(pairs, auto, strict=True)]
    rows = [_row("exegesis auto", [a.evaluations for a in auto], reached)]
    for rule in RULES:
        counts = [evaluations(task, rule, e) for task, e in pairs]
        rows.append(_row(f"captum {rule}", counts, [errors(task, scores(task, 50, rule), e) for task, e in pairs]))
    return rows


def _row(name: str, counts: list[float], reached: list[Errors]) -> dict[str, Any]:
    gaps, wrong = zip(*reached, strict=True)
    return {
        "by": name,
        "evaluations, median": float(np.median(counts)),
        "90 %": float(np.percentile(counts, 90)),
        "worst": float(np.max(counts)),
        "gap, median (auto: reached, captum: at 50 steps)": float(np.median(gaps)),
        "gap, worst": float(np.max(gaps)),
        "error of a score, worst": float(np.max(wrong)),
    }


def main() -> None:
    options = benchmark_parser(__doc__, model="reviews-minilm", texts=20).parse_args()
    show("Integrated gradients: evaluations until right to 1 %", measure(options.model, options.texts), options.json)


if __name__ == "__main__":
    main()
