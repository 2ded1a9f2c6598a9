"""A cascade of randomized blocks against the bare model work."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Any

import torch

from benchmarks.harness import Limit, Measurement, PairedClocks, Table, benchmark, empty_home
from engine import runtime
from engine.errors import Cancelled
from engine.experiments.run import carry_out, sample_of
from engine.models.loading import load_model
from engine.models.text_classifier import EncodedText, TextBatch, TextClassifier
from engine.progress import CancelToken
from engine.randomization.chunks import ModelWork, Setting
from engine.randomization.model_copy import copy_of, reinitialize, replace_weights, weights_of
from engine.randomization.plan import THESIS_METHODS, USUAL_PARAMS, RandomizationPlan
from engine.request import Example

LIMIT = 1.3
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
        table = measure(plan, blocks)
    return Measurement({f"Cascading randomization of {blocks} blocks": table}, limits(table[-1]))


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


def measure(plan: RandomizationPlan, blocks: int) -> Table:
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


def limits(row: dict[str, Any]) -> list[Limit]:
    budget = runtime.memory_budget() / 1e6
    return [
        Limit("cascading randomization, to bare", row["ratio"], LIMIT),
        Limit("cascading randomization, memory", row["more MB"], budget, "MB"),
    ]
