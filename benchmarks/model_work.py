"""Explainers against the bare model work that they need: `python -m benchmarks.model_work [--rounds 9] [--json]`.

Bare: the plain transformers module on the same rows, as one batch of ids and as chunks of the size that the runtime
uses; the faster of the two is the yardstick. Captum, shap and lime run beside on the same number of evaluations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import benchmark_parser, ratio_to, show, time_in_turn
from benchmarks.peers import captum_ig, captum_kernel_shap, lime_text, shap_kernel
from benchmarks.workloads import bare_text_forward, bare_text_gradient, run_method, text_task
from engine import runtime
from engine.models.loading import load_model
from engine.models.text_classifier import TextClassifier
from engine.task import Task

SAMPLES = 512
STEPS = 50


def measure(model: TextClassifier, rounds: int) -> list[dict[str, Any]]:
    task = text_task(model)
    length = len(task.examples[0])
    forward = runtime.rows_at_once(model, length)
    back = runtime.rows_at_once(model, length, gradients=True)
    unique = len(np.unique(_lime_rows(task), axis=0))
    groups = [
        (
            "integrated_gradients",
            1.10,
            {"one batch": bare_text_gradient(task, STEPS, STEPS), "chunks": bare_text_gradient(task, STEPS, back)},
            run_method(task, "integrated_gradients", steps="fixed", n_steps=STEPS),
            {"captum": captum_ig(task, STEPS)},
        ),
        (
            "kernel_shap",
            1.15,
            {
                "one batch": bare_text_forward(task, SAMPLES, SAMPLES),
                "chunks": bare_text_forward(task, SAMPLES, forward),
            },
            run_method(task, "kernel_shap", n_samples=SAMPLES),
            {"captum": captum_kernel_shap(task, SAMPLES), "shap": shap_kernel(task, SAMPLES)},
        ),
        (
            "lime",
            1.15,
            {"one batch": bare_text_forward(task, unique, unique), "chunks": bare_text_forward(task, unique, forward)},
            run_method(task, "lime", n_samples=SAMPLES),
            {"lime": lime_text(task, SAMPLES)},
        ),
    ]
    return [row for group in groups for row in _group(rounds, *group)]


def _group(
    rounds: int,
    method: str,
    target: float,
    bare: dict[str, Callable[[], Any]],
    run: Callable[[], Any],
    peers: dict[str, Callable[[], Any]],
) -> list[dict[str, Any]]:
    times = time_in_turn({**bare, "exegesis": run, **peers}, rounds)
    fastest = min(bare, key=lambda name: float(np.median(times[name])))
    rows = []
    for name in times:
        goal = target if name == "exegesis" else ""
        seconds = float(np.median(times[name]))
        rows.append(
            {"method": method, "by": name, "ms": seconds * 1e3, **ratio_to(times, name, fastest), "at most": goal}
        )
    return rows


def _lime_rows(task: Task) -> np.ndarray:
    from engine.explainers.perturbation import draw_samples

    item = task.items[0]
    return draw_samples(len(item.encoded.features), SAMPLES, item.generator())


def main() -> None:
    options = benchmark_parser(__doc__, model="reviews-minilm", rounds=9).parse_args()
    model = load_model(options.model, "float32", runtime.device())
    show("Explainers against the bare model work", measure(model, options.rounds), options.json)


if __name__ == "__main__":
    main()
