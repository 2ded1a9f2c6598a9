"""The text encoder of a zero-shot image model, which scores label prompts by their similarity with a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from engine.errors import UsageError
from engine.lazy import torch
from engine.models.text_classifier import EncodedText, TextBatch, TextClassifier
from engine.request import Example, Picture, PicturePrompt
from engine.result import Token
from engine.vision.classifier import ImageClassifier


@dataclass(frozen=True, eq=False)
class EncodedLabel(EncodedText):
    """A tokenized prompt with the unit vector `[d]` and the digest of the picture that it is compared with."""

    vector: Float[np.ndarray, "d"]
    digest: str

    @property
    def key(self) -> bytes:
        """Bytes that identify the prompt and the picture among all inputs of the same model."""
        return self.ids.tobytes() + self.digest.encode()


@dataclass(frozen=True, eq=False)
class LabelBatch(TextBatch):
    """Padded prompts, with the unit vector of each row's picture."""

    vectors: Float[torch.Tensor, "batch d"]


@dataclass(eq=False)
class LabelClassifier(TextClassifier):
    """The text encoder as a regression without classes: a prompt's score is its scaled similarity with a picture.

    `pictures`: the image classifier. `full_length`: number of tokens that prompts are padded to, None if padding is
    masked. A model that reads padding reads a masked position as padding.
    """

    pictures: ImageClassifier | None = None
    full_length: int | None = None

    def encode(self, example: Example, max_length: int | None = None) -> EncodedLabel:
        """Tokenize a prompt and compute its picture's vector. Errors: as for texts; a text without a picture."""
        if not isinstance(example, PicturePrompt):
            raise UsageError(
                f"text: {self.id} reads a text beside a picture. Give the picture, and the text as one of its labels."
            )
        encoded = super().encode(Example(example.text), max_length)
        ids, tokens = encoded.ids, encoded.tokens
        if self.full_length is not None:
            more = self.full_length - len(ids)
            ids = np.concatenate([ids, np.full(more, self.pad_id)])
            name = str(self.tokenizer.convert_ids_to_tokens(self.pad_id))
            tokens = (*tokens, *[Token(name, 0, 0, -1, True)] * more)
        vector = self._picture_vector(example.picture)
        return EncodedLabel(ids, np.zeros_like(ids), tokens, encoded.truncated, vector, example.picture.digest)

    def collate(self, examples: Sequence[EncodedText]) -> LabelBatch:
        batch = super().collate(examples)
        vectors = np.stack([example.vector for example in examples])  # type: ignore[attr-defined]
        return LabelBatch(**vars(batch), vectors=torch.from_numpy(vectors).to(device=self.device, dtype=self.dtype))

    def logits(
        self, batch: TextBatch, embeds: Float[torch.Tensor, "batch seq d_model"] | None = None
    ) -> Float[torch.Tensor, "batch 1"]:
        hidden = self.hidden(batch, embeds)
        last = hidden.shape[1] - 1 if self.full_length is not None else batch.lengths - 1
        rows = torch.arange(len(hidden), device=self.device)
        tower: Any = self.module
        return tower.similarity(hidden[rows, last], None, batch.vectors)  # type: ignore[attr-defined]

    def hidden(
        self, batch: TextBatch, embeds: Float[torch.Tensor, "batch seq d_model"] | None = None
    ) -> Float[torch.Tensor, "batch seq d_model"]:
        hidden = self.embed(batch) if embeds is None else embeds
        if self.full_length is None:
            mask = self._additive_mask(batch.visible, self.adapter.causal)
        else:
            mask = None
            if not batch.whole:
                hidden = torch.where(batch.visible[..., None], hidden, self.removal_embedding(batch, "pad"))
        places = torch.arange(hidden.shape[1], device=self.device)
        tower: Any = self.module
        hidden = hidden + tower.text_model.embeddings.position_embedding(places)
        for block in self.blocks:
            hidden = block(hidden, mask)
        return self.module.get_submodule(str(self.adapter.norm))(hidden)

    def _picture_vector(self, picture: Picture) -> Float[np.ndarray, "d"]:
        """Return the unit vector of a picture. The vector of the last picture is memoized."""
        assert self.pictures is not None
        memo: dict[str, np.ndarray] = self.pictures.memo.setdefault("picture_vectors", {})
        if picture.digest not in memo:
            memo.clear()
            batch = self.pictures.collate([self.pictures.encode(picture)])
            with torch.no_grad():
                tower: Any = self.pictures.module
                hidden, similarity = self.pictures.hidden(batch), tower.similarity
                pooled = hidden if similarity.pool is not None else hidden[:, 0]
                memo[picture.digest] = similarity.vector(pooled)[0].double().cpu().numpy()
        return memo[picture.digest]
