"""Explainers against the bare model work that they need: `python -m benchmarks.model_work [--rounds 9] [--json]`.

Bare: the plain transformers module on the same rows, as one batch of ids and as chunks of the size that the runtime
uses; the faster of the two is the yardstick. Captum, shap and lime run beside on the same number of evaluations.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from benchmarks.peers import captum_ig, captum_kernel_shap, lime_text, shap_kernel
from benchmarks.timing import in_turn, ratio, show
from engine import runtime
from engine.explain import predict_encoded
from engine.models.loading import load_model
from engine.models.text_classifier import TextClassifier
from engine.params import from_mapping
from engine.registry import explainer
from engine.request import Example
from engine.task import Item, Task

TEXT = "although the plot drags in its second half , the acting is a quiet triumph and stays with you"
SAMPLES = 512
STEPS = 50


def task_on(model: TextClassifier, text: str = TEXT) -> Task:
    encoded = model.encode(Example(text))
    prediction = predict_encoded(model, [encoded])[0]
    return Task(model, [Item(encoded, prediction, prediction.index, 0)])


def ours(task: Task, method: str, **params: Any) -> Callable[[], Any]:
    spec = explainer(method, task.model.kind)
    chosen = from_mapping(spec.params, params, method)
    return lambda: spec.function(task, chosen)


def bare_forward(task: Task, rows: int, chunk: int) -> Callable[[], None]:
    """Plain batched passes on ids."""
    ids, mask = _rows(task, rows)

    def run() -> None:
        with torch.inference_mode():
            for start in range(0, rows, chunk):
                task.model.module(input_ids=ids[start : start + chunk], attention_mask=mask[start : start + chunk])
            wait(task)

    return run


def bare_gradient(task: Task, rows: int, chunk: int) -> Callable[[], None]:
    """Plain batched passes forward and back to the embeddings."""
    _, mask = _rows(task, rows)
    embeds = task.model.embed(task.batch([0] * rows)).detach()

    def run() -> None:
        for start in range(0, rows, chunk):
            point = embeds[start : start + chunk].clone().requires_grad_()
            logits = task.model.module(inputs_embeds=point, attention_mask=mask[start : start + chunk]).logits
            torch.autograd.grad(logits[:, task.targets[0]].sum(), point)
        wait(task)

    return run


def _rows(task: Task, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.from_numpy(task.examples[0].ids).to(task.model.device).repeat(rows, 1)
    return ids, torch.ones_like(ids)


def wait(task: Task) -> None:
    if task.model.device.type == "cuda":
        torch.cuda.synchronize()


def measure(model: TextClassifier, rounds: int) -> list[dict[str, Any]]:
    task = task_on(model)
    length = len(task.examples[0])
    forward = runtime.rows_at_once(model, length)
    back = runtime.rows_at_once(model, length, gradients=True)
    unique = len(np.unique(_lime_rows(task), axis=0))
    groups = [
        (
            "integrated_gradients",
            1.10,
            {"one batch": bare_gradient(task, STEPS, STEPS), "chunks": bare_gradient(task, STEPS, back)},
            ours(task, "integrated_gradients", steps="fixed", n_steps=STEPS),
            {"captum": captum_ig(task, STEPS)},
        ),
        (
            "kernel_shap",
            1.15,
            {"one batch": bare_forward(task, SAMPLES, SAMPLES), "chunks": bare_forward(task, SAMPLES, forward)},
            ours(task, "kernel_shap", n_samples=SAMPLES),
            {"captum": captum_kernel_shap(task, SAMPLES), "shap": shap_kernel(task, SAMPLES)},
        ),
        (
            "lime",
            1.15,
            {"one batch": bare_forward(task, unique, unique), "chunks": bare_forward(task, unique, forward)},
            ours(task, "lime", n_samples=SAMPLES),
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
    times = in_turn({**bare, "exegesis": run, **peers}, rounds)
    fastest = min(bare, key=lambda name: float(np.median(times[name])))
    rows = []
    for name in times:
        goal = target if name == "exegesis" else ""
        seconds = float(np.median(times[name]))
        rows.append({"method": method, "by": name, "ms": seconds * 1e3, **ratio(times, name, fastest), "at most": goal})
    return rows


def _lime_rows(task: Task) -> np.ndarray:
    from engine.explainers.perturbation import draw_samples

    item = task.items[0]
    return draw_samples(len(item.encoded.features), SAMPLES, item.generator())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="reviews-minilm")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    model = load_model(given.model, "float32", runtime.device())
    show("Explainers against the bare model work", measure(model, given.rounds), given.json)


if __name__ == "__main__":
    main()
