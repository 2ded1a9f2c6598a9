"""Image classifiers that attend within windows (Swin): patches of one grid, merged two by two from stage to stage."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from jaxtyping import Float

from engine.errors import ExegesisError, UsageError
from engine.lazy import torch
from engine.models.attention import AttentionRecorder
from engine.vision.classifier import ImageClassifier
from engine.vision.picture import PictureBatch


def no_attention(model: str) -> ExegesisError:
    """Return the error of methods that need attention between all patches."""
    return ExegesisError(
        f"model {model}: it attends within windows that change from block to block, so there is no attention between "
        "all patches, and no grid of heads. Use a method that reads no attention, such as integrated_gradients."
    )


@dataclass(eq=False)
class WindowClassifier(ImageClassifier):
    """A loaded Swin transformer. Its blocks are its stages, and its features the patches that the first stage reads.

    Every patch has a fixed place in a window, so patches cannot be dropped.
    """

    def __post_init__(self) -> None:
        if self._embeddings.position_embeddings is not None:
            # They are added after a LayerNorm, where AttnLRP has no gradient of the embeddings to multiply them with.
            self.adapter = replace(self.adapter, lrp=None, lrp_missing="absolute positions")

    @cached_property
    def cells(self) -> tuple[int, int]:
        """Rows and columns of the last stage's cells. A cell covers all patches that were merged into it."""
        rows, columns = self.grid
        for _ in range(len(self.blocks) - 1):
            rows, columns = (rows + 1) // 2, (columns + 1) // 2
        return rows, columns

    @property
    def cam_layer(self) -> torch.nn.Module:
        return self.blocks[-1].blocks[-1].get_submodule(self.adapter.first_norm)  # type: ignore[index, union-attr]

    def spread(self, maps: Float[torch.Tensor, "batch position"]) -> Float[torch.Tensor, "batch patch"]:
        """Convert a map over the last stage's cells to a map over patches: each patch has the value of its cell."""
        merged = 2 ** (len(self.blocks) - 1)
        cells = maps.reshape(len(maps), *self.cells)
        wide = cells.repeat_interleave(merged, 1).repeat_interleave(merged, 2)
        return wide[:, : self.grid[0], : self.grid[1]].reshape(len(maps), -1)

    def hidden(
        self, batch: PictureBatch, embeds: Float[torch.Tensor, "batch seq d_model"] | None = None
    ) -> Float[torch.Tensor, "batch cell d_last"]:
        if not batch.whole:
            raise UsageError(
                f"removal: must be mean, zero or blur for {self.adapter.family} models, got drop: their windows need "
                "every patch. Choose one of them."
            )
        hidden = self._embeddings.norm(self.embed(batch) if embeds is None else embeds) + self.positions()
        backbone = self.module.get_submodule(self.adapter.backbone)
        states = backbone.encoder(hidden, self.grid).last_hidden_state  # type: ignore[operator]
        return self.module.get_submodule(str(self.adapter.norm))(states)

    def positions(self) -> torch.Tensor:
        """Return the absolute position embeddings; zero for most checkpoints, which have none."""
        own = self._embeddings.position_embeddings
        return self.embedding.weight.new_zeros(()) if own is None else own

    def added_embeddings(self) -> list[torch.Tensor]:
        """Return an empty list: the embeddings are normalized before anything is added."""
        return []

    def logits_with_attention(
        self, batch: PictureBatch, embeds: Float[torch.Tensor, "batch seq d_model"] | None = None
    ) -> tuple[Float[torch.Tensor, "batch label"], AttentionRecorder]:
        raise no_attention(self.id)
