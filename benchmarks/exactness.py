"""Errors of integrated gradients by steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Measurement, benchmark
from benchmarks.peers import captum_ig, logit_of_embeddings, path_ends
from benchmarks.workloads import run_method, text_task
from engine import runtime
from engine.data.datasets import load
from engine.models.loading import load_model
from engine.task import Task

RULES = ("gausslegendre", "riemann_trapezoid", "riemann_middle", "riemann_right")
MOST_STEPS = 4096
MOST_LEGENDRE_NODES = 1024
LIMIT = 0.01

PathErrors = tuple[float, float]
"""The completeness gap, as the design defines it, and the largest error of a score."""


@benchmark(model="reviews-minilm", dataset="reviews", texts=20, exact=257)
def path_evaluations(model: str, dataset: str, texts: int, exact: int) -> Measurement:
    """Model evaluations until integrated gradients are right to 1%.

    Right: the completeness gap is under 1%, and so is the largest error of a score, relative to the largest score by
    `exact` nodes of Gauss-Legendre, or of Captum's midpoint rule where there are more than 1,024. `auto` counts all its
    evaluations, from the first round on, both ends of the path included; it knows no error and stops when its estimate
    is under 1%. Captum's rules are tried at every power of two, and counted is the first number of steps alone that is
    good enough, as if one knew it beforehand: a kinder count than ours.
    """
    loaded = load_model(model, "float32", runtime.device())
    tasks = [text_task(loaded, example.text) for example in load(dataset, limit=texts).examples]
    exact_rule = RULES[0] if exact <= MOST_LEGENDRE_NODES else "riemann_middle"
    pairs = [(task, path_scores(task, exact, exact_rule)) for task in tasks]
    auto = [run_method(task, "integrated_gradients", steps="auto")()[0] for task in tasks]
    reached = [path_errors(task, ours.scores, true) for (task, true), ours in zip(pairs, auto, strict=True)]
    rows = [_path_row("exegesis auto", [ours.evaluations for ours in auto], reached)]
    for rule in RULES:
        counts = [steps_needed(task, rule, true) for task, true in pairs]
        at_50 = [path_errors(task, path_scores(task, 50, rule), true) for task, true in pairs]
        rows.append(_path_row(f"captum {rule}", counts, at_50))
    return Measurement({"Integrated gradients: evaluations until right to 1%": rows})


def path_scores(task: Task, steps: int, rule: str = RULES[0]) -> np.ndarray:
    """Captum's scores, one a token."""
    return captum_ig(task, steps, rule)().sum(-1)[0].detach().double().numpy()


def path_errors(task: Task, scores: np.ndarray, exact: np.ndarray) -> PathErrors:
    forward, (x, baseline) = logit_of_embeddings(task), path_ends(task)
    change = float((forward(x) - forward(baseline)).detach())
    gap = abs(scores.sum() - change) / max(abs(change), 1e-3)
    return float(gap), float(np.abs(scores - exact).max() / np.abs(exact).max())


def steps_needed(task: Task, rule: str, exact: np.ndarray) -> float:
    """The first power of two of steps that is right."""
    steps = 4
    while steps <= MOST_STEPS:
        if max(path_errors(task, path_scores(task, steps, rule), exact)) < LIMIT:
            return steps
        steps *= 2
    return float("inf")


def _path_row(name: str, counts: list[float], reached: list[PathErrors]) -> dict[str, Any]:
    gaps, wrong = zip(*reached, strict=True)
    return {
        "by": name,
        "evaluations, median": float(np.median(counts)),
        "90%": float(np.percentile(counts, 90)),
        "worst": float(np.max(counts)),
        "gap, median (auto: reached, captum: at 50 steps)": float(np.median(gaps)),
        "gap, worst": float(np.max(gaps)),
        "error of a score, worst": float(np.max(wrong)),
    }
