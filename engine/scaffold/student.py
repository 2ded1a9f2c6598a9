"""A student with its explainer, the batches that it learns from, and the pre-trained base that it starts from.

The parameterized attention explainer (SMaT, section 4) is differentiable and works on padded batches. Its head weights
λ are projections of coefficients φ (SMaT, section 6), written in plain tensor operations: the functions of the `entmax`
package have no second derivatives under `torch.func`, or NaN at zeros.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float

from engine.errors import ExegesisError, UsageError, unknown
from engine.models import catalog, checkpoint_files, loading
from engine.models.attention import capture_attention
from engine.models.classifier import AnyClassifier, EncodedInput
from engine.training.image_training import load_vit
from engine.vision.classifier import ImageClassifier


def mean_logits(
    logits: Sequence[Float[torch.Tensor, "batch head query key"]],
    visible: Bool[torch.Tensor, "batch key"],
    causal: bool,
) -> Float[torch.Tensor, "batch head_of_all key"]:
    """Return the scores `s^h` of all heads, first layer first: the mean attention logit of each key (eq. 11).

    The mean is over the queries that may attend to the key: no padding and, in a causal model, none before the key.
    """
    if causal:
        may = visible[:, :, None] & visible[:, None, :]
        shares = (may & may.new_ones(may.shape[-2:]).tril()).to(logits[0].dtype)
        shares = shares / shares.sum(1, keepdim=True).clamp(min=1)
        return torch.cat([(layer * shares[:, None]).sum(2) for layer in logits], dim=1)
    # The same queries attend to every key, so a product with one row suffices, which is several times faster.
    keys = visible.to(logits[0].dtype)
    shares = (keys / keys.sum(1, keepdim=True).clamp(min=1))[:, None, None]
    return torch.cat([(shares @ layer)[:, :, 0] for layer in logits], dim=1) * keys[:, None]


def log_explanation(
    weights: Float[torch.Tensor, "head"],
    heads: Float[torch.Tensor, "batch head key"],
    features: Bool[torch.Tensor, "batch key"],
) -> Float[torch.Tensor, "batch key"]:
    """Return `log softmax(sum_h λ_h s^h)` over the features, in nats; 0 at special tokens and padding."""
    scores = (weights[None, :, None] * heads).sum(1)
    logs = torch.log_softmax(scores.masked_fill(~features, -torch.inf), dim=-1)
    return logs.masked_fill(~features, 0.0)


def explanation(
    weights: Float[torch.Tensor, "head"],
    heads: Float[torch.Tensor, "batch head key"],
    features: Bool[torch.Tensor, "batch key"],
) -> Float[torch.Tensor, "batch key"]:
    """Return `E(T, x)` of eq. 11: a distribution over the features."""
    return log_explanation(weights, heads, features).exp() * features


def divergence(
    teacher: Float[torch.Tensor, "batch key"], student: Float[torch.Tensor, "batch key"]
) -> Float[torch.Tensor, ""]:
    """Return the mean of `KL(E_T || E_S)` over the batch, in nats. `student`: log-probabilities, 0 at non-features."""
    return (torch.xlogy(teacher, teacher) - teacher * student).sum(-1).mean()


Projection = Callable[[torch.Tensor], torch.Tensor]


def sparsemax(phi: Float[torch.Tensor, "*batch head"]) -> Float[torch.Tensor, "*batch head"]:
    """Sparsemax, the nearest point of the simplex, `argmin_p ||p - φ||²` (Martins and Astudillo, 2016): sparse."""
    phi = _shift_to_zero(phi)
    with torch.no_grad():
        ordered = phi.sort(dim=-1, descending=True).values
        places = torch.arange(1, phi.shape[-1] + 1, device=phi.device, dtype=phi.dtype)
        count = (1 + places * ordered > ordered.cumsum(-1)).sum(-1, keepdim=True)
        active = phi >= ordered.gather(-1, count - 1)
    # The threshold is smooth on the active heads; it is computed again here so that gradients flow through it.
    threshold = ((phi * active).sum(-1, keepdim=True) - 1) / active.sum(-1, keepdim=True)
    return torch.relu(phi - threshold)


def entmax15(phi: Float[torch.Tensor, "*batch head"]) -> Float[torch.Tensor, "*batch head"]:
    """1.5-entmax (Peters et al., 2019, algorithm 2): sparse, but less so than sparsemax."""
    half = _shift_to_zero(phi) / 2
    with torch.no_grad():
        ordered = half.sort(dim=-1, descending=True).values
        places = torch.arange(1, phi.shape[-1] + 1, device=phi.device, dtype=phi.dtype)
        mean = ordered.cumsum(-1) / places
        spread = (ordered**2).cumsum(-1) - places * mean**2
        thresholds = mean - ((1 - spread) / places).clamp(min=0).sqrt()
        count = (thresholds <= ordered).sum(-1, keepdim=True)
        active = half >= ordered.gather(-1, count - 1)
    size = active.sum(-1, keepdim=True)
    mean = (half * active).sum(-1, keepdim=True) / size
    spread = (((half - mean) * active) ** 2).sum(-1, keepdim=True)
    return torch.relu(half - (mean - ((1 - spread) / size).sqrt())) ** 2


def softmax(phi: Float[torch.Tensor, "*batch head"]) -> Float[torch.Tensor, "*batch head"]:
    """Softmax, `exp(φ) / sum exp(φ)`: no weight is 0."""
    return torch.softmax(phi, dim=-1)


def identity(phi: Float[torch.Tensor, "*batch head"]) -> Float[torch.Tensor, "*batch head"]:
    """No normalization: the weights are the coefficients, with any sign and sum."""
    return phi


def _shift_to_zero(phi: Float[torch.Tensor, "*batch head"]) -> Float[torch.Tensor, "*batch head"]:
    """Shift the maximum to zero. This does not change the projections and improves their precision."""
    return phi - phi.detach().amax(-1, keepdim=True)


PROJECTIONS: Mapping[str, Projection] = {
    "sparsemax": sparsemax,
    "softmax": softmax,
    "entmax15": entmax15,
    "none": identity,
}


def projection(name: str) -> Projection:
    """Return the projection with this name. Errors list the known ones."""
    if name not in PROJECTIONS:
        raise unknown("normalisation", name, PROJECTIONS)
    return PROJECTIONS[name]


@dataclass(frozen=True, eq=False)
class StudentBatch:
    """A padded batch on the device.

    `features`: mask of the keys that explanations cover (no special tokens, no padding). `heads`: the teacher's `s^h`
    if the explainer is learned. `maps`: the teacher's explanations if the explainer is static.
    """

    rows: Any
    visible: Bool[torch.Tensor, "batch key"]
    features: Bool[torch.Tensor, "batch key"]
    teacher_logits: Float[torch.Tensor, "batch label"]
    heads: Float[torch.Tensor, "batch head key"] | None = None
    maps: Float[torch.Tensor, "batch key"] | None = None


@dataclass(frozen=True, eq=False)
class TeachingExamples:
    """Examples of a split with the teacher's outputs: one array on the CPU per example, without padding."""

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
        """Return the examples at `indices` as a batch for `model`, in its precision."""
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
    """A student's logits on a batch, and the scores `s^h` of each head if explanations were requested."""

    logits: Float[torch.Tensor, "batch label"]
    heads: Float[torch.Tensor, "batch head key"] | None


class Student(torch.nn.Module):
    """A student model, trained in place. Dropout is off, so that the result depends only on data and seed.

    The head is initialized by the seed. The layer mix starts with equal weights for all layers (zeros before softmax).
    `last_only`: explain with the heads of the last layer only.
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
        """The trainable weights θ by name, in a fixed order."""

    def forward(self, batch: StudentBatch, explain: bool = False) -> StudentOutput:
        """Return the logits of a batch, and with `explain` also its head scores."""
        if not explain:
            return StudentOutput(self._logits(batch, self.base.hidden_states(batch.rows)), None)
        with capture_attention(self.module) as recorder:
            states = self.base.hidden_states(batch.rows)
        return StudentOutput(self._logits(batch, states), self._heads(recorder.logits, batch.visible))

    def heads(self, batch: StudentBatch) -> Float[torch.Tensor, "batch head key"]:
        """Return only the head scores `s^h`; the forward pass ends at the last layer's attention."""
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
    """Return the module names of the base's own head, which a student does not use."""
    adapter = base.adapter
    return tuple(getattr(adapter, "heads", None) or adapter.head)


def head_count(model: AnyClassifier) -> int:
    """Return the number of attention heads in all layers."""
    config: Any = model.module.config
    return int(config.num_hidden_layers * config.num_attention_heads)


def load_base(base: str, teacher: AnyClassifier) -> AnyClassifier:
    """Load the base with the teacher's tokenizer or transform, precision and device.

    Errors: its architecture or shape differs from the teacher's.
    """
    folder = catalog.locate_base(base)
    config = checkpoint_files.read_base_config(folder)
    wanted: Any = teacher.module.config
    got = config.get("model_type")
    if got != wanted.model_type:
        raise UsageError(
            f"base: must be of type {wanted.model_type!r}, as the teacher {teacher.id}, got {base} of type {got!r}. "
            "Choose the teacher's own base."
        )
    module = _module(folder, teacher).to(device=teacher.device, dtype=teacher.dtype).eval().requires_grad_(False)
    _check_shape(base, module.config, teacher)
    return replace(teacher, module=module, memo={}, id=base, revision=checkpoint_files.weights_sha256(folder)[:16])  # type: ignore[type-var]


def _module(folder: Path, teacher: AnyClassifier) -> torch.nn.Module:
    if isinstance(teacher, ImageClassifier):
        if teacher.adapter.backbone != "vit":
            raise UsageError(
                f"base: students of pictures are ViTs, but the teacher {teacher.id} is a {teacher.adapter.family} "
                "model. Choose a ViT as the teacher."
            )
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
