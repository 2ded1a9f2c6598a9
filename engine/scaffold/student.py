"""A student: the teacher's architecture from its pre-trained base, a scalar mix of all layers, and a linear head."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float

from engine.models.attention import capture_attention
from engine.models.classifier import AnyClassifier
from engine.scaffold.explaining import mean_logits
from engine.scaffold.lessons import Lesson


@dataclass(frozen=True, eq=False)
class Said:
    """What a student says of a batch: logits, and of each head `s^h` where it was asked to explain."""

    logits: Float[torch.Tensor, "batch label"]
    heads: Float[torch.Tensor, "batch head key"] | None


class Student(torch.nn.Module):
    """Trainable in place. Dropout is off: what is learned depends on data and seed alone.

    The seed draws the head; the mix starts at equal shares of all layers (zeros before its softmax).
    """

    def __init__(self, base: AnyClassifier, outputs: int, seed: int, last_only: bool = False) -> None:
        super().__init__()
        module = copy.deepcopy(base.module).requires_grad_(True)
        self.module = module
        self.base: AnyClassifier = replace(base, module=module, memo={})  # type: ignore[type-var]
        self.last_only = last_only
        config: Any = module.config
        self.mix = torch.nn.Parameter(torch.zeros(len(self.base.blocks) + 1, dtype=base.dtype, device=base.device))
        generator = torch.Generator().manual_seed(seed)
        width = config.hidden_size
        weight = torch.randn(outputs, width, generator=generator) * 0.02
        self.head = torch.nn.Linear(width, outputs, device=base.device, dtype=base.dtype)
        with torch.no_grad():
            self.head.weight.copy_(weight)
            self.head.bias.zero_()
        for name in unused_parts(self.base):
            module.get_submodule(name).requires_grad_(False)
        self.eval()
        self.learning = {name: weight for name, weight in self.named_parameters() if weight.requires_grad}
        """The weights θ that are taught, by name, in one order."""

    def forward(self, lesson: Lesson, explain: bool = False) -> Said:
        """Logits of a batch; `explain`: its heads too."""
        if not explain:
            return Said(self._answer(lesson, self.base.hidden_states(lesson.rows)), None)
        with capture_attention(self.module) as recorder:
            states = self.base.hidden_states(lesson.rows)
        return Said(self._answer(lesson, states), self._heads(recorder.logits, lesson.visible))

    def heads(self, lesson: Lesson) -> Float[torch.Tensor, "batch head key"]:
        """`s^h` alone: the pass ends with the last layer's attention."""
        with capture_attention(self.module, max_layers=len(self.base.blocks)) as recorder:
            self.base.hidden(lesson.rows)
        return self._heads(recorder.logits, lesson.visible)

    def _heads(self, logits: list[torch.Tensor], visible: Bool[torch.Tensor, "batch key"]) -> torch.Tensor:
        return mean_logits(logits[-1:] if self.last_only else logits, visible, self.base.adapter.causal)

    def _answer(self, lesson: Lesson, states: list[torch.Tensor]) -> Float[torch.Tensor, "batch label"]:
        shares = torch.softmax(self.mix, dim=0)
        mixed = sum(share * state for share, state in zip(shares, states, strict=True))
        seen = lesson.visible[..., None].to(self.mix.dtype)
        return self.head((mixed * seen).sum(1) / seen.sum(1))


def unused_parts(base: AnyClassifier) -> tuple[str, ...]:
    """What the base's own head is made of: a student has its own."""
    adapter = base.adapter
    return tuple(getattr(adapter, "heads", None) or adapter.head)


def head_count(model: AnyClassifier) -> int:
    """Attention heads of all layers."""
    config: Any = model.module.config
    return int(config.num_hidden_layers * config.num_attention_heads)
