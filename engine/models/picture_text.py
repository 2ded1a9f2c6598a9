"""Zero-shot classifiers that match pictures with texts (CLIP, SigLIP), explained on both sides.

A picture's logits are its scaled similarities with the label prompts, so the image encoder with the normalized text
vectors as its head is an ordinary image classifier. Conversely, the picture can be fixed: the score of a prompt is then
its similarity with the picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from engine.errors import ExegesisError
from engine.models.label_classifier import LabelClassifier
from engine.models.label_prompts import PICTURE_LABELS, LabelPrompts
from engine.models.lrp import UnitLength
from engine.models.text_classifier import tokenize
from engine.vision.adapters import PROMPT_ADAPTERS
from engine.vision.classifier import ImageClassifier

FULL_LENGTH = ("siglip",)
"""The `model_type` of models whose texts are padded to one length, with the padding visible."""
SIMILARITY = "similarity"
"""The only label of a prompt's score."""


class Similarity(nn.Module):
    """Scaled similarity with fixed vectors: `scale * unit(project(pool(x))) @ vectors.T + bias`.

    `vectors`: unit vectors `[other d]`. The scale, the bias and the vectors are not parameters, because they belong to
    the classes and not to the side that is explained.
    """

    scaled: Tensor
    bias: Tensor | None

    def __init__(
        self, projection: nn.Module | None, pool: nn.Module | None, scale: Tensor, bias: Tensor | None, vectors: Tensor
    ) -> None:
        super().__init__()
        self.projection, self.pool, self.unit = projection, pool, UnitLength()
        self.register_buffer("scaled", scale.detach() * vectors.detach())
        self.register_buffer("bias", None if bias is None else bias.detach())

    def vector(self, hidden: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the unit vector of each row. `mask`: additive `[batch 1 1 key]`, used only by a pooling head."""
        pooled = hidden if self.pool is None else attention_pool(self.pool, hidden, mask)
        return self.unit(pooled if self.projection is None else self.projection(pooled))

    def forward(self, hidden: Tensor, mask: Tensor | None = None, vectors: Tensor | None = None) -> Tensor:
        """Return similarities `[batch other]`. `vectors`: one per row, `[batch d]`, for a single similarity per row."""
        own = self.vector(hidden, mask)
        logits = own @ self.scaled.T if vectors is None else (own * vectors).sum(1, keepdim=True) * self.scaled
        return logits if self.bias is None else logits + self.bias


def attention_pool(pool: Any, hidden: Tensor, mask: Tensor | None) -> Tensor:
    """Apply SigLIP's pooling head, ignoring masked positions."""
    probe = pool.probe.repeat(len(hidden), 1, 1)
    padding = None if mask is None else mask[:, 0, 0]
    attended = pool.attention(probe, hidden, hidden, key_padding_mask=padding)[0]
    return (attended + pool.mlp(pool.layernorm(attended)))[:, 0]


class Tower(nn.Module):
    """The encoder of one side (pictures or texts), with the fixed vectors of the other side as its head."""

    def __init__(self, name: str, side: Any, config: Any, similarity: Similarity) -> None:
        super().__init__()
        self.config = config
        self.similarity = similarity
        self.side = name
        setattr(self, name, side)

    def _init_weights(self, module: nn.Module) -> None:
        getattr(self, self.side)._init_weights(module)


@dataclass(frozen=True, eq=False)
class Towers:
    """A loaded model with the encoders of both sides, and its tokenizer. Read-only and shared."""

    module: Any
    tokenizer: Any

    @property
    def scale(self) -> Tensor:
        return self.module.logit_scale.exp()

    @property
    def bias(self) -> Tensor | None:
        return getattr(self.module, "logit_bias", None)

    @property
    def full_length(self) -> int | None:
        """Number of tokens that texts are padded to, or None if padding is masked."""
        config = self.module.config
        return config.text_config.max_position_embeddings if config.model_type in FULL_LENGTH else None

    def text_vectors(self, texts: Sequence[str]) -> Float[Tensor, "text d"]:
        """Return the unit vectors of texts, as the plain model computes them. Errors: a token without an embedding."""
        length = self.full_length
        limit = length or self.module.config.text_config.max_position_embeddings
        padding = True if length is None else "max_length"
        encoded = tokenize(self.tokenizer, list(texts), None, limit, padding=padding, return_tensors="pt")
        names = [name for name in self.tokenizer.model_input_names if name in ("input_ids", "attention_mask")]
        inputs = {name: encoded[name].to(self.module.device) for name in names}
        largest = int(inputs["input_ids"].max())
        if largest >= self.module.config.text_config.vocab_size:
            raise ExegesisError(f"its tokenizer gives token {largest}, which it has no embedding for")
        with torch.no_grad():
            vectors = self.module.get_text_features(**inputs).pooler_output
        return vectors / vectors.norm(dim=-1, keepdim=True)

    def picture_similarity(self, vectors: Tensor) -> Similarity:
        """Return the head of the image encoder."""
        pool = getattr(self.module.vision_model, "head", None)
        return Similarity(getattr(self.module, "visual_projection", None), pool, self.scale, self.bias, vectors)


def picture_tower(towers: Towers, prompts: LabelPrompts) -> Tower:
    """Return the image encoder with the label prompts as its head."""
    side = towers.module.vision_model
    similarity = towers.picture_similarity(towers.text_vectors(prompts.texts(PICTURE_LABELS)))
    return Tower("vision_model", side, towers.module.config.vision_config, similarity).eval().requires_grad_(False)


def label_classifier(towers: Towers, pictures: ImageClassifier) -> LabelClassifier:
    """Return the text encoder as a classifier; its head has no fixed vectors, as each prompt comes with its picture."""
    module = towers.module
    adapter = PROMPT_ADAPTERS[type(module).__name__]
    head = getattr(module, "text_projection", None) or module.text_model.head
    similarity = Similarity(head, None, towers.scale, towers.bias, torch.ones((), device=module.device))
    tower = Tower("text_model", module.text_model, module.config.text_config, similarity).eval().requires_grad_(False)
    return LabelClassifier(
        pictures.id, pictures.revision, tower.to(pictures.dtype), towers.tokenizer, adapter, (SIMILARITY,), True,
        pictures.dtype, pictures.device, pictures=replace(pictures, memo={}), full_length=towers.full_length,
    )  # fmt: skip
