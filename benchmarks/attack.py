"""An attack of 16 examples x 500 steps against its bare passes: `python -m benchmarks.attack [--steps 500] [--json]`.

Bare: the plain transformers module on the same batches, a pass forward, one back that can be differentiated, and one
back through that; nothing else. Both from the same real texts. Then the same attack one example at a time, and the
largest memory above what was held before. Models are loaded and warm; nothing is in the cache.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from benchmarks.limits import Limit, judge, load
from benchmarks.picture_memory import held, peak
from benchmarks.timing import in_turn, ratio, show
from engine import runtime
from engine.attacks.ascent import Ascent, like_lengths
from engine.attacks.attack import EXAMPLES_AT_ONCE, items_of
from engine.attacks.mapping import Mapper, resolved
from engine.attacks.params import PATH_STEPS, AttackParams
from engine.data.sources import source_of
from engine.models.attention import twice_differentiable
from engine.models.load import load_model
from engine.models.text import TextClassifier
from engine.task import Item, Task

EXAMPLES = 16
METHODS = ("gradient_x_input", "integrated_gradients")
MOST = 1.3
ALONE = 20
"""Steps of which the attack one by one is timed: it takes long."""


def attack(model: TextClassifier, items: Sequence[Item], method: str, steps: int) -> None:
    """Constrained, which looks at the probability too."""
    params = AttackParams(objective="constrained", steps=steps)
    given = resolved(method, "text", {}, params)
    for group in like_lengths([len(item.encoded) for item in items], EXAMPLES_AT_ONCE):
        ended = list(Ascent(Mapper(model, [items[at] for at in group], method, given, params), params).run())
        if any(one.steps < steps for one in ended):
            raise SystemExit(f"error: an attack ended before its {steps} steps, so that times do not compare.")


def bare(model: TextClassifier, items: Sequence[Item], method: str, steps: int) -> Callable[[], None]:
    """Plain passes on as many rows, in the same batches."""
    rows = PATH_STEPS if method == "integrated_gradients" else 1
    groups, task = [], Task(model, items)
    for group in like_lengths([len(item.encoded) for item in items], EXAMPLES_AT_ONCE):
        batch = task.batch([at for at in group for _ in range(rows)])
        targets = torch.tensor([items[at].target for at in group for _ in range(rows)], device=model.device)
        groups.append((model.embed(batch).detach(), None if batch.whole else batch.visible, targets))

    def run() -> None:
        for embeds, mask, targets in groups:
            for _ in range(steps):
                point = embeds.clone().requires_grad_()
                logits = model.module(inputs_embeds=point, attention_mask=mask).logits
                (slope,) = torch.autograd.grad(logits.gather(1, targets[:, None]).sum(), point, create_graph=True)
                torch.autograd.grad((slope * point).sum(), point)
            if model.device.type == "cuda":
                torch.cuda.synchronize()

    return run


def measure(model: TextClassifier, items: Sequence[Item], method: str, steps: int, rounds: int) -> list[dict[str, Any]]:
    work: dict[str, Callable[[], object]] = {
        "bare": bare(model, items, method, steps),
        "exegesis": lambda: attack(model, items, method, steps),
    }
    times = in_turn(work, rounds)
    before = held(model)
    attack(model, items, method, min(steps, ALONE))
    most = peak(model) - before
    return [
        {"what": method, "steps": steps, "by": by, "seconds": float(np.median(times[by])), **ratio(times, by, "bare"),
         "MB": round(most / 1e6) if by == "exegesis" else ""}
        for by in times
    ]  # fmt: skip


def alone(model: TextClassifier, items: Sequence[Item], method: str, rounds: int) -> list[dict[str, Any]]:
    def one_by_one() -> None:
        for item in items:
            attack(model, [item], method, ALONE)

    work: dict[str, Callable[[], object]] = {
        "together": lambda: attack(model, items, method, ALONE),
        "one at a time": one_by_one,
    }
    times = in_turn(work, rounds)
    return [
        {"what": method, "steps": ALONE, "by": by, "seconds": float(np.median(times[by])),
         **ratio(times, by, "together"), "MB": ""}
        for by in times
    ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="reviews-minilm")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    before = load()
    model = load_model(given.model, "float32", runtime.device())
    source = source_of("text", "reviews")
    items = items_of(model, [(source.read(index).input, 0) for index in range(EXAMPLES)])
    with twice_differentiable(model.module):
        rows = [row for method in given.methods for row in measure(model, items, method, given.steps, given.rounds)]
        rows += alone(model, items, given.methods[0], given.rounds)
    show(f"Attacks on {EXAMPLES} examples, load {before} to {load()}", rows, given.json)
    return judge([limit for row in rows for limit in limits(row)])


def limits(row: dict[str, Any]) -> list[Limit]:
    if row["by"] == "one at a time":
        return [Limit("together, to one at a time", 1 / row["ratio"], 1, "times")]
    if row["by"] != "exegesis":
        return []
    return [
        Limit(f"{row['what']}, to bare", row["ratio"], MOST, "times"),
        Limit(f"{row['what']}, memory", row["MB"], runtime.memory_budget() / 1e6, "MB"),
    ]


if __name__ == "__main__":
    sys.exit(main())
