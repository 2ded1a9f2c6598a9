"""What a student is taught from: examples side by side with what the teacher says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float

from engine.models.classifier import AnyClassifier, EncodedInput


@dataclass(frozen=True, eq=False)
class Lesson:
    """A padded batch on the device.

    `features`: the keys that may carry an explanation (no special tokens, no padding). `answers`: the teacher's logits.
    `heads`: `s^h` of the teacher where its explainer is learned; `maps`: its explanations where it is static.
    """

    rows: Any
    visible: Bool[torch.Tensor, "batch key"]
    features: Bool[torch.Tensor, "batch key"]
    answers: Float[torch.Tensor, "batch label"]
    heads: Float[torch.Tensor, "batch head key"] | None = None
    maps: Float[torch.Tensor, "batch key"] | None = None


@dataclass(frozen=True, eq=False)
class Taught:
    """Examples of a split with what the teacher says: arrays on the CPU, one an example, as long as it is."""

    examples: Sequence[EncodedInput]
    answers: Float[np.ndarray, "example label"]
    heads: Sequence[Float[np.ndarray, "head _"]] | None = None
    maps: Sequence[Float[np.ndarray, "_"]] | None = None

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def lengths(self) -> list[int]:
        return [len(example) for example in self.examples]

    def lesson(self, indices: Sequence[int], model: AnyClassifier) -> Lesson:
        """The examples as a batch for `model`, in its precision."""
        chosen = [self.examples[i] for i in indices]
        rows = model.collate(chosen)
        width = max(len(example) for example in chosen)

        def padded(arrays: Sequence[np.ndarray], dtype: torch.dtype) -> torch.Tensor:
            made = np.zeros((len(arrays), *arrays[0].shape[:-1], width), dtype=arrays[0].dtype)
            for row, array in zip(made, arrays, strict=True):
                row[..., : array.shape[-1]] = array
            return torch.from_numpy(made).to(device=model.device, dtype=dtype)

        features = padded([~example.special for example in chosen], torch.bool)
        return Lesson(
            rows,
            padded([np.ones(len(example), dtype=bool) for example in chosen], torch.bool),
            features,
            torch.from_numpy(self.answers[list(indices)]).to(device=model.device, dtype=model.dtype),
            None if self.heads is None else padded([self.heads[i] for i in indices], model.dtype),
            None if self.maps is None else padded([self.maps[i] for i in indices], model.dtype),
        )
