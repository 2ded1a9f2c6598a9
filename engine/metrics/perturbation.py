"""Inputs that differ a little from one input, as a model reads them: for explainers that are to be run on each.

Texts have no neighbours, so what moves is the word embedding of each token: every dimension by a number drawn
uniformly within `radius` times the standard deviation of the embeddings of the text. Pictures move in their pixels, as
the model sees them: every colour of each by a number drawn uniformly within `radius` times the range of colours, and
never out of that range. Special tokens and positions stay. Both are balls of the largest change, as in Yeh et al.
(2019), On the (in)fidelity and sensitivity of explanations, section 3.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from jaxtyping import Float

from engine.classifiers import AnyClassifier, Coded
from engine.late import torch
from engine.models.classifier import as_float64
from engine.models.text_classifier import EncodedText, TextBatch, TextClassifier
from engine.vision.classifier import ImageClassifier
from engine.vision.picture import EncodedPicture

RADII = {"text": 0.1, "image": 0.02}
"""Of texts about 6 % of the length of an embedding; of pictures 5 of 255 levels of a colour."""
MOVES = 0x5E25
"""Keeps these draws apart from those of methods with the same seed."""


@dataclass(frozen=True, eq=False)
class MovedText(EncodedText):
    """A text whose word embeddings are somewhere near its own."""

    moves: Float[np.ndarray, "seq d_model"]

    @cached_property
    def key(self) -> bytes:
        return self.ids.tobytes() + self.types.tobytes() + self.moves.tobytes()


@dataclass(frozen=True, eq=False)
class MovedBatch(TextBatch):
    """Padded examples with what is added to their word embeddings."""

    moves: Float[torch.Tensor, "batch seq d_model"]


class MovedTexts(TextClassifier):
    """The same model, shared as it is, for such texts. What it remembers is its own."""

    def collate(self, examples: Sequence[EncodedText]) -> MovedBatch:
        batch = super().collate(examples)
        # Methods that remove tokens ask for many rows of one text: its moves are put together once.
        once = {id(example): cast(MovedText, example) for example in examples}
        place = {name: number for number, name in enumerate(once)}
        wide = np.zeros((len(once), batch.ids.shape[1], self.embedding.embedding_dim), dtype=np.float32)
        for number, example in enumerate(once.values()):
            wide[number, : len(example)] = example.moves
        moves = torch.from_numpy(wide).to(self.device, self.embedding.weight.dtype)
        return MovedBatch(**vars(batch), moves=moves[[place[id(example)] for example in examples]])

    def embed(self, batch: TextBatch) -> Float[torch.Tensor, "batch seq d_model"]:
        return super().embed(batch) + cast(MovedBatch, batch).moves


def for_moved(model: AnyClassifier) -> AnyClassifier:
    """The model that reads what `moved` makes: for pictures the model itself."""
    if not isinstance(model, TextClassifier):
        return model
    own = {field.name: getattr(model, field.name) for field in dataclasses.fields(model)}
    return MovedTexts(**{**own, "memo": {}})


def moved(model: AnyClassifier, encoded: Coded, number: int, radius: int | float, seed: int = 0) -> Coded:
    """The neighbour of that number, which depends on the seed and the input alone. The caller holds the turn."""
    draw = np.random.default_rng([MOVES, seed, number, *encoded.ids.tolist()])
    if isinstance(encoded, EncodedPicture):
        return _moved_picture(cast(ImageClassifier, model), encoded, draw, radius)
    return _moved_text(model, encoded, draw, radius)


def _moved_text(
    model: AnyClassifier, encoded: EncodedText, draw: np.random.Generator, radius: int | float
) -> MovedText:
    with torch.inference_mode():
        own = as_float64(model.embed(model.collate([encoded])))[0]
    reach = radius * own[encoded.features].std()
    moves = draw.uniform(-reach, reach, own.shape).astype(np.float32)
    moves[encoded.special] = 0
    return MovedText(encoded.ids, encoded.types, encoded.tokens, encoded.truncated, moves)


def _moved_picture(
    model: ImageClassifier, encoded: EncodedPicture, draw: np.random.Generator, radius: int | float
) -> EncodedPicture:
    read = model.preprocessing
    mean, std = (np.array(numbers)[:, None, None] for numbers in (read.mean, read.std))
    whole = 255 * read.scale
    colours = encoded.values * std + mean + draw.uniform(-radius * whole, radius * whole, encoded.values.shape)
    values = (colours.clip(0, whole) - mean) / std
    return dataclasses.replace(encoded, values=values.astype(np.float32))
