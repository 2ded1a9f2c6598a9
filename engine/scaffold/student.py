"""A student, the batches that it learns from, and the pre-trained base that it starts from."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float

from engine.errors import ExegesisError, UsageError
from engine.models import catalog, loading, weight_files
from engine.models.attention import capture_attention
from engine.models.classifier import AnyClassifier, EncodedInput
from engine.scaffold.attention_explainer import mean_logits
from engine.training.image_training import load_vit
from engine.vision.classifier import ImageClassifier


@dataclass(frozen=True, eq=False)
class StudentBatch:
    """A padded batch on the device.

    `features`: the keys that may carry an explanation (no special tokens, no padding).
    `heads`: `s^h` of the teacher where its explainer is learned; `maps`: its explanations where it is static.
    """

    rows: Any
    visible: Bool[torch.Tensor, "batch key"]
    features: Bool[torch.Tensor, "batch key"]
    teacher_logits: Float[torch.Tensor, "batch label"]
    heads: Float[torch.Tensor, "batch head key"] | None = None
    maps: Float[torch.Tensor, "batch key"] | None = None


@dataclass(frozen=True, eq=False)
class TeachingExamples:
    """Examples of a split with the teacher's outputs: arrays on the CPU, one an example, as long as it is."""

    examples: Sequence[EncodedInput]
    teacher_logits: Float[np.ndarray, "example label"]
    heads: Sequence[Float[np.ndarray, "head _"]] | None = None
    maps: Sequence[Float[np.ndarray, "_"]] | None = None

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def lengths(self) -> list[int]:
        return [len(example) for example in self.examples]

    def batch(self, indices: Sequence[int], model: AnyClassifier) -> StudentBatch:
        """The examples as a batch for `model`, in its precision."""
        chosen = [self.examples[i] for i in indices]
        rows = model.collate(chosen)
        width = max(len(example) for example in chosen)

        def padded(arrays: Sequence[np.ndarray], dtype: torch.dtype) -> torch.Tensor:
            stacked = np.zeros((len(arrays), *arrays[0].shape[:-1], width), dtype=arrays[0].dtype)
            for row, array in zip(stacked, arrays, strict=True):
                row[..., : array.shape[-1]] = array
            return torch.from_numpy(stacked).to(device=model.device, dtype=dtype)

        return StudentBatch(
            rows,
            padded([np.ones(len(example), dtype=bool) for example in chosen], torch.bool),
            padded([~example.special for example in chosen], torch.bool),
            torch.from_numpy(self.teacher_logits[list(indices)]).to(device=model.device, dtype=model.dtype),
            None if self.heads is None else padded([self.heads[i] for i in indices], model.dtype),
            None if self.maps is None else padded([self.maps[i] for i in indices], model.dtype),
        )


@dataclass(frozen=True, eq=False)
class StudentOutput:
    """A student's logits on a batch, and `s^h` of each head where it explains too."""

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
        weight = torch.randn(outputs, config.hidden_size, generator=generator) * 0.02
        self.head = torch.nn.Linear(config.hidden_size, outputs, device=base.device, dtype=base.dtype)
        with torch.no_grad():
            self.head.weight.copy_(weight)
            self.head.bias.zero_()
        for name in unused_parts(self.base):
            module.get_submodule(name).requires_grad_(False)
        self.eval()
        self.learning = {name: weight for name, weight in self.named_parameters() if weight.requires_grad}
        """The weights θ that are trained, by name, in one order."""

    def forward(self, batch: StudentBatch, explain: bool = False) -> StudentOutput:
        """Logits of a batch; `explain`: its heads too."""
        if not explain:
            return StudentOutput(self._logits(batch, self.base.hidden_states(batch.rows)), None)
        with capture_attention(self.module) as recorder:
            states = self.base.hidden_states(batch.rows)
        return StudentOutput(self._logits(batch, states), self._heads(recorder.logits, batch.visible))

    def heads(self, batch: StudentBatch) -> Float[torch.Tensor, "batch head key"]:
        """`s^h` alone: the pass ends with the last layer's attention."""
        with capture_attention(self.module, max_layers=len(self.base.blocks)) as recorder:
            self.base.hidden(batch.rows)
        return self._heads(recorder.logits, batch.visible)

    def _heads(self, logits: list[torch.Tensor], visible: Bool[torch.Tensor, "batch key"]) -> torch.Tensor:
        return mean_logits(logits[-1:] if self.last_only else logits, visible, self.base.adapter.causal)

    def _logits(self, batch: StudentBatch, states: list[torch.Tensor]) -> Float[torch.Tensor, "batch label"]:
        shares = torch.softmax(self.mix, dim=0)
        mixed = sum(share * state for share, state in zip(shares, states, strict=True))
        visible = batch.visible[..., None].to(self.mix.dtype)
        return self.head((mixed * visible).sum(1) / visible.sum(1))


def unused_parts(base: AnyClassifier) -> tuple[str, ...]:
    """The parts of the base's own head: a student has another."""
    adapter = base.adapter
    return tuple(getattr(adapter, "heads", None) or adapter.head)


def head_count(model: AnyClassifier) -> int:
    """Attention heads of all layers."""
    config: Any = model.module.config
    return int(config.num_hidden_layers * config.num_attention_heads)


def load_base(base: str, teacher: AnyClassifier) -> AnyClassifier:
    """The base as a body of the teacher's kind, with its tokenizer or transform, in its precision and on its device.

    Errors: another architecture or shape than the teacher's.
    """
    folder = catalog.locate_base(base)
    config = catalog.read_base_config(folder)
    wanted: Any = teacher.module.config
    got = config.get("model_type")
    if got != wanted.model_type:
        raise UsageError(
            f"base: must be of type {wanted.model_type!r}, as the teacher {teacher.id}, got {base} of type {got!r}. "
            "Choose the teacher's own base."
        )
    module = _module(folder, teacher).to(device=teacher.device, dtype=teacher.dtype).eval().requires_grad_(False)
    _check_shape(base, module.config, teacher)
    return replace(teacher, module=module, memo={}, id=base, revision=weight_files.weights_sha256(folder)[:16])  # type: ignore[type-var]


def _module(folder: Path, teacher: AnyClassifier) -> torch.nn.Module:
    if isinstance(teacher, ImageClassifier):
        return load_vit(folder, teacher.labels)
    return loading.load_base(folder, teacher.labels, teacher.regression)


def _check_shape(base: str, config: Any, teacher: AnyClassifier) -> None:
    wanted: Any = teacher.module.config
    for name in ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "image_size", "patch_size"):
        if getattr(config, name, None) != getattr(wanted, name, None):
            raise ExegesisError(
                f"base: must have {name} {getattr(wanted, name, None)}, as the teacher {teacher.id}, got {base} with "
                f"{getattr(config, name, None)}. Choose the teacher's own base."
            )
