"""An image classifier for explainers, from pictures or patch embeddings to logits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from jaxtyping import Float

from engine.errors import unknown
from engine.lazy import torch
from engine.models.classifier import EMBEDDING, Classifier
from engine.removal_operators import PATCH_OPERATORS
from engine.request import Picture
from engine.result import Prediction
from engine.vision.adapters import ImageAdapter
from engine.vision.picture import EncodedPicture, PictureBatch, Preprocessing, both_sides, collate, read_size

SOFTMAX_NOTE = "The probabilities are a softmax over the labels given: another label would change all of them."
SIGMOIDS = 5
"""Number of labels whose sigmoids are listed in a note, the most probable first."""


@dataclass(eq=False)
class ImageClassifier(Classifier[Picture, EncodedPicture, PictureBatch]):
    """A loaded vision transformer, read-only and shared. Call it while holding the device.

    Positions are the special tokens, then the patches. Embeddings are those before position embeddings are added, so
    that methods that remove, substitute or trace tokens also work on patches.
    """

    kind: ClassVar[str] = "image"
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
    def embedding(self) -> torch.nn.Conv2d:
        """The projection of patches to vectors; its `weight` is `[d_model 3 height width]`."""
        return self.module.get_submodule(self.adapter.patches)  # type: ignore[return-value]

    @cached_property
    def blocks(self) -> torch.nn.ModuleList:
        return self.module.get_submodule(self.adapter.blocks)  # type: ignore[return-value]

    @cached_property
    def size(self) -> tuple[int, int]:
        """Height and width of the pictures that the model reads."""
        return read_size(self.preprocessing, self.adapter, vars(self._config))

    @cached_property
    def patch(self) -> tuple[int, int]:
        """Height and width of a patch in pixels."""
        return both_sides(self._config.patch_size)

    @cached_property
    def channels(self) -> int:
        """Color channels of the pictures that the model reads."""
        return int(self._config.num_channels)

    @cached_property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of patches."""
        return self.size[0] // self.patch[0], self.size[1] // self.patch[1]

    @cached_property
    def specials(self) -> int:
        """Number of tokens before the patches."""
        return self.adapter.special_tokens(vars(self._config))

    def encode(self, example: Picture) -> EncodedPicture:
        """Preprocess a picture for the model's grid of patches."""
        pixels = self.preprocessing.transform(example.pixels)
        values, registers = self.preprocessing.normalize(pixels), self.specials - len(self.adapter.specials)
        return EncodedPicture(pixels, values, self.grid, self.patch, self.specials, registers)

    def collate(self, examples: Sequence[EncodedPicture]) -> PictureBatch:
        return collate(examples, self.dtype, self.device)

    def embed(self, batch: PictureBatch) -> Float[torch.Tensor, "batch seq d_model"]:
        """Return special tokens and patch embeddings, before position embeddings are added."""
        return self._with_specials(self._projected(batch.pictures))[batch.index]

    def removal_embedding(self, batch: PictureBatch, operator: str) -> Float[torch.Tensor, "#batch #seq d_model"]:
        """Return the embedding that replaces a removed patch.

        `mean`: that of the color that the preprocessing subtracts. `zero`: the zero vector. `blur`: that of the same
        patch after a Gaussian blur of the picture, whose standard deviation is the longer side of a patch.
        """
        if operator == "mean":
            return self._projected(torch.zeros_like(batch.pictures[:1, :, : self.patch[0], : self.patch[1]]))
        if operator == "zero":
            return torch.zeros_like(self.embedding.weight[None, None, :, 0, 0, 0])
        if operator == "blur":
            return self._with_specials(self._projected(blur(batch.pictures, max(self.patch))))[batch.index]
        raise unknown("removal", operator, PATCH_OPERATORS)

    def points(self, batch: PictureBatch, place: str = EMBEDDING) -> Float[torch.Tensor, "batch seq width"]:
        """Return the embeddings or, if `place` is "pixels", the normalized pixels of each patch.

        Pixels are in the order channel, row, column; those of special tokens are 0.
        """
        if place == EMBEDDING:
            return self.embed(batch)
        patches = cut_patches(batch.pictures, self.patch)
        return torch.nn.functional.pad(patches, (0, 0, self.specials, 0))[batch.index]

    def embed_points(
        self, points: Float[torch.Tensor, "batch seq width"], place: str = EMBEDDING
    ) -> Float[torch.Tensor, "batch seq d_model"]:
        """Return the embeddings of `points`; gradients flow through them."""
        if place == EMBEDDING:
            return points
        return self._with_specials(self._vectors(points[:, self.specials :]))

    def logits(
        self, batch: PictureBatch, embeds: Float[torch.Tensor, "batch seq d_model"] | None = None
    ) -> Float[torch.Tensor, "batch label"]:
        """Return logits. `embeds` replaces the embeddings; positions that are not visible have no effect."""
        hidden = self.hidden(batch, embeds)
        heads = [self.module.get_submodule(name) for name in self.adapter.heads]
        if self.adapter.pooling == "first":
            return torch.stack([head(hidden[:, i]) for i, head in enumerate(heads)]).mean(0)
        if self.adapter.pooling == "attention":
            return heads[0](hidden, self._attention_mask(batch))
        pooled = self._mean_of_patches(hidden, batch)
        if self.adapter.pooling == "first_and_mean":
            pooled = torch.cat([hidden[:, 0], pooled], dim=1)
        return heads[0](pooled)

    def hidden(
        self, batch: PictureBatch, embeds: Float[torch.Tensor, "batch seq d_model"] | None = None
    ) -> Float[torch.Tensor, "batch seq d_model"]:
        hidden = self.embed(batch) if embeds is None else embeds
        hidden = hidden + self.positions()
        if self.adapter.pre_norm is not None:
            hidden = self.module.get_submodule(f"{self.adapter.backbone}.{self.adapter.pre_norm}")(hidden)
        mask = self._attention_mask(batch)
        for block in self.blocks:
            hidden = block(hidden, mask)
        return hidden if self.adapter.norm is None else self.module.get_submodule(self.adapter.norm)(hidden)

    def added_embeddings(self) -> list[Float[torch.Tensor, "1 seq d_model"]]:
        return [self.positions()]

    @property
    def cam_layer(self) -> torch.nn.Module:
        """Module whose outputs Grad-CAM reads, one row for each position: the first LayerNorm of the last block."""
        return self.blocks[-1].get_submodule(self.adapter.first_norm)

    def spread(self, maps: Float[torch.Tensor, "batch position"]) -> Float[torch.Tensor, "batch patch"]:
        """Convert a map over the output positions of `cam_layer` to a map over patches."""
        return maps[:, self.specials :]

    def positions(self) -> Float[torch.Tensor, "1 seq d_model"]:
        """Return the position embeddings that are added to the tokens; zero for registers, which have none."""
        embeddings, specials = self._embeddings, len(self.adapter.specials)
        if self.adapter.interpolated:
            shape = (1, specials + self.grid[0] * self.grid[1], self.embedding.out_channels)
            own = embeddings.interpolate_pos_encoding(embeddings.cls_token.new_empty(shape), *self.size)
        elif hasattr(embeddings, "position_embedding"):
            own = embeddings.position_embedding.weight[None]
        else:
            own = embeddings.position_embeddings
        registers = self.specials - specials
        if not registers:
            return own
        return torch.cat([own[:, :specials], own.new_zeros(1, registers, own.shape[2]), own[:, specials:]], dim=1)

    def _mean_of_patches(
        self, hidden: Float[torch.Tensor, "batch seq d_model"], batch: PictureBatch
    ) -> Float[torch.Tensor, "batch d_model"]:
        """Return the mean over the visible patches, or zero if none is visible."""
        patches = hidden[:, self.specials :]
        if batch.whole:
            return patches.mean(1)
        visible = batch.visible[:, self.specials :, None].to(patches.dtype)
        return (patches * visible).sum(1) / visible.sum(1).clamp(min=1)

    def notes_on(self, prediction: Prediction) -> tuple[str, ...]:
        """Return notes on a zero-shot model's probabilities, with its sigmoids if it was trained with them."""
        if not self.adapter.prompts:
            return ()
        if self.adapter.pooling != "attention":
            return (SOFTMAX_NOTE,)
        order = sorted(range(len(prediction.labels)), key=lambda at: -prediction.logits[at])[:SIGMOIDS]
        own = ", ".join(f"{prediction.labels[at]} {sigmoid(prediction.logits[at]):.1%}" for at in order)
        return (f"{SOFTMAX_NOTE} The model's own probabilities, a sigmoid of each label by itself: {own}.",)

    def _projected(self, values: Float[torch.Tensor, "batch 3 height width"]) -> torch.Tensor:
        return self._vectors(cut_patches(values, self.patch))

    def _vectors(self, patches: Float[torch.Tensor, "batch patch pixel"]) -> Float[torch.Tensor, "batch patch d_model"]:
        # A matrix product, as a GPU rounds single precision to 10 bits (TF32) in the module's convolution.
        return torch.nn.functional.linear(patches, self.embedding.weight.flatten(1), self.embedding.bias)

    def _with_specials(self, patches: Float[torch.Tensor, "batch patch d_model"]) -> torch.Tensor:
        names = (*self.adapter.specials, *(["register_tokens"] if self.adapter.registers else []))
        specials = [getattr(self._embeddings, name).reshape(1, -1, patches.shape[2]) for name in names]
        return torch.cat([*(tokens.expand(len(patches), -1, -1) for tokens in specials), patches], dim=1)

    @property
    def _config(self) -> Any:
        return self.module.config

    @property
    def _embeddings(self) -> Any:
        return self.module.get_submodule(self.adapter.embeddings)

    def _attention_mask(self, batch: PictureBatch) -> torch.Tensor | None:
        """Return the additive mask `[batch 1 1 key]`, or None if all positions are visible."""
        if batch.whole:
            return None
        visible = batch.visible[:, None, None, :]
        return torch.zeros(visible.shape, dtype=self.dtype, device=self.device).masked_fill(
            ~visible, torch.finfo(self.dtype).min
        )


def sigmoid(logit: float) -> float:
    """Return the sigmoid of a logit, without overflow."""
    return 1 / (1 + math.exp(-logit)) if logit > 0 else math.exp(logit) / (1 + math.exp(logit))


def cut_patches(
    values: Float[torch.Tensor, "batch 3 height width"], patch: tuple[int, int]
) -> Float[torch.Tensor, "batch patch pixel"]:
    """Return the pixels of each patch in the order of the weights: channel, row, column.

    Pixels after the last whole patch are cut off.
    """
    rows, columns = values.shape[2] // patch[0], values.shape[3] // patch[1]
    cut = values[:, :, : rows * patch[0], : columns * patch[1]]
    tiles = cut.reshape(len(values), 3, rows, patch[0], columns, patch[1])
    return tiles.permute(0, 2, 4, 1, 3, 5).reshape(len(values), rows * columns, -1)


def blur(
    values: Float[torch.Tensor, "batch 3 height width"], sigma: int | float
) -> Float[torch.Tensor, "batch 3 height width"]:
    """Blur pictures with a Gaussian of standard deviation `sigma` in pixels, cut off at 3 `sigma`. Edges are extended.

    Computed in double precision: half precision is coarse, and its convolution can take minutes on a CPU; a GPU rounds
    single precision to 10 bits (TF32).
    """
    reach = math.ceil(3 * sigma)
    steps = torch.arange(-reach, reach + 1, device=values.device, dtype=torch.float64)
    weights = torch.softmax(-(steps**2) / (2 * sigma**2), dim=0)
    once = _convolve(values.double(), weights.view(1, 1, 1, -1), (reach, reach, 0, 0))
    return _convolve(once, weights.view(1, 1, -1, 1), (0, 0, reach, reach)).to(values.dtype)


def _convolve(values: torch.Tensor, weights: torch.Tensor, pad: tuple[int, int, int, int]) -> torch.Tensor:
    wide = torch.nn.functional.pad(values, pad, mode="replicate")
    return torch.nn.functional.conv2d(wide, weights.expand(3, 1, -1, -1), groups=3)
