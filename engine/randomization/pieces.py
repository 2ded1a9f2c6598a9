"""What is made and kept together: one stage's maps of a few examples by one method, or its predictions of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from cache import key_for
from cache.codec import Arrays, Meta
from engine import runtime
from engine.explain import told_of
from engine.models import catalog
from engine.operators import keyed_params
from engine.params import as_plain, from_mapping
from engine.randomization.plan import Plan
from engine.records import unpack_prediction
from engine.registry import explainer
from engine.result import Prediction, Token
from engine.store import result_store

VERSION = 1
"""Raised whenever the numbers change."""
PREDICTION = ""
"""Stands for the predictions where a method is named."""

Scores = Float[np.ndarray, "seq"]


@dataclass(frozen=True)
class Piece:
    """`parts`: what is random, in the order of a cascade. `seed`: of the randomization, 0 where nothing is.

    `indices`: the examples' places in the data set. `method`: of the maps, or `PREDICTION`. `key`: in the cache.
    """

    parts: tuple[str, ...]
    seed: int
    indices: tuple[int, ...]
    method: str
    key: str

    @property
    def stage(self) -> tuple[tuple[str, ...], int, tuple[int, ...]]:
        """Pieces that share this share a model and examples."""
        return self.parts, self.seed, self.indices


@dataclass(frozen=True)
class Maps:
    """Scores by example, special tokens included; `failed`: why an example has none."""

    scores: Mapping[int, Scores]
    failed: Mapping[int, str] = field(default_factory=dict)

    def packed(self) -> tuple[Meta, Arrays]:
        joined = np.concatenate([np.zeros(0), *self.scores.values()])
        return {"indices": list(self.scores), "lengths": [len(one) for one in self.scores.values()]}, {"scores": joined}


@dataclass(frozen=True)
class Seen:
    """An example as a model reads it, whatever its weights: what a map is drawn on. `grid`: None for a text."""

    tokens: tuple[Token, ...]
    grid: tuple[int, int] | None
    truncated: int

    @property
    def features(self) -> np.ndarray:
        """Positions that are ranked: all but the special ones."""
        return np.flatnonzero([not token.special for token in self.tokens])


@dataclass(frozen=True)
class Answers:
    """Predictions by example; of the model as it is also how it reads them. `failed`: why an example has none.

    `lasting`: all that failed cannot be read, which it never can. Otherwise another try may succeed.
    """

    predictions: Mapping[int, Prediction]
    seen: Mapping[int, Seen] = field(default_factory=dict)
    failed: Mapping[int, str] = field(default_factory=dict)
    lasting: bool = True

    def packed(self) -> tuple[Meta, Arrays]:
        return {
            "indices": list(self.predictions),
            "predictions": [dataclasses.asdict(one) for one in self.predictions.values()],
            "seen": [[[dataclasses.astuple(t) for t in s.tokens], s.grid, s.truncated] for s in self.seen.values()],
            "failed": [[index, why] for index, why in self.failed.items()],
        }, {}


def load_maps(piece: Piece) -> Maps | None:
    """From the cache, None where it holds none."""
    entry = result_store().get(piece.key)
    if entry is None:
        return None
    meta, arrays = entry
    parts = np.split(np.array(arrays["scores"]), np.cumsum(meta["lengths"], dtype=int)[:-1])
    return Maps(dict(zip(meta["indices"], parts, strict=False)))


def load_answers(piece: Piece) -> Answers | None:
    """From the cache, None where it holds none."""
    entry = result_store().get(piece.key)
    if entry is None:
        return None
    meta, indices = entry[0], entry[0]["indices"]
    seen = [_seen(*values) for values in meta["seen"]]
    return Answers(
        dict(zip(indices, map(unpack_prediction, meta["predictions"]), strict=True)),
        dict(zip(indices, seen, strict=False)),
        dict(meta["failed"]),
    )


def _seen(tokens: Sequence[Sequence[object]], grid: Sequence[int] | None, truncated: int) -> Seen:
    return Seen(tuple(Token(*one) for one in tokens), tuple(grid) if grid else None, truncated)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Naming:
    """The keys of the pieces of one model. `examples`: a key an example, by its place in the data set."""

    plan: Plan
    model: str
    examples: Mapping[int, str]

    def piece(self, parts: tuple[str, ...], seed: int, indices: tuple[int, ...], method: str) -> Piece:
        """Reads the model's files, never loads it. Nothing in the key can be taken for the model as it is."""
        told = {
            "kind": "randomized",
            "version": VERSION,
            "model": [self.model, catalog.revision(self.model)],
            "dtype": self.plan.dtype,
            "device": runtime.device_type(),
            "random": [list(parts), seed] if parts else None,
            "examples": [self.examples[index] for index in indices],
            "method": self._method(method),
        }
        return Piece(parts, seed if parts else 0, indices, method, key_for(told))

    def _method(self, method: str) -> object:
        if method == PREDICTION:
            return None
        known = explainer(method, self.plan.kind)
        params = as_plain(from_mapping(known.params, self.plan.params_of(method), method))
        return [method, told_of(known, params, self.model), keyed_params(params), self.plan.seed]
