"""What every explainer may ask of a classifier, whether it reads texts or pictures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

from jaxtyping import Float

from engine.late import torch
from engine.models import answers
from engine.models.attention import Recorder, capture
from engine.result import Prediction

EMBEDDING = "embedding"
"""The place where a gradient is taken that every model has; pictures have their pixels too."""

Given = TypeVar("Given")
Coded = TypeVar("Coded")
Rows = TypeVar("Rows")


class Classifier(ABC, Generic[Given, Coded, Rows]):
    """A loaded checkpoint, read-only and shared: `Given` becomes `Coded`, and some of those a batch of `Rows`.

    Call it inside the device's turn. `kind` says what it reads, "text" or "image".
    """

    kind: ClassVar[str]
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
        """The transformer's blocks, the first first."""

    @abstractmethod
    def encode(self, example: Given) -> Coded:
        """The input as the model reads it."""

    @abstractmethod
    def collate(self, examples: Sequence[Coded]) -> Rows:
        """Inputs side by side on the device."""

    @abstractmethod
    def embed(self, batch: Rows) -> Float[torch.Tensor, "batch seq d_model"]:
        """What stands for each position, before positions are added."""

    @abstractmethod
    def blank(self, batch: Rows, operator: str) -> Float[torch.Tensor, "#batch #seq d_model"]:
        """The embedding that stands for "removed"."""

    @abstractmethod
    def logits(
        self, batch: Rows, embeds: Float[torch.Tensor, "batch seq d_model"] | None = None
    ) -> Float[torch.Tensor, "batch label"]:
        """Logits of each row as if it were run alone; `embeds` replaces the embeddings."""

    @abstractmethod
    def hidden(
        self, batch: Rows, embeds: Float[torch.Tensor, "batch seq d_model"] | None = None
    ) -> Float[torch.Tensor, "batch seq d_model"]:
        """What the last block writes, after the norm that follows it: what the head reads."""

    def states(self, batch: Rows) -> list[Float[torch.Tensor, "batch seq d_model"]]:
        """What goes into the first block, and what each block writes; the last as `hidden` gives it."""
        seen: list[torch.Tensor] = []
        hooks = [block.register_forward_pre_hook(lambda _, given: seen.append(given[0])) for block in self.blocks]
        try:
            last = self.hidden(batch)
            return [*seen, last]
        finally:
            for hook in hooks:
                hook.remove()

    def points(self, batch: Rows, place: str = EMBEDDING) -> Float[torch.Tensor, "batch seq width"]:
        """The numbers at a place where gradients can be taken, a row a position."""
        return self.embed(batch)

    def embedded(
        self, points: Float[torch.Tensor, "batch seq width"], place: str = EMBEDDING
    ) -> Float[torch.Tensor, "batch seq d_model"]:
        """The embeddings of such numbers, through which gradients flow."""
        return points

    def captured(
        self, batch: Rows, embeds: Float[torch.Tensor, "batch seq d_model"] | None = None
    ) -> tuple[Float[torch.Tensor, "batch label"], Recorder]:
        """Logits together with every layer's attention."""
        with capture(self.module) as recorder:
            return self.logits(batch, embeds), recorder

    def predictions(self, logits: Float[torch.Tensor, "batch label"]) -> list[Prediction]:
        """Logits and probabilities as plain numbers, computed in double precision from the model's logits."""
        return answers.predictions(logits, self.labels, self.regression)

    def target_index(self, target: int | str | None, prediction: Prediction) -> int:
        """The class to explain: an index, a label, or the predicted one. A regression head has only its score."""
        return answers.target_index(target, prediction)
