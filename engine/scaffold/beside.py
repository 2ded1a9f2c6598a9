"""Learned and static explanations of one example, all of them distributions over its features (figures 3 and 4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from cache import key_for
from cache.codec import Arrays, Meta
from engine import runtime
from engine.data.sources import SourceExample
from engine.progress import CancelToken, cancellable
from engine.result import Token
from engine.scaffold.asked import Asked, Learned
from engine.scaffold.plan import ATTENTION, GRADIENTS, SMAT
from engine.store import result_store

VERSION = 1
"""Raised whenever maps come out otherwise."""
SHOWN = (*ATTENTION, *GRADIENTS)
"""The static explainers, those most like the learned one first."""


@dataclass(frozen=True, eq=False)
class Beside:
    """One example's maps by explainer, the learned one first: each sums to 1 over the features, special tokens get 0.

    `said`: what the teacher predicts, in words of its labels; None for a score, which is `score`.
    """

    tokens: tuple[Token, ...]
    grid: tuple[int, int] | None
    maps: Mapping[str, Float[np.ndarray, "seq"]]
    said: str | None
    score: float
    truncated: int

    @property
    def features(self) -> Bool[np.ndarray, "seq"]:
        return np.array([not token.special for token in self.tokens])

    def on_grid(self, explainer: str) -> Float[np.ndarray, "row column"]:
        """The patches' scores where they are in the picture. Only for pictures."""
        assert self.grid is not None
        return self.maps[explainer][self.features].reshape(self.grid)


def beside(asked: Asked, place: int, learned: Learned | None, cancel: CancelToken | None = None) -> Beside:
    """From the store, or computed now and kept. Errors: an example that cannot be read, or a teacher."""
    with cancellable(cancel):
        key = beside_key(asked, place, learned)
        entry = result_store().get(key)
        if entry is None:
            entry = _computed(asked, asked.source.read(place), learned)
            result_store().put(key, *entry)
        return _unpacked(*entry)


def beside_key(asked: Asked, place: int, learned: Learned | None) -> str:
    """The cache key of an example's maps."""
    given: dict[str, Any] = asked.as_key | {"places": [place]}
    own = None if learned is None else learned.as_key()
    return key_for({"kind": "scaffold beside", "version": VERSION, "learned": own} | given)


def _computed(asked: Asked, candidate: SourceExample, learned: Learned | None) -> tuple[Meta, Arrays]:
    # Here and not above: they import what runs models.
    from engine.input_kinds import load_classifier
    from engine.scaffold import signals
    from engine.scaffold.measuring import weights_for
    from engine.scaffold.plausibility import STEPS

    with runtime.turn():
        teacher = load_classifier(asked.kind, asked.teacher, "float32", runtime.device())
        coded = teacher.encode(candidate.input)
        maps = {}
        if learned is not None:
            heads = signals.heads(teacher, [coded])[0]
            maps[SMAT] = signals.distribution(weights_for(teacher, learned) @ heads, coded)
        maps |= {id: signals.maps(teacher, id, [coded], STEPS)[0] for id in SHOWN}
        [logits] = signals.answers(teacher, [coded])
    said = None if teacher.regression else teacher.labels[int(logits.argmax())]
    tokens = [[t.text, t.start, t.end, t.segment, t.special] for t in coded.tokens]
    grid = None if coded.grid is None else list(coded.grid)
    meta = {"tokens": tokens, "grid": grid, "said": said, "score": float(logits.max()), "truncated": coded.truncated}
    return meta | {"maps": list(maps)}, maps


def _unpacked(meta: Meta, arrays: Arrays) -> Beside:
    tokens = tuple(Token(*row) for row in meta["tokens"])
    grid = None if meta["grid"] is None else (int(meta["grid"][0]), int(meta["grid"][1]))
    maps = {id: arrays[id].astype(np.float64) for id in meta["maps"]}
    return Beside(tokens, grid, maps, meta["said"], float(meta["score"]), int(meta["truncated"]))
