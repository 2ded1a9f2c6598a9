"""A text classifier that every explainer can use: ids or embeddings in, logits out, exact on padded batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from engine.errors import ExegesisError, unknown
from engine.late import torch
from engine.models.adapters import Adapter
from engine.models.classifier import Classifier
from engine.models.encoding import Batch, Encoded, collate, encode
from engine.operators import OPERATORS
from engine.request import Example


@dataclass(eq=False)
class TextClassifier(Classifier[Example, Encoded, Batch]):
    """A loaded checkpoint, read-only and shared. Call it inside the device's turn."""

    kind: ClassVar[str] = "text"
    id: str
    revision: str
    module: torch.nn.Module
    tokenizer: Any
    adapter: Adapter
    labels: tuple[str, ...]
    regression: bool
    dtype: torch.dtype
    device: torch.device
    notes: tuple[str, ...] = ()
    memo: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def embedding(self) -> torch.nn.Embedding:
        return self.module.get_submodule(self.adapter.embeddings)  # type: ignore[return-value]

    @cached_property
    def blocks(self) -> torch.nn.ModuleList:
        return self.module.get_submodule(self.adapter.blocks)  # type: ignore[return-value]

    @cached_property
    def pad_id(self) -> int:
        for candidate in (self.tokenizer.pad_token_id, self.tokenizer.eos_token_id, 0):
            if candidate is not None:
                return int(candidate)
        raise AssertionError("unreachable: 0 is never None")

    @cached_property
    def mask_id(self) -> int:
        """The token that stands for "removed": mask, else pad, else end of text (section 4 of the design)."""
        mask = self.tokenizer.mask_token_id
        return self.pad_id if mask is None else int(mask)

    @cached_property
    def max_length(self) -> int:
        return self.adapter.longest_input(self.module.config, self.tokenizer)

    def encode(self, example: Example) -> Encoded:
        """Tokenize one example. Errors: those of `encoding.encode`; a token that the model has no embedding for."""
        found = encode(self.tokenizer, example, self.max_length)
        largest = int(found.ids.max(initial=0))
        if largest >= self.embedding.num_embeddings:
            raise ExegesisError(
                f"model {self.id}: its tokenizer gives token {largest}, but it has {self.embedding.num_embeddings} "
                "embeddings. Save the tokenizer that belongs to it beside it."
            )
        return found

    def collate(self, examples: Sequence[Encoded]) -> Batch:
        return collate(examples, self.pad_id, self.device)

    def embed(self, batch: Batch) -> Float[torch.Tensor, "batch seq d_model"]:
        """Word embeddings, before positions and segments are added."""
        return self.embedding(batch.ids)

    def blank(self, batch: Batch, operator: str) -> Float[torch.Tensor, "#batch #seq d_model"]:
        """The word embedding that stands for "removed"."""
        weight = self.embedding.weight
        if operator == "mask":
            return weight[None, None, self.mask_id]
        if operator == "pad":
            return weight[None, None, self.pad_id]
        if operator == "zero":
            return torch.zeros_like(weight[None, None, 0])
        if operator == "mean":
            return self._mean_embedding()[None, None]
        raise unknown("removal", operator, OPERATORS)

    def logits(
        self, batch: Batch, embeds: Float[torch.Tensor, "batch seq d_model"] | None = None
    ) -> Float[torch.Tensor, "batch label"]:
        """Logits of each row as if it were run alone; `embeds` replaces the word embeddings."""
        return _READINGS[self.adapter.reading](self, batch, self._inputs(batch, embeds))

    def hidden(
        self, batch: Batch, embeds: Float[torch.Tensor, "batch seq d_model"] | None = None
    ) -> Float[torch.Tensor, "batch seq d_model"]:
        return self._hidden(self._inputs(batch, embeds))

    def _inputs(self, batch: Batch, embeds: Float[torch.Tensor, "batch seq d_model"] | None) -> dict[str, Any]:
        inputs: dict[str, Any] = {
            "inputs_embeds": self.embed(batch) if embeds is None else embeds,
            "attention_mask": self._attention_mask(batch),
        }
        if self.adapter.position_start is not None:
            inputs["position_ids"] = self._positions(batch)
        if self.adapter.token_types:
            inputs["token_type_ids"] = batch.types
        if self.adapter.reading == "last":
            inputs["use_cache"] = False
        return inputs

    def _mean_embedding(self) -> Float[torch.Tensor, "d_model"]:
        weight = self.embedding.weight
        if "mean_embedding" not in self.memo:
            wide = torch.promote_types(weight.dtype, torch.float32)
            self.memo["mean_embedding"] = weight.mean(0, dtype=wide).to(weight.dtype)
        return self.memo["mean_embedding"]

    def _positions(self, batch: Batch) -> torch.Tensor:
        # Explicit, because RoBERTa would count them from pad ids, which also stand for removed tokens.
        count = torch.arange(batch.ids.shape[1], device=self.device) + self.adapter.first_position(self.module.config)
        return count.expand(batch.ids.shape)

    def _attention_mask(self, batch: Batch) -> torch.Tensor | None:
        """Additive `[batch 1 query|1 key]`, or None where nothing is hidden."""
        if batch.whole:
            return None
        seen = batch.visible[:, None, None, :]
        if self.adapter.causal:
            size = batch.ids.shape[1]
            past = torch.ones(size, size, dtype=torch.bool, device=self.device).tril()
            seen = seen & past
            # A row with nothing to attend to would be uniform over the future: it looks at itself instead.
            seen = seen | (~seen.any(-1, keepdim=True) & torch.eye(size, dtype=torch.bool, device=self.device))
        dtype = self.embedding.weight.dtype
        return torch.zeros(seen.shape, dtype=dtype, device=self.device).masked_fill(~seen, torch.finfo(dtype).min)

    def _head(self, vector: torch.Tensor) -> torch.Tensor:
        for name in self.adapter.head:
            vector = self.module.get_submodule(name)(vector)
        return vector

    def _hidden(self, inputs: dict[str, Any]) -> torch.Tensor:
        return self.module.get_submodule(self.adapter.backbone)(**inputs).last_hidden_state


def _read_module(model: TextClassifier, batch: Batch, inputs: dict[str, Any]) -> torch.Tensor:
    return model.module(**inputs).logits


def _read_last(model: TextClassifier, batch: Batch, inputs: dict[str, Any]) -> torch.Tensor:
    # By original length: the stock head would look for the last id that is not the pad id, or take the last column.
    hidden = model._hidden(inputs)
    rows = torch.arange(len(hidden), device=model.device)
    return model._head(hidden[rows, batch.lengths - 1])


def _read_mean(model: TextClassifier, batch: Batch, inputs: dict[str, Any]) -> torch.Tensor:
    hidden = model._hidden(inputs)
    weights = batch.visible.to(hidden.dtype)[..., None]
    return model._head((hidden * weights).sum(1) / weights.sum(1).clamp(min=1))


_READINGS = {"module": _read_module, "last": _read_last, "mean": _read_mean}


def as_float64(values: torch.Tensor) -> Float[np.ndarray, "..."]:
    """A tensor of any device and precision as double precision numpy."""
    return values.detach().double().cpu().numpy()
