"""The input of an explainer, a batch of examples on a model, and its output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int

from engine.lazy import torch
from engine.models.causal import CausalModel
from engine.models.classifier import EMBEDDING, AnyClassifier, EncodedInput, as_float64
from engine.params import LOGIT
from engine.removal import coalition_values, target_values, token_masks
from engine.result import Check, Prediction
from engine.runtime import in_chunks, memory_budget, rows_at_once

T = TypeVar("T")
ATTENTION_REMEMBERED = 2
ATTENTION_SHARE = 0.25
"""Of the memory budget: attention that is larger is not remembered."""


@dataclass(frozen=True, eq=False)
class TaskItem:
    """One example with the class to explain and its seed."""

    encoded: EncodedInput
    prediction: Prediction
    target: int
    seed: int

    def generator(self, *part: int) -> np.random.Generator:
        """Randomness that depends on the seed and the input (and which part of the work), not on the batch."""
        return np.random.default_rng([self.seed, *self.encoded.ids.tolist(), *part])


@dataclass(frozen=True, eq=False)
class Attribution:
    """One score a position (special tokens included), with the method's own check and cost."""

    scores: Float[np.ndarray, "seq"]
    evaluations: int
    check: Check | None = None
    notes: tuple[str, ...] = ()
    extras: dict[str, Any] = field(default_factory=dict)


class Captured(NamedTuple):
    """The attention of one example, in the model's own precision."""

    logits: Float[torch.Tensor, "layer head query key"]
    """Before the softmax: scaled, position bias included, not masked."""
    probabilities: Float[torch.Tensor, "layer head query key"]
    scales: Float[torch.Tensor, "layer head"] | None = None
    """Factors of the heads' outputs; None where none is scaled."""


Reduce = Callable[[slice, "torch.Tensor"], None]
"""Takes the gradients `[row seq width]` of a slice of rows."""


@dataclass(frozen=True, eq=False)
class Task:
    """A batch of examples that share model, method and parameters."""

    model: AnyClassifier
    items: Sequence[TaskItem]
    explain_with: Callable[[str], list[Attribution]] | None = None
    """Runs another method, at its defaults, on the same items: for ensembles. Served from the cache where it can be."""

    @property
    def examples(self) -> list[EncodedInput]:
        return [item.encoded for item in self.items]

    @property
    def targets(self) -> list[int]:
        return [item.target for item in self.items]

    def batch(self, index: Sequence[int] | np.ndarray | None = None) -> Any:
        rows = range(len(self.items)) if index is None else index
        return self.model.collate([self.items[int(i)].encoded for i in rows])

    def values(
        self, index: Int[np.ndarray, "row"], keep: Bool[np.ndarray, "row seq"], operator: str
    ) -> Float[np.ndarray, "row"]:
        """m of item `index[row]` with every position outside `keep[row]` removed."""
        return coalition_values(self.model, self.examples, self.targets, index, keep, operator)

    def masked_values(self, kept: Sequence[Bool[np.ndarray, "_ _"]], operator: str) -> list[np.ndarray]:
        """m for each item's own feature masks, all items in shared passes."""
        width = max(len(e) for e in self.examples)
        keep = np.concatenate([token_masks(e, k, width) for e, k in zip(self.examples, kept, strict=True)])
        index = np.repeat(np.arange(len(kept)), [len(k) for k in kept])
        values = self.values(index, keep, operator)
        return np.split(values, np.cumsum([len(k) for k in kept])[:-1])

    def gradients(
        self,
        index: Int[np.ndarray, "row"],
        points: Callable[[slice, Any], Float[torch.Tensor, "row seq width"]],
        reduce: Reduce,
        quantity: str = LOGIT,
        place: str = EMBEDDING,
    ) -> Float[np.ndarray, "row"]:
        """Gradients of a quantity of each row's target at the given points, handed to `reduce` chunk by chunk.

        The points are embeddings, or what the model has at another place. The quantity is the logit f or the
        probability m. Returns its value for each row.
        """
        model = self.model
        targets = torch.tensor([self.targets[int(i)] for i in index], device=model.device)

        def compute(rows: slice) -> np.ndarray:
            batch = self.batch(index[rows])
            point = points(rows, batch).detach().requires_grad_()
            logits = model.logits(batch, model.embed_points(point, place))
            value, slope, size = _slopes(model, logits, targets[rows], quantity)
            (unit,) = torch.autograd.grad(logits, point, slope)
            values = as_float64(value)
            reduce(rows, unit * size[..., None])  # last: a chunk that runs out of memory is done again
            return values

        longest = max(len(e) for e in self.examples)
        return np.concatenate(in_chunks(compute, len(index), rows_at_once(model, longest, gradients=True)))

    def shared_gradients(
        self,
        index: Int[np.ndarray, "row"],
        reduce: Callable[[np.ndarray, torch.Tensor, torch.Tensor], None],
        quantity: str,
    ) -> None:
        """Gradients at the embeddings of prompts that all begin the longest one, by one pass forward over that.

        All go back together. `reduce` takes items, the embeddings `[1 seq d_model]` and gradients `[item seq d_model]`.
        """
        model = self.model
        assert isinstance(model, CausalModel)
        targets = torch.tensor([self.targets[int(i)] for i in index], device=model.device)

        def compute(rows: slice) -> None:
            batch = self.batch(index[rows])
            lengths = batch.lengths.tolist()
            longest = lengths.index(max(lengths))
            point = model.embed(batch)[longest : longest + 1].detach().requires_grad_()
            logits = model.logits_along(batch, point)
            _, slope, size = _slopes(model, logits, targets[rows], quantity)
            own = torch.eye(len(lengths), device=model.device, dtype=slope.dtype)[..., None] * slope
            (units,) = torch.autograd.grad(logits, point, own, is_grads_batched=True)
            reduce(index[rows], point.detach(), units[:, 0] * size[..., None])

        longest = max(len(self.examples[int(i)]) for i in index)
        in_chunks(compute, len(index), rows_at_once(model, longest, gradients=True))

    def by_parts(self, compute: Callable[[Task], list[T]], attention: bool = False) -> list[T]:
        """Run `compute` on parts of the items that fit into memory with their gradients, and join the results.

        `attention`: whether the attention of all layers must fit as well.
        """
        longest = max(len(e) for e in self.examples)
        size = rows_at_once(self.model, longest, gradients=True, attention=attention)
        parts = in_chunks(lambda rows: compute(Task(self.model, self.items[rows])), len(self.items), size)
        return [result for part in parts for result in part]

    def attention(self, item: TaskItem) -> Captured:
        """Of one example. The last examples' are remembered, so that all attention methods share one pass."""
        memo = self.model.memo.setdefault("attention", {})
        key = item.encoded.key
        if key not in memo:
            (captured,) = in_chunks(lambda _: self._captured(item, memo), 1, 1)
            if captured.logits.nbytes + captured.probabilities.nbytes > ATTENTION_SHARE * memory_budget():
                return captured
            memo[key] = captured
        return memo[key]

    def _captured(self, item: TaskItem, memo: dict[bytes, Captured]) -> Captured:
        while len(memo) >= ATTENTION_REMEMBERED:  # room is made first, and where nobody comes between
            memo.pop(next(iter(memo)))
        with torch.no_grad():
            _, recorder = self.model.logits_with_attention(self.model.collate([item.encoded]))
        scales = [scale for scale in recorder.scales if scale is not None]
        return Captured(
            torch.cat(recorder.logits), torch.cat(recorder.probabilities), torch.cat(scales) if scales else None
        )


def _slopes(
    model: AnyClassifier, logits: Float[torch.Tensor, "batch label"], targets: Int[torch.Tensor, "batch"], quantity: str
) -> tuple[Float[torch.Tensor, "batch"], Float[torch.Tensor, "batch label"], Float[torch.Tensor, "batch 1"]]:
    """The quantity of each row's target, and its derivative by the logits as a slope and the size of that.

    Near certainty a probability's derivative is too small for half precision, in which slopes go back.
    """
    if quantity == LOGIT:
        value = logits.detach().gather(1, targets[:, None])[:, 0]
        slope = torch.zeros_like(logits).scatter(1, targets[:, None], 1)
        return value, slope, slope.new_ones(len(slope), 1)
    wide = logits.detach().double().requires_grad_()
    value = target_values(model, wide, targets)
    (slope,) = torch.autograd.grad(value.sum(), wide)
    size = slope.abs().amax(1, keepdim=True).clamp(min=torch.finfo(slope.dtype).tiny)
    return value.detach(), (slope / size).to(logits.dtype), size
