"""An attack of 16 examples x 500 steps against its bare passes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from benchmarks.harness import Limit, Measurement, PairedClocks, Table, benchmark, ratio_to, time_in_turn
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


@benchmark(model="bert-marked", examples=16, steps=500, rounds=3, methods={"nargs": "+", "default": METHODS})
def attack(model: str, examples: int, steps: int, rounds: int, methods: Sequence[str]) -> Measurement:
    """An attack of 16 examples x 500 steps against its bare passes.

    From one start: further ones are further rows. Bare: the plain transformers module on the same real texts in the
    same batches, made beforehand. The map of the input is a pass forward and one back; so is that of the last point.
    Each step is a pass forward, one back that can be differentiated, and one back through that. They take turns step by
    step, the bare passes first. Integrated gradients has as many rows an example as nodes, and is timed for as many
    steps fewer. Then the same attack one example at a time. Models are loaded and warm; nothing is in the cache.
    Memory: the most above what was held before.
    """
    loaded, table = load_model(model, "float32", runtime.device()), []
    source = load_source("text", "reviews")
    items = encode_items(loaded, [(source.read(index).input, 0) for index in range(examples)])
    with twice_differentiable(loaded.module):
        for method in methods:
            run_paired(loaded, items, method, 1)  # to warm up
            count = steps_of(method, steps)
            rows = run_paired(loaded, items, method, count).rows()
            table += [{"what": method, "steps": count, **row} for row in rows]
        table += time_alone(loaded, items, methods[0], min(steps, ALONE), rounds)
    return Measurement({f"Attacks on {examples} examples": table}, [limit for row in table for limit in limits(row)])


def run_attack(
    model: TextClassifier, items: Sequence[TaskItem], method: str, steps: int, report: Report | None = None
) -> None:
    """Attack with the constrained objective, which reads the probability too."""
    params = AttackParams(objective="constrained", steps=steps, starts=1)
    values = resolve_params(method, "text", {}, params)
    for group in _groups(items):
        with reporting(report):
            results = list(TopKOptimizer(SaliencyMapper(model, group, method, values, params), params).run())
        if any(result.steps < steps for result in results):
            raise SystemExit(f"error: an attack ended before its {steps} steps, so the times are not comparable.")


def _groups(items: Sequence[TaskItem]) -> Iterator[list[TaskItem]]:
    for group in group_by_length([len(item.encoded) for item in items], EXAMPLES_AT_ONCE):
        yield [items[at] for at in group]


def bare_steps(
    model: TextClassifier, items: Sequence[TaskItem], method: str, steps: int
) -> Iterator[Callable[[], None]]:
    """The passes of each step, batch by batch. The first has the map of the input besides; the last is a map alone."""
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
    """Run forward and back for each entry; where it is true, back once more through that."""
    embeds, mask, targets = rows
    for again in twice:
        logits = module(inputs_embeds=embeds, attention_mask=mask).logits
        (slope,) = torch.autograd.grad(logits.gather(1, targets[:, None]).sum(), embeds, create_graph=again)
        if again:
            torch.autograd.grad((slope * embeds).sum(), embeds)


def run_paired(model: TextClassifier, items: Sequence[TaskItem], method: str, steps: int) -> PairedClocks:
    """The attack and its bare passes, step by step in turn."""
    passes, clocks = bare_steps(model, items, method, steps), PairedClocks(model)

    def report(*_: object) -> None:
        with clocks.paused():
            clocks.time(next(passes))

    run_attack(model, items, method, steps, report)
    clocks.stop()
    return clocks


def time_alone(model: TextClassifier, items: Sequence[TaskItem], method: str, steps: int, rounds: int) -> Table:
    """The attack on all examples together, and one example at a time."""

    def one_by_one() -> None:
        for item in items:
            run_attack(model, [item], method, steps)

    work: dict[str, Callable[[], object]] = {
        "together": lambda: run_attack(model, items, method, steps),
        "one at a time": one_by_one,
    }
    times = time_in_turn(work, rounds)
    return [
        {"what": method, "steps": steps, "by": by, "seconds": float(np.median(times[by])),
         **ratio_to(times, by, "together"), "more MB": ""}
        for by in times
    ]  # fmt: skip


def steps_of(method: str, steps: int) -> int:
    """The steps of a method, so that each method runs as many rows."""
    return max(1, steps // PATH_STEPS) if method == "integrated_gradients" else steps


def limits(row: dict[str, Any]) -> list[Limit]:
    if row["by"] == "one at a time":
        return [Limit("together, to one at a time", 1 / row["ratio"], 1)]
    if row["by"] != "exegesis":
        return []
    return [
        Limit(f"{row['what']}, to bare", row["ratio"], MOST),
        Limit(f"{row['what']}, memory", row["more MB"], runtime.memory_budget() / 1e6, "MB"),
    ]
