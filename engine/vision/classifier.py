"""An image classifier that explainers can use: pictures or patch embeddings in, logits out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, UInt8

from engine.late import torch
from engine.models import answers
from engine.models.attention import Recorder, capture
from engine.result import Prediction
from engine.vision.adapters import ImageAdapter
from engine.vision.picture import EncodedPicture, PictureBatch, both_sides, collate
from engine.vision.preprocessing import Preprocessing


@dataclass(eq=False)
class ImageClassifier:
    """A loaded vision transformer, read-only and shared. Call it inside the device's turn.

    Positions are the special tokens and then the patches; embeddings are theirs before positions are added, so that
    the methods that remove, replace or follow tokens serve patches too.
    """

    id: str
    revision: str
    module: torch.nn.Module
    preprocessing: Preprocessing
    adapter: ImageAdapter
    labels: tuple[str, ...]
    dtype: torch.dtype
    device: torch.device
    notes: tuple[str, ...] = ()
    memo: dict[Any, Any] = field(default_factory=dict)
    regression: bool = False

    @cached_property
    def embedding(self) -> torch.nn.Module:
        """What makes vectors of patches; its `weight` is `[d_model 3 height width]`."""
        return self.module.get_submodule(self.adapter.patches)

    @cached_property
    def blocks(self) -> torch.nn.ModuleList:
        return self.module.get_submodule(self.adapter.blocks)  # type: ignore[return-value]

    @cached_property
    def size(self) -> tuple[int, int]:
        """Height and width of the pictures that it reads."""
        return both_sides(self._config.image_size)

    @cached_property
    def patch(self) -> tuple[int, int]:
        """Height and width of a patch in pixels."""
        return both_sides(self._config.patch_size)

    @cached_property
    def channels(self) -> int:
        """Colour channels of the pictures that it reads."""
        return int(self._config.num_channels)

    @cached_property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return self.size[0] // self.patch[0], self.size[1] // self.patch[1]

    def encode(self, pixels: UInt8[np.ndarray, "height width 3"]) -> EncodedPicture:
        """The picture as the model sees it, in its own grid."""
        seen = self.preprocessing.seen(pixels)
        specials = len(self.adapter.specials)
        return EncodedPicture(seen, self.preprocessing.normalised(seen), self.grid, self.patch, specials)

    def collate(self, pictures: Sequence[EncodedPicture]) -> PictureBatch:
        return collate(pictures, self.dtype, self.device)

    def embed(self, batch: PictureBatch) -> Float[torch.Tensor, "batch seq d_model"]:
        """Special tokens and patch embeddings, before positions are added."""
        return self.embed_values(batch.values)

    def embed_values(
        self, values: Float[torch.Tensor, "batch 3 height width"]
    ) -> Float[torch.Tensor, "batch seq d_model"]:
        """The same for normalised pixels, through which gradients flow."""
        patches = self.embedding(values).flatten(2).transpose(1, 2)
        specials = [getattr(self._embeddings, name).expand(len(values), -1, -1) for name in self.adapter.specials]
        return torch.cat([*specials, patches], dim=1)

    def logits(
        self, batch: PictureBatch, embeds: Float[torch.Tensor, "batch seq d_model"] | None = None
    ) -> Float[torch.Tensor, "batch label"]:
        """Logits of each row; `embeds` replaces the embeddings, and what is not visible is as if it were not there."""
        hidden = self.embed(batch) if embeds is None else embeds
        hidden = hidden + self._embeddings.position_embeddings
        mask = self._attention_mask(batch)
        for block in self.blocks:
            hidden = block(hidden, mask)
        hidden = self.module.get_submodule(self.adapter.norm)(hidden)
        heads = [self.module.get_submodule(name) for name in self.adapter.heads]
        return torch.stack([head(hidden[:, i]) for i, head in enumerate(heads)]).mean(0)

    def captured(
        self, batch: PictureBatch, embeds: Float[torch.Tensor, "batch seq d_model"] | None = None
    ) -> tuple[Float[torch.Tensor, "batch label"], Recorder]:
        """Logits together with every layer's attention."""
        with capture(self.module) as recorder:
            return self.logits(batch, embeds), recorder

    def predictions(self, logits: Float[torch.Tensor, "batch label"]) -> list[Prediction]:
        """Logits and probabilities as plain numbers."""
        return answers.predictions(logits, self.labels)

    def target_index(self, target: int | str | None, prediction: Prediction) -> int:
        """The class to explain: an index, a label, or the predicted one."""
        return answers.target_index(target, prediction)

    @property
    def _config(self) -> Any:
        return self.module.config

    @property
    def _embeddings(self) -> Any:
        return self.module.get_submodule(self.adapter.embeddings)

    def _attention_mask(self, batch: PictureBatch) -> torch.Tensor | None:
        """Additive `[batch 1 1 key]`, or None where nothing is hidden."""
        if batch.whole:
            return None
        seen = batch.visible[:, None, None, :]
        return torch.zeros(seen.shape, dtype=self.dtype, device=self.device).masked_fill(
            ~seen, torch.finfo(self.dtype).min
        )
