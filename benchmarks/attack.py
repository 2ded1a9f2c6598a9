"""An attack of 16 examples x 500 steps against its bare passes: `python -m benchmarks.attack [--steps 500] [--json]`.

From one start: further ones are further rows. Bare: the plain transformers module on the same real texts in the same
batches, made beforehand. The map of the input is a pass forward and one back; so is that of the last point. Each step
is a pass forward, one back that can be differentiated, and one back through that. They take turns step by step, the
bare passes first. Integrated gradients has as many rows an example as nodes, and is timed for as many steps fewer. Then
the same attack one example at a time. Models are loaded and warm; nothing is in the cache. Memory: the most above what
was held before.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from benchmarks.harness import Limit, PairedClocks, benchmark_parser, judge, load_average, ratio_to, show, time_in_turn
from engine import runtime
from engine.attacks.attack import EXAMPLES_AT_ONCE, encode_items
from engine.attacks.optimizer import TopKOptimizer, group_by_length
from engine.attacks.plan import PATH_STEPS, AttackParams
from engine.attacks.saliency import SaliencyMapper, resolve_params
from engine.data.sources import load_source
from engine.models.attention import twice_differentiable
from engine.models.loading import load_model
from engine.models.text_classifier import TextClassifier
from engine.progress import Report, reporting
from engine.task import Task, TaskItem

METHODS = ("gradient_x_input", "integrated_gradients")
MOST = 1.3
ALONE = 20
"""Steps of which the attack one by one is timed: it takes long."""

Rows = tuple[torch.Tensor, torch.Tensor | None, torch.Tensor]
"""Embeddings, what may be attended to (None: all), and the class of each row."""


def attack(
    model: TextClassifier, items: Sequence[TaskItem], method: str, steps: int, report: Report | None = None
) -> None:
    """Constrained, which looks at the probability too."""
    params = AttackParams(objective="constrained", steps=steps, starts=1)
    given = resolve_params(method, "text", {}, params)
    for group in _groups(items):
        with reporting(report):
            ended = list(TopKOptimizer(SaliencyMapper(model, group, method, given, params), params).run())
        if any(one.steps < steps for one in ended):
            raise SystemExit(f"error: an attack ended before its {steps} steps, so that times do not compare.")


def _groups(items: Sequence[TaskItem]) -> Iterator[list[TaskItem]]:
    for group in group_by_length([len(item.encoded) for item in items], EXAMPLES_AT_ONCE):
        yield [items[at] for at in group]


def bare(model: TextClassifier, items: Sequence[TaskItem], method: str, steps: int) -> Iterator[Callable[[], None]]:
    """What each step needs, batch by batch. The first has the map of the input besides; the last is a map alone."""
    of_each = PATH_STEPS if method == "integrated_gradients" else 1
    for group in _groups(items):
        rows = _rows(model, [item for item in group for _ in range(of_each)])
        for step in range(steps + 1):
            twice = (False, True) if step == 0 else (step < steps,)
            yield functools.partial(_passes, model.module, rows, twice)


def _rows(model: TextClassifier, items: Sequence[TaskItem]) -> Rows:
    batch = Task(model, items).batch()
    targets = torch.tensor([item.target for item in items], device=model.device)
    return model.embed(batch).detach().requires_grad_(), None if batch.whole else batch.visible, targets


def _passes(module: torch.nn.Module, rows: Rows, twice: Sequence[bool]) -> None:
    """Forward and back, and where told back once more through that."""
    embeds, mask, targets = rows
    for again in twice:
        logits = module(inputs_embeds=embeds, attention_mask=mask).logits
        (slope,) = torch.autograd.grad(logits.gather(1, targets[:, None]).sum(), embeds, create_graph=again)
        if again:
            torch.autograd.grad((slope * embeds).sum(), embeds)


def measure(model: TextClassifier, items: Sequence[TaskItem], method: str, steps: int) -> list[dict[str, Any]]:
    run_paired(model, items, method, 1)  # to warm up
    return [{"what": method, "steps": steps, **row} for row in run_paired(model, items, method, steps).rows()]


def run_paired(model: TextClassifier, items: Sequence[TaskItem], method: str, steps: int) -> PairedClocks:
    """The attack and its bare passes, step by step in turn."""
    passes, clocks = bare(model, items, method, steps), PairedClocks(model)

    def report(*_: object) -> None:
        with clocks.paused():
            clocks.time(next(passes))

    attack(model, items, method, steps, report)
    clocks.stop()
    return clocks


def alone(
    model: TextClassifier, items: Sequence[TaskItem], method: str, steps: int, rounds: int
) -> list[dict[str, Any]]:
    def one_by_one() -> None:
        for item in items:
            attack(model, [item], method, steps)

    work: dict[str, Callable[[], object]] = {
        "together": lambda: attack(model, items, method, steps),
        "one at a time": one_by_one,
    }
    times = time_in_turn(work, rounds)
    return [
        {"what": method, "steps": steps, "by": by, "seconds": float(np.median(times[by])),
         **ratio_to(times, by, "together"), "more MB": ""}
        for by in times
    ]  # fmt: skip


def main() -> int:
    parser = benchmark_parser(__doc__, model="bert-marked", examples=16, steps=500, rounds=3)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    options = parser.parse_args()
    before = load_average()
    model = load_model(options.model, "float32", runtime.device())
    source = load_source("text", "reviews")
    items = encode_items(model, [(source.read(index).input, 0) for index in range(options.examples)])
    with twice_differentiable(model.module):
        rows = [row for one in options.methods for row in measure(model, items, one, steps_of(one, options.steps))]
        rows += alone(model, items, options.methods[0], min(options.steps, ALONE), options.rounds)
    show(f"Attacks on {options.examples} examples, load {before} to {load_average()}", rows, options.json)
    return judge([limit for row in rows for limit in limits(row)])


def steps_of(method: str, steps: int) -> int:
    """As many rows are run for each method."""
    return max(1, steps // PATH_STEPS) if method == "integrated_gradients" else steps


def limits(row: dict[str, Any]) -> list[Limit]:
    if row["by"] == "one at a time":
        return [Limit("together, to one at a time", 1 / row["ratio"], 1, "times")]
    if row["by"] != "exegesis":
        return []
    return [
        Limit(f"{row['what']}, to bare", row["ratio"], MOST, "times"),
        Limit(f"{row['what']}, memory", row["more MB"], runtime.memory_budget() / 1e6, "MB"),
    ]


if __name__ == "__main__":
    sys.exit(main())
