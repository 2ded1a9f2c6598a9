"""Interface of all classifiers for the explainers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from engine.errors import UsageError, unknown
from engine.lazy import torch
from engine.models.attention import AttentionRecorder, capture_attention
from engine.request import Input
from engine.result import Prediction, Token

EMBEDDING = "embedding"
"""The place at which gradients can be taken in every model; in image models, they can be taken at the pixels too."""
NO_CLASS = -1e4
"""Logit of a class that a row of a batch lacks: its probability is exactly 0, and it is finite in half precision."""

InputT = TypeVar("InputT", bound=Input)
EncodedT = TypeVar("EncodedT", bound="EncodedInput")
BatchT = TypeVar("BatchT", bound="InputBatch")


@runtime_checkable
class EncodedInput(Protocol):
    """An encoded input: a sequence of positions, which are special or features.

    `kind`: the id of the kind of input.
    """

    kind: ClassVar[str]

    def __len__(self) -> int:
        """Number of positions."""

    @property
    def ids(self) -> Int[np.ndarray, "seq"]:
        """One integer per position, which identifies the input in seeds."""

    @property
    def tokens(self) -> tuple[Token, ...]:
        """The token or feature at each position, for display."""

    @property
    def features(self) -> Int[np.ndarray, "feature"]:
        """Positions that may be removed and ranked."""

    @property
    def special(self) -> Bool[np.ndarray, "seq"]:
        """Mask of special positions, which are never removed or ranked."""

    @property
    def grid(self) -> tuple[int, int] | None:
        """Rows and columns of the features; None if they are a sequence."""

    @property
    def truncated(self) -> int:
        """Number of features that did not fit into the model."""

    @property
    def key(self) -> bytes:
        """Bytes that identify this input among all inputs of the same model."""


@runtime_checkable
class InputBatch(Protocol):
    """A batch of encoded inputs on a device, padded to one length."""

    @property
    def visible(self) -> Bool[torch.Tensor, "batch seq"]:
        """Mask of the positions that may be attended to."""

    @property
    def lengths(self) -> Int[torch.Tensor, "batch"]:
        """Number of positions of each input."""

    @property
    def whole(self) -> bool:
        """Whether every position of every row is visible, known without a transfer from the device."""


class Classifier(ABC, Generic[InputT, EncodedT, BatchT]):
    """A loaded checkpoint, read-only and shared: encodes an input, collates encoded inputs and runs the batch.

    Call it while holding the device. `kind` is the id of the kind of its inputs. `reads_parts`: whether a part of an
    input can be read alone; False if a change is added to the whole input, position by position.
    """

    kind: ClassVar[str]
    reads_parts: ClassVar[bool] = True
    id: str
    revision: str
    module: torch.nn.Module
    adapter: Any
    labels: tuple[str, ...]
    regression: bool
    dtype: torch.dtype
    device: torch.device
    notes: tuple[str, ...]
    memo: dict[Any, Any]

    @property
    @abstractmethod
    def blocks(self) -> torch.nn.ModuleList:
        """The transformer's blocks in calling order."""

    @abstractmethod
    def encode(self, example: InputT) -> EncodedT:
        """Encode one input as the model reads it."""

    @abstractmethod
    def collate(self, examples: Sequence[EncodedT]) -> BatchT:
        """Batch encoded inputs on the device."""

    @abstractmethod
    def embed(self, batch: BatchT) -> Float[torch.Tensor, "batch seq d_model"]:
        """Return the embedding of each position, before position embeddings are added."""

    @abstractmethod
    def removal_embedding(self, batch: BatchT, operator: str) -> Float[torch.Tensor, "#batch #seq d_model"]:
        """Return the embedding that represents removal."""

    @abstractmethod
    def logits(
        self, batch: BatchT, embeds: Float[torch.Tensor, "batch seq d_model"] | None = None
    ) -> Float[torch.Tensor, "batch label"]:
        """Return the logits of each row, equal to those of the row alone. `embeds`: replacements of the embeddings."""

    def target_logits(
        self,
        batch: BatchT,
        targets: Sequence[int],
        embeds: Float[torch.Tensor, "batch seq d_model"] | None = None,
    ) -> Float[torch.Tensor, "batch"]:
        """Return the logit of one class of each row, without computing what only the other classes need."""
        return select_class(self.logits(batch, embeds), targets)

    @abstractmethod
    def hidden(
        self, batch: BatchT, embeds: Float[torch.Tensor, "batch seq d_model"] | None = None
    ) -> Float[torch.Tensor, "batch seq d_model"]:
        """Return the output of the last block, after the norm that follows it: the input of the head."""

    def hidden_states(self, batch: BatchT) -> list[Float[torch.Tensor, "batch seq d_model"]]:
        """Return the input of the first block and the output of each block; the last is that of `hidden`."""
        inputs: list[torch.Tensor] = []
        hooks = [block.register_forward_pre_hook(lambda _, args: inputs.append(args[0])) for block in self.blocks]
        try:
            last = self.hidden(batch)
            return [*inputs, last]
        finally:
            for hook in hooks:
                hook.remove()

    def added_embeddings(self) -> list[Float[torch.Tensor, "1 seq d_model"]]:
        """Return terms that are added to the embeddings by no module that AttnLRP's rules name."""
        return []

    def points(self, batch: BatchT, place: str = EMBEDDING) -> Float[torch.Tensor, "batch seq width"]:
        """Return the values at a place where gradients can be taken, one row per position."""
        return self.embed(batch)

    def embed_points(
        self, points: Float[torch.Tensor, "batch seq width"], place: str = EMBEDDING
    ) -> Float[torch.Tensor, "batch seq d_model"]:
        """Return the embeddings of the values of `points`; gradients flow through them."""
        return points

    def logits_with_attention(
        self, batch: BatchT, embeds: Float[torch.Tensor, "batch seq d_model"] | None = None
    ) -> tuple[Float[torch.Tensor, "batch label"], AttentionRecorder]:
        """Return the logits together with every layer's attention."""
        decoder = self.adapter.reading == "decoder"
        with capture_attention(self.module, blocks=self.blocks if decoder else None) as recorder:
            return self.logits(batch, embeds), recorder

    def labels_of(self, encoded: EncodedT) -> tuple[str, ...]:
        """Return the labels of an input's classes: those of the model, unless the classes depend on the input."""
        return self.labels

    def predictions(self, logits: Float[torch.Tensor, "batch label"], examples: Sequence[EncodedT]) -> list[Prediction]:
        """Return each example's logits and probabilities as Python floats, computed in double precision."""
        wide = logits.double().cpu()
        probabilities = wide if self.regression else torch.softmax(wide, dim=-1)
        labels = [self.labels_of(example) for example in examples]
        return [
            Prediction(own, tuple(row.tolist()[: len(own)]), tuple(share.tolist()[: len(own)]), self.regression)
            for own, row, share in zip(labels, wide, probabilities, strict=True)
        ]

    def notes_on(self, prediction: Prediction) -> tuple[str, ...]:
        """Return notes on the probabilities of a prediction."""
        return ()

    def target_index(self, target: int | str | None, prediction: Prediction, encoded: EncodedT) -> int:
        """Return the class to explain: an index, a label, or the predicted one. A regression head has only its score.

        Errors: an unknown class.
        """
        labels = prediction.labels
        if target is None or (prediction.regression and target in (0, "0", labels[0])):
            return prediction.index
        if isinstance(target, str) and target in labels:
            return labels.index(target)
        if str(target) in map(str, range(len(labels))):
            return int(target)
        numbers = f"a number from 0 to {len(labels) - 1}" if len(labels) > 1 else "0"
        raise UsageError(f"{unknown('target', target, labels)} Or {numbers}.")


AnyClassifier = Classifier[Any, Any, Any]


def select_class(logits: Float[torch.Tensor, "batch label"], targets: Sequence[int]) -> Float[torch.Tensor, "batch"]:
    """Return the logit of one class of each row."""
    return logits.gather(1, torch.tensor(targets, device=logits.device)[:, None])[:, 0]


def as_float64(values: torch.Tensor) -> Float[np.ndarray, "..."]:
    """Convert a tensor of any device and precision to a float64 array."""
    return values.detach().double().cpu().numpy()
