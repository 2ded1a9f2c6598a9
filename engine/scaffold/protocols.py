"""The check for trivial protocols: does a learned explainer only point at what could leak a label (SMaT, section 7)?

What special tokens get is 0 by construction and needs no check: they are masked out of every explanation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from cache import key_for
from cache.codec import Arrays, Meta
from engine.metrics.results import Interval, interval
from engine.progress import CancelToken, cancellable, check_cancelled
from engine.scaffold.asked import Asked, Learned
from engine.scaffold.plan import ATTENTION, SMAT
from engine.store import result_store

VERSION = 1
"""Raised whenever the numbers come out otherwise."""
UNIFORM, STATIC = "uniform", ATTENTION[0]
MOVED = 0.1
"""Of an explanation's mass: from so much more than a uniform map on, an explainer is said to lean on a kind."""


@dataclass(frozen=True)
class Mass:
    """The mean share, 0 to 1, of an explainer's mass on a kind of features, with a 95 % interval over examples.

    `moved`: how much more that is than a uniform map puts there, -1 to 1, with its own `moved_interval`.
    """

    kind: str
    explainer: str
    mean: float
    interval: Interval | None
    moved: float
    moved_interval: Interval | None

    @property
    def leans(self) -> bool:
        """Whether it puts at least `MOVED` more there than a uniform map, and more than chance explains."""
        return self.moved >= MOVED and self.moved_interval is not None and self.moved_interval[0] > 0


@dataclass(frozen=True, eq=False)
class Protocols:
    """`shares`: by kind and explainer, of each example. `examples`: their places. `skipped`: the others, by reason."""

    asked: Asked
    examples: tuple[int, ...]
    shares: Mapping[tuple[str, str], Float[np.ndarray, "example"]]
    skipped: Mapping[str, int]

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(kind for kind, _ in self.shares))

    @property
    def explainers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(explainer for _, explainer in self.shares))

    def mass(self, kind: str, explainer: str) -> Mass:
        """One cell. Only where there are examples."""
        mine = self.shares[kind, explainer]
        moved = mine - self.shares[kind, UNIFORM]
        return Mass(kind, explainer, float(mine.mean()), interval(mine), float(moved.mean()), interval(moved))

    @property
    def suspect(self) -> tuple[Mass, ...]:
        """The kinds on which the learned explainer leans."""
        if not self.examples or SMAT not in self.explainers:
            return ()
        return tuple(found for kind in self.kinds if (found := self.mass(kind, SMAT)).leans)


def protocols(asked: Asked, learned: Learned | None, cancel: CancelToken | None = None) -> Protocols:
    """From the store, or measured now and kept. Errors: those of the data set and the teacher."""
    with cancellable(cancel):
        key = protocols_key(asked, learned)
        entry = result_store().get(key)
        if entry is None:
            check_cancelled()
            # Here and not above: it imports what runs models.
            from engine.scaffold.measuring_mass import measure

            entry = measure(asked, learned)
            result_store().put(key, *entry)
        return _unpacked(asked, *entry)


def protocols_key(asked: Asked, learned: Learned | None) -> str:
    """The cache key."""
    own = None if learned is None else learned.as_key()
    return key_for({"kind": "scaffold protocols", "version": VERSION, "learned": own} | asked.as_key)


def _unpacked(asked: Asked, meta: Meta, arrays: Arrays) -> Protocols:
    shares = {(kind, explainer): arrays[f"{kind}.{explainer}"] for kind, explainer in meta["cells"]}
    return Protocols(asked, tuple(meta["examples"]), shares, dict(meta["skipped"]))
