"""A private model that shares its weights with the loaded one until parts of it are randomized."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from engine.classifiers import AnyClassifier
from engine.errors import ExegesisError
from engine.randomization.copying import copied, fingerprint, replaced
from engine.randomization.fresh import Weights, fresh_weights
from engine.randomization.parts import weights_of


class Twin:
    """Of one loaded model, for one thread. Only fresh weights take memory: at most as much as the model itself.

    The loaded model, which other threads use meanwhile, is never written to. What the twin remembers of its passes is
    forgotten when other parts are randomized, and never mixes with what the loaded model remembers.
    """

    def __init__(self, model: AnyClassifier) -> None:
        self.weights = weights_of(model)
        self._loaded = model
        self._before = fingerprint(model.module)
        self._own: Any = dataclasses.replace(model, module=copied(model.module), memo={})  # type: ignore[type-var]
        self._fresh: dict[tuple[str, int], Weights] = {}
        self._now: tuple[frozenset[str], int] = (frozenset(), 0)

    @contextlib.contextmanager
    def randomized(self, parts: Sequence[str], seed: int) -> Iterator[AnyClassifier]:
        """The twin with these parts as if never trained; afterwards, whatever happens, it is as before.

        A part's fresh weights depend on the seed and the part alone. The caller holds the turn.
        """
        asked = frozenset(parts), seed
        if asked != self._now:
            self._own.memo.clear()
            self._now = asked
        self._fresh = {key: made for key, made in self._fresh.items() if key[0] in asked[0] and key[1] == seed}
        weights = {name: value for part in parts for name, value in self._of(part, seed).items()}
        with replaced(self._own.module, weights):
            yield self._own

    def check_untouched(self) -> None:
        """Refuses to go on where a weight of the loaded model, or of the twin once it is restored, is another."""
        if any(fingerprint(module) != self._before for module in (self._loaded.module, self._own.module)):
            raise ExegesisError(
                f"model {self._loaded.id}: its weights changed while copies of it were randomized. "
                "Start again, and report this."
            )

    def _of(self, part: str, seed: int) -> Weights:
        if (part, seed) not in self._fresh:
            self._fresh[part, seed] = fresh_weights(self._loaded, part, self.weights[part], seed)
        return self._fresh[part, seed]
