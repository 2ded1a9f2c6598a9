"""An image classifier that explainers can use: pictures or patch embeddings in, logits out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from jaxtyping import Float

from engine.errors import unknown
from engine.late import torch
from engine.models.classifier import EMBEDDING, Classifier
from engine.operators import PATCH_OPERATORS
from engine.request import Picture
from engine.vision import pixels
from engine.vision.adapters import ImageAdapter
from engine.vision.picture import EncodedPicture, PictureBatch, both_sides, collate
from engine.vision.preprocessing import Preprocessing


@dataclass(eq=False)
class ImageClassifier(Classifier[Picture, EncodedPicture, PictureBatch]):
    """A loaded vision transformer, read-only and shared. Call it inside the device's turn.

    Positions are the special tokens and then the patches; embeddings are theirs before positions are added, so that
    the methods that remove, replace or follow tokens serve patches too.
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
        """What makes vectors of patches; its `weight` is `[d_model 3 height width]`."""
        return self.module.get_submodule(self.adapter.patches)  # type: ignore[return-value]

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

    def encode(self, example: Picture) -> EncodedPicture:
        """The picture as the model sees it, in its own grid."""
        seen = self.preprocessing.seen(example.pixels)
        specials = len(self.adapter.specials)
        return EncodedPicture(seen, self.preprocessing.normalised(seen), self.grid, self.patch, specials)

    def collate(self, examples: Sequence[EncodedPicture]) -> PictureBatch:
        return collate(examples, self.dtype, self.device)

    def embed(self, batch: PictureBatch) -> Float[torch.Tensor, "batch seq d_model"]:
        """Special tokens and patch embeddings, before positions are added."""
        return self._with_specials(self._projected(batch.pictures))[batch.index]

    def blank(self, batch: PictureBatch, operator: str) -> Float[torch.Tensor, "#batch #seq d_model"]:
        """The patch embedding that stands for "removed". `mean` is the colour that the preprocessing subtracts.

        `zero` is the zero vector; `blur` is the same patch of the picture blurred by a Gaussian as wide as a patch.
        """
        if operator == "mean":
            return self._projected(torch.zeros_like(batch.pictures[:1, :, : self.patch[0], : self.patch[1]]))
        if operator == "zero":
            return torch.zeros_like(self.embedding.weight[None, None, :, 0, 0, 0])
        if operator == "blur":
            return self._with_specials(self._projected(pixels.blurred(batch.pictures, max(self.patch))))[batch.index]
        raise unknown("removal", operator, PATCH_OPERATORS)

    def points(self, batch: PictureBatch, place: str = EMBEDDING) -> Float[torch.Tensor, "batch seq width"]:
        """Embeddings; at the place "pixels" each patch's normalised pixels (channel, row, column), 0 for specials."""
        if place == EMBEDDING:
            return self.embed(batch)
        patches = pixels.patches(batch.pictures, self.patch)
        return torch.nn.functional.pad(patches, (0, 0, len(self.adapter.specials), 0))[batch.index]

    def embedded(
        self, points: Float[torch.Tensor, "batch seq width"], place: str = EMBEDDING
    ) -> Float[torch.Tensor, "batch seq d_model"]:
        """The embeddings of such numbers, through which gradients flow."""
        if place == EMBEDDING:
            return points
        return self._with_specials(self._vectors(points[:, len(self.adapter.specials) :]))

    def logits(
        self, batch: PictureBatch, embeds: Float[torch.Tensor, "batch seq d_model"] | None = None
    ) -> Float[torch.Tensor, "batch label"]:
        """Logits of each row; `embeds` replaces the embeddings, and what is not visible is as if it were not there."""
        hidden = self.hidden(batch, embeds)
        heads = [self.module.get_submodule(name) for name in self.adapter.heads]
        return torch.stack([head(hidden[:, i]) for i, head in enumerate(heads)]).mean(0)

    def hidden(
        self, batch: PictureBatch, embeds: Float[torch.Tensor, "batch seq d_model"] | None = None
    ) -> Float[torch.Tensor, "batch seq d_model"]:
        hidden = self.embed(batch) if embeds is None else embeds
        hidden = hidden + self._embeddings.position_embeddings
        mask = self._attention_mask(batch)
        for block in self.blocks:
            hidden = block(hidden, mask)
        return self.module.get_submodule(self.adapter.norm)(hidden)

    def _projected(self, values: Float[torch.Tensor, "batch 3 height width"]) -> torch.Tensor:
        return self._vectors(pixels.patches(values, self.patch))

    def _vectors(self, patches: Float[torch.Tensor, "batch patch pixel"]) -> Float[torch.Tensor, "batch patch d_model"]:
        # A product, not the module's convolution: of that a GPU rounds single precision to 10 bits (TF32).
        return torch.nn.functional.linear(patches, self.embedding.weight.flatten(1), self.embedding.bias)

    def _with_specials(self, patches: Float[torch.Tensor, "batch patch d_model"]) -> torch.Tensor:
        specials = [getattr(self._embeddings, name).expand(len(patches), -1, -1) for name in self.adapter.specials]
        return torch.cat([*specials, patches], dim=1)

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
