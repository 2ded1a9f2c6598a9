"""Experiments against their bare passes: an attack of 16 examples x 500 steps, and a cascade of randomized blocks."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from benchmarks.harness import Limit, Measurement, PairedClocks, Table, benchmark, empty_home, ratio_to, time_in_turn
from engine import runtime
from engine.attacks.attack import EXAMPLES_AT_ONCE, encode_items
from engine.attacks.optimizer import TopKOptimizer, group_by_length
from engine.attacks.plan import PATH_STEPS, AttackParams
from engine.attacks.saliency import SaliencyMapper, resolve_params
from engine.data.sources import load_source
from engine.errors import Cancelled
from engine.experiments.run import carry_out, sample_of
from engine.models.attention import twice_differentiable
from engine.models.loading import load_model
from engine.models.text_classifier import EncodedText, TextBatch, TextClassifier
from engine.progress import CancelToken, Report, reporting
from engine.randomization.chunks import ModelWork, Setting
from engine.randomization.model_copy import copy_of, reinitialize, replace_weights, weights_of
from engine.randomization.plan import THESIS_METHODS, USUAL_PARAMS, RandomizationPlan
from engine.request import Example
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
    return Measurement(
        {f"Attacks on {examples} examples": table}, [limit for row in table for limit in attack_limits(row)]
    )


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


def attack_limits(row: dict[str, Any]) -> list[Limit]:
    if row["by"] == "one at a time":
        return [Limit("together, to one at a time", 1 / row["ratio"], 1)]
    if row["by"] != "exegesis":
        return []
    return [
        Limit(f"{row['what']}, to bare", row["ratio"], MOST),
        Limit(f"{row['what']}, memory", row["more MB"], runtime.memory_budget() / 1e6, "MB"),
    ]


STEPS = int(str(USUAL_PARAMS["integrated_gradients"]["n_steps"]))


@benchmark(
    model="t5-deep-marked",
    dataset="reviews",
    examples=50,
    blocks={"type": int, "default": 12, "help": "of the model's, from the last one down"},
)
def randomization(model: str, dataset: str, examples: int, blocks: int) -> Measurement:
    """A cascade against the bare model work.

    Five methods on 50 texts at every block of a model of twelve, without the cache's help. Bare: the plain transformers
    module with the same randomized weights on the same texts in the same batches, all made beforehand. At each stage:
    one pass forward, one forward and back for both gradients, one an evaluation of integrated gradients, and one
    forward that keeps the attention for both methods that read it. They take turns chunk by chunk of texts, the bare
    passes first.
    """
    plan = RandomizationPlan((model,), dataset, THESIS_METHODS, examples, modes=("cascading",), seeds=1)
    with empty_home():
        table = measure_cascade(plan, blocks)
    return Measurement({f"Cascading randomization of {blocks} blocks": table}, randomization_limits(table[-1]))


class CascadePasses:
    """The passes that each stage needs on each chunk of texts, on a copy of the model."""

    def __init__(self, model: TextClassifier, work: ModelWork) -> None:
        self.loaded, self.names, self.source = model, weights_of(model), work.sample.source
        self.model = dataclasses.replace(model, module=copy_of(model.module), memo={})
        self.steps = [(setting, chunk) for setting in work.settings() for chunk in work.batches]

    def time(self, step: int, clocks: PairedClocks) -> None:
        setting, indices = self.steps[step]
        texts = [self._encoded(index) for index in indices]
        [once], path = self._batches(texts, len(texts)), [text for text in texts for _ in range(STEPS)]
        size = runtime.rows_at_once(self.model, max(map(len, texts)), gradients=True)
        backward, alone = [once, *self._batches(path, size)], self._batches(texts, 1)
        with replace_weights(self.model.module, self._fresh(setting)):
            clocks.time(lambda: self.passes(once, backward, alone))

    def passes(self, once: TextBatch, backward: Sequence[TextBatch], alone: Sequence[TextBatch]) -> None:
        with torch.inference_mode():
            self._logits(once, self.model.embed(once))
        for batch in backward:
            embeds = self.model.embed(batch).detach().requires_grad_()
            torch.autograd.grad(self._logits(batch, embeds)[:, 0].sum(), embeds)
        with torch.inference_mode():
            for batch in alone:
                self.model.logits_with_attention(batch)

    def _logits(self, batch: TextBatch, embeds: torch.Tensor) -> torch.Tensor:
        mask = None if batch.whole else batch.visible
        logits: torch.Tensor = self.model.module(inputs_embeds=embeds, attention_mask=mask).logits
        return logits

    def _batches(self, texts: Sequence[EncodedText], size: int) -> list[TextBatch]:
        return [self.model.collate(texts[at : at + size]) for at in range(0, len(texts), size)]

    def _fresh(self, setting: Setting) -> dict[str, torch.Tensor]:
        parts, seed = setting
        each = (reinitialize(self.loaded, part, self.names[part], seed) for part in parts)
        return {name: values for weights in each for name, values in weights.items()}

    def _encoded(self, index: int) -> EncodedText:
        example = self.source.read(index).input
        assert isinstance(example, Example)
        return self.model.encode(example)


def measure_cascade(plan: RandomizationPlan, blocks: int) -> Table:
    """Stopped after so many blocks: those that are left cost the same again."""
    [name] = plan.models
    model, work = load_model(name, plan.dtype, runtime.device()), ModelWork(plan, name, sample_of(plan))
    bare, stages, token = CascadePasses(model, work), work.settings()[: 1 + blocks], CancelToken()
    bare.time(0, PairedClocks(model))  # to warm up
    clocks = PairedClocks(model)

    def report(step: int, steps: int, _: str) -> None:
        if step == len(stages) * len(work.batches):
            token.cancel()
        elif step < steps:
            with clocks.paused():
                bare.time(step, clocks)

    with contextlib.suppress(Cancelled):
        carry_out(plan, report, token)
    clocks.stop()
    maps = len(stages) * len(work.sample.indices) * len(plan.methods)
    size = sum(value.nbytes for value in model.module.parameters())
    return [
        {**row, "maps": maps, "maps a second": maps / row["seconds"], "model MB": size / 1e6} for row in clocks.rows()
    ]


def randomization_limits(row: dict[str, Any]) -> list[Limit]:
    budget = runtime.memory_budget() / 1e6
    return [
        Limit("cascading randomization, to bare", row["ratio"], MOST),
        Limit("cascading randomization, memory", row["more MB"], budget, "MB"),
    ]
