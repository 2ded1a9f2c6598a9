"""Which words of the vocabulary lie nearest to an embedding that was moved: what the change would read as."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
from jaxtyping import Float

from engine.lazy import torch
from engine.models import sandbox
from engine.models.classifier import AnyClassifier
from engine.models.text_classifier import EncodedText, TextClassifier

NEAREST = 3

Near = tuple[tuple[str, float], ...]
"""Words with their distances, the nearest first."""


def nearest_words(
    model: AnyClassifier, encoded: EncodedText, delta: Float[np.ndarray, "seq d_model"], most: int = NEAREST
) -> tuple[Near, ...]:
    """For each position the words by Euclidean distance from its moved embedding; nothing for special tokens.

    Euclidean, because the embedding's length counts too in what the model reads. Special tokens of the vocabulary
    are no words. The token's own word is among them as long as it is near.
    """
    text = cast(TextClassifier, model)
    with torch.inference_mode():
        point = text.embed(text.collate([encoded]))[0] + torch.from_numpy(delta).to(text.embedding.weight)
        wide = torch.promote_types(point.dtype, torch.float32)
        table = text.embedding.weight.to(wide)[: len(text.tokenizer)]
        far = torch.cdist(point.to(wide), table)
        far[:, [id for id in text.tokenizer.all_special_ids if id < len(table)]] = torch.inf
        found = far.topk(min(most, len(table)), largest=False)
    named = [_words(text, ids) for ids in found.indices.tolist()]
    return tuple(
        () if special else tuple(zip(words, distances, strict=True))
        for special, words, distances in zip(encoded.special, named, found.values.tolist(), strict=True)
    )


def _words(model: TextClassifier, ids: Sequence[int]) -> list[str]:
    sandbox.check_decoding(model.tokenizer.name_or_path, ids)
    return [model.tokenizer.decode([id]).strip() or model.tokenizer.convert_ids_to_tokens(id) for id in ids]
