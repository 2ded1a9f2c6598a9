"""The input of an explainer, a batch of examples on a model, and its output."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int

from engine.lazy import torch
from engine.models.causal import CausalModel, EncodedPrompt, reduce_logits, select_logits
from engine.models.classifier import EMBEDDING, AnyClassifier, EncodedInput, as_float64, select_class
from engine.params import LOGIT
from engine.passes import shares_prefixes
from engine.removal import coalition_values, target_values, token_masks
from engine.result import Check, Prediction
from engine.runtime import in_chunks, memory_budget, rows_at_once

T = TypeVar("T")
ATTENTION_REMEMBERED = 2
ATTENTION_SHARE = 0.25
"""Share of the memory budget; attention that takes more is not memoized."""


@dataclass(frozen=True, eq=False)
class TaskItem:
    """One example with the class to explain and its seed."""

    encoded: EncodedInput
    prediction: Prediction
    target: int
    seed: int

    def generator(self, *part: int) -> np.random.Generator:
        """Return a generator that depends on the seed, the input and the part of the work, not on the batch."""
        return np.random.default_rng([self.seed, *self.encoded.ids.tolist(), *part])


@dataclass(frozen=True, eq=False)
class Attribution:
    """One score per position (special tokens included), with the method's own check and cost."""

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
    """Factors of the heads' outputs; None if no head is scaled."""


Reduce = Callable[[Int[np.ndarray, "row"], "torch.Tensor"], None]
"""Takes rows, in ascending order, and their gradients `[row seq width]`."""


@dataclass(frozen=True, eq=False)
class Task:
    """A batch of examples that share model, method and parameters."""

    model: AnyClassifier
    items: Sequence[TaskItem]
    explain_with: Callable[[str], list[Attribution]] | None = None
    """Runs another method at its defaults on the same items, for ensembles. Cached explanations are reused."""

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
        """Return m of item `index[row]` with all positions outside `keep[row]` removed."""
        return coalition_values(self.model, self.examples, self.targets, index, keep, operator)

    def masked_values(self, kept: Sequence[Bool[np.ndarray, "_ _"]], operator: str) -> list[np.ndarray]:
        """Return m for each item's own feature masks. All items share passes."""
        width = max(len(e) for e in self.examples)
        keep = np.concatenate([token_masks(e, k, width) for e, k in zip(self.examples, kept, strict=True)])
        index = np.repeat(np.arange(len(kept)), [len(k) for k in kept])
        values = self.values(index, keep, operator)
        return np.split(values, np.cumsum([len(k) for k in kept])[:-1])

    def gradients(
        self,
        index: Int[np.ndarray, "row"],
        points: Callable[[Int[np.ndarray, "_"], Any], Float[torch.Tensor, "_ seq width"]],
        reduce: Reduce,
        quantity: str = LOGIT,
        place: str = EMBEDDING,
        passes: Sequence[Sequence[int]] | None = None,
    ) -> Float[np.ndarray, "row"]:
        """Compute the gradients of a quantity of each row's target at the given points; `reduce` takes them in chunks.

        The points are embeddings, or the model's values at another `place`. The quantity is the logit f or the
        probability m. `passes`: groups of rows that share one forward pass, the row with the longest input first, whose
        points are read; by default each row has its own pass. Backward passes are batched. Returns the value of the
        quantity of each row.
        """
        model = self.model
        given = [[row] for row in range(len(index))] if passes is None else passes

        def compute(turns: Int[np.ndarray, "turn pass"]) -> tuple[np.ndarray, np.ndarray]:
            batch = self.batch(index[turns[0]])
            point = points(turns[0], batch).detach().requires_grad_()
            read = self.read_targets(len(turns) > 1, batch, model.embed_points(point, place), quantity != LOGIT)
            logits, values, slopes, sizes = [], [], [], []
            for rows in turns:
                items = index[rows]
                targets = [self.items[i].target for i in items]
                logits.append(read(items, targets))
                value, slope, size = _slopes(model, logits[-1], targets, quantity)
                values.append(as_float64(value))
                slopes.append(slope)
                if size is not None:
                    sizes.append(size[..., None])
            order = np.concatenate(turns)
            if len(turns) == 1:
                (unit,) = torch.autograd.grad(logits, point, slopes)
                reduce(order, unit * sizes[0] if sizes else unit)  # last: a chunk that runs out of memory is repeated
            else:
                own = torch.eye(len(turns), dtype=slopes[0].dtype, device=model.device)
                batched = [torch.tensordot(one, slope, dims=0) for one, slope in zip(own, slopes, strict=True)]
                (units,) = torch.autograd.grad(logits, point, batched, is_grads_batched=True)
                every = (units * torch.stack(sizes) if sizes else units).flatten(0, 1)
                rising = np.argsort(order)
                reduce(order[rising], every[torch.from_numpy(rising).to(model.device)])
            return order, np.concatenate(values)

        parts = self.in_shared_passes(compute, given)
        values = np.empty(len(index))
        values[np.concatenate([rows for rows, _ in parts])] = np.concatenate([own for _, own in parts])
        return values

    def read_targets(
        self, shared: bool, batch: Any, embeds: Float[torch.Tensor, "row seq d_model"], every_class: bool = False
    ) -> Callable[[Int[np.ndarray, "row"], Sequence[int]], torch.Tensor]:
        """Return a function that reads the logit of each row's target, or of `every_class`, from one forward pass.

        The function takes an item and its target for each row. `shared`: whether a row has several items, whose inputs
        are prefixes of it.
        """
        model = self.model
        if shared and isinstance(model, CausalModel):
            hidden = model.hidden(batch, embeds)

            def read(items: Int[np.ndarray, "row"], targets: Sequence[int]) -> torch.Tensor:
                own = self.batch(items)
                following = model.next_logits_within(hidden, own)
                return (
                    reduce_logits(following, own.prompts)
                    if every_class
                    else select_logits(following, own.prompts, targets)
                )

            return read
        if not (shared or every_class):
            return lambda _, targets: model.target_logits(batch, targets, embeds)
        logits = model.logits(batch, embeds)
        return lambda _, targets: logits if every_class else select_class(logits, targets)

    def shared_passes(self, prefixes: bool = True) -> list[list[int]]:
        """Return groups of items that can share a forward pass, in each group the one with the longest input first.

        Items of a group have the same input. `prefixes`: whether inputs of a causal model may also be prefixes of the
        longest one.
        """
        if len(self.items) == 1:
            return [[0]]
        prefixes = prefixes and isinstance(self.model, CausalModel) and shares_prefixes(self.model)
        groups: list[list[int]] = []
        named: dict[Any, list[int]] = {}
        for item in sorted(range(len(self.items)), key=lambda item: -len(self.examples[item])):
            example = self.examples[item]
            if prefixes and type(example) is EncodedPrompt:
                group = next((one for one in groups if _begins(example, self.examples[one[0]])), None)
            elif type(example) is EncodedPrompt:
                group = named.setdefault((example.ids.tobytes(), example.special.tobytes()), [])
            else:
                group = named.setdefault((type(example), example.key), [])
            if not group:
                group = [] if group is None else group
                groups.append(group)
            group.append(item)
        return sorted(groups, key=lambda group: (len(group), min(group)))

    def in_shared_passes(
        self,
        compute: Callable[[Int[np.ndarray, "turn pass"]], T],
        passes: Sequence[Sequence[int]],
        attention: bool = False,
    ) -> list[T]:
        """Run `compute` on as many passes at a time as fit into memory with the gradients of all their rows.

        `compute` takes the rows of each pass as a column. Passes with equally many rows are batched, and one with too
        many rows is split. `attention`: whether the attention of all layers must fit as well.
        """
        most = rows_at_once(self.model, max(map(len, self.examples)), gradients=True, attention=attention)
        fitting = sorted((own[at : at + most] for own in passes for at in range(0, len(own), most)), key=len)
        counts = list(map(len, fitting))

        def fit(first: int) -> int:
            count = counts[first]
            return min(bisect.bisect_right(counts, count) - first, max(1, most // count))

        return in_chunks(lambda part: compute(np.array(fitting[part]).T), len(fitting), fit)

    def by_parts(self, compute: Callable[[Task], list[T]], attention: bool = False) -> list[T]:
        """Run `compute` on parts of the items that fit into memory with their gradients, and join the results.

        `attention`: whether the attention of all layers must fit as well.
        """
        longest = max(len(e) for e in self.examples)
        size = rows_at_once(self.model, longest, gradients=True, attention=attention)
        parts = in_chunks(lambda rows: compute(Task(self.model, self.items[rows])), len(self.items), size)
        return [result for part in parts for result in part]

    def attention(self, item: TaskItem) -> Captured:
        """Return the attention of one example. Memoized for the last examples: all attention methods share one pass."""
        memo = self.model.memo.setdefault("attention", {})
        key = item.encoded.key
        if key not in memo:
            (captured,) = in_chunks(lambda _: self._captured(item, memo), 1, 1)
            if captured.logits.nbytes + captured.probabilities.nbytes > ATTENTION_SHARE * memory_budget():
                return captured
            memo[key] = captured
        return memo[key]

    def _captured(self, item: TaskItem, memo: dict[bytes, Captured]) -> Captured:
        while len(memo) >= ATTENTION_REMEMBERED:  # room is made first, in the chunk: the device is not lent here
            memo.pop(next(iter(memo)))
        with torch.no_grad():
            _, recorder = self.model.logits_with_attention(self.model.collate([item.encoded]))
        scales = [scale for scale in recorder.scales if scale is not None]
        return Captured(
            torch.cat(recorder.logits), torch.cat(recorder.probabilities), torch.cat(scales) if scales else None
        )


def _begins(shorter: EncodedInput, longer: EncodedInput) -> bool:
    """Whether a pass over the longer prompt reads the shorter one too."""
    count = len(shorter)
    same_ids = type(longer) is EncodedPrompt and np.array_equal(longer.ids[:count], shorter.ids)
    return same_ids and np.array_equal(longer.special[:count], shorter.special)


def _slopes(
    model: AnyClassifier, logits: torch.Tensor, targets: Sequence[int], quantity: str
) -> tuple[Float[torch.Tensor, "batch"], torch.Tensor, Float[torch.Tensor, "batch 1"] | None]:
    """Return the quantity of each row's target, and its derivative by the logits as a slope and a factor (None for 1).

    The logits are those of the targets if the quantity is the logit, else of every class. Near certainty the derivative
    of a probability is too small for half precision, in which slopes are backpropagated; hence the factor.
    """
    if quantity == LOGIT:
        return logits.detach(), torch.ones_like(logits), None
    wide = logits.detach().double().requires_grad_()
    value = target_values(model, wide, torch.tensor(targets, device=wide.device))
    (slope,) = torch.autograd.grad(value.sum(), wide)
    size = slope.abs().amax(1, keepdim=True).clamp(min=torch.finfo(slope.dtype).tiny)
    return value.detach(), (slope / size).to(logits.dtype), size
