"""An attack of 16 examples x 500 steps against its bare passes: `python -m benchmarks.attack [--steps 500] [--json]`.

From one start: further ones are further rows. Bare: the plain transformers module on the same real texts in the same
batches, made beforehand. The map of the input is a pass forward and one back; so is that of the last point. Each step
is a pass forward, one back that can be differentiated, and one back through that. They take turns step by step, the
bare passes first. Integrated gradients has as many rows an example as nodes, and is timed for as many steps fewer. Then
the same attack one example at a time. Models are loaded and warm; nothing is in the cache. Memory: the most above what
was held before.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from benchmarks.beside import Beside
from benchmarks.limits import Limit, judge, load
from benchmarks.timing import in_turn, ratio, show
from engine import runtime
from engine.attacks.ascent import Ascent, like_lengths
from engine.attacks.attack import EXAMPLES_AT_ONCE, items_of
from engine.attacks.mapping import Mapper, resolved
from engine.attacks.params import PATH_STEPS, AttackParams
from engine.data.sources import load_source
from engine.models.attention import twice_differentiable
from engine.models.loading import load_model
from engine.models.text_classifier import TextClassifier
from engine.progress import Report, reporting
from engine.task import Item, Task

METHODS = ("gradient_x_input", "integrated_gradients")
MOST = 1.3
ALONE = 20
"""Steps of which the attack one by one is timed: it takes long."""

Rows = tuple[torch.Tensor, torch.Tensor | None, torch.Tensor]
"""Embeddings, what may be attended to (None: all), and the class of each row."""


def attack(model: TextClassifier, items: Sequence[Item], method: str, steps: int, report: Report | None = None) -> None:
    """Constrained, which looks at the probability too."""
    params = AttackParams(objective="constrained", steps=steps, starts=1)
    given = resolved(method, "text", {}, params)
    for group in _groups(items):
        with reporting(report):
            ended = list(Ascent(Mapper(model, group, method, given, params), params).run())
        if any(one.steps < steps for one in ended):
            raise SystemExit(f"error: an attack ended before its {steps} steps, so that times do not compare.")


def _groups(items: Sequence[Item]) -> Iterator[list[Item]]:
    for group in like_lengths([len(item.encoded) for item in items], EXAMPLES_AT_ONCE):
        yield [items[at] for at in group]


def bare(model: TextClassifier, items: Sequence[Item], method: str, steps: int) -> Iterator[Callable[[], None]]:
    """What each step needs, batch by batch. The first has the map of the input besides; the last is a map alone."""
    of_each = PATH_STEPS if method == "integrated_gradients" else 1
    for group in _groups(items):
        rows = _rows(model, [item for item in group for _ in range(of_each)])
        for step in range(steps + 1):
            twice = (False, True) if step == 0 else (step < steps,)
            yield functools.partial(_passes, model.module, rows, twice)


def _rows(model: TextClassifier, items: Sequence[Item]) -> Rows:
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


def measure(model: TextClassifier, items: Sequence[Item], method: str, steps: int) -> list[dict[str, Any]]:
    beside(model, items, method, 1)  # to warm up
    return [{"what": method, "steps": steps, **row} for row in beside(model, items, method, steps).rows()]


def beside(model: TextClassifier, items: Sequence[Item], method: str, steps: int) -> Beside:
    """The attack and its bare passes, step by step in turn."""
    passes, clocks = bare(model, items, method, steps), Beside(model)

    def report(*_: object) -> None:
        with clocks.paused():
            clocks.time(next(passes))

    attack(model, items, method, steps, report)
    clocks.stop()
    return clocks


def alone(model: TextClassifier, items: Sequence[Item], method: str, steps: int, rounds: int) -> list[dict[str, Any]]:
    def one_by_one() -> None:
        for item in items:
            attack(model, [item], method, steps)

    work: dict[str, Callable[[], object]] = {
        "together": lambda: attack(model, items, method, steps),
        "one at a time": one_by_one,
    }
    times = in_turn(work, rounds)
    return [
        {"what": method, "steps": steps, "by": by, "seconds": float(np.median(times[by])),
         **ratio(times, by, "together"), "more MB": ""}
        for by in times
    ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="bert-marked")
    parser.add_argument("--examples", type=int, default=16)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    before = load()
    model = load_model(given.model, "float32", runtime.device())
    source = load_source("text", "reviews")
    items = items_of(model, [(source.read(index).input, 0) for index in range(given.examples)])
    with twice_differentiable(model.module):
        rows = [row for one in given.methods for row in measure(model, items, one, steps_of(one, given.steps))]
        rows += alone(model, items, given.methods[0], min(given.steps, ALONE), given.rounds)
    show(f"Attacks on {given.examples} examples, load {before} to {load()}", rows, given.json)
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
