"""The work on one model: its private copy is randomized stage by stage, and explained by all methods each time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np

from cache import key_for
from engine import runtime
from engine.classifiers import AnyClassifier, Coded, load_classifier
from engine.data.sources import Candidate
from engine.errors import ExegesisError
from engine.evaluation.maps import surviving
from engine.evaluation.sample import Sample, reason
from engine.explain import predict_encoded, require_finite
from engine.models.sizes import block_count
from engine.progress import check_cancelled
from engine.randomization.pieces import (
    PREDICTION,
    Answers,
    Maps,
    Naming,
    Piece,
    Seen,
    load_answers,
    load_maps,
)
from engine.randomization.plan import Plan, is_baseline
from engine.randomization.stages import ORIGINAL, stages_of
from engine.randomization.twin import Twin
from engine.registry import explainer
from engine.result import Prediction
from engine.store import result_store
from engine.task import Attribution, Item, Task

AT_ONCE = 16
"""Examples of a piece: neighbours by length, so that little of a pass is padding. A killed run loses one piece."""
REMEMBERED = 128
"""Inputs that are held as the model reads them: pictures are large."""

Setting = tuple[tuple[str, ...], int]
"""What is random, and the seed of it."""


class Work:
    """Of one plan on one model. `faults`: why an example of the data set cannot be read."""

    def __init__(self, plan: Plan, model: str, sample: Sample) -> None:
        self.plan, self.model, self.sample = plan, model, sample
        self.stages = stages_of(plan, block_count(model))
        self.labels: dict[int, str | None] = {}
        self.faults: dict[int, str] = {}
        self.naming = Naming(plan, model, self._read_all())
        readable = [index for index in sample.indices if index not in self.faults]
        self.chunks = [tuple(readable[at : at + AT_ONCE]) for at in range(0, len(readable), AT_ONCE)]
        self._twin: Twin | None = None
        self._originals: dict[tuple[int, ...], Answers] = {}
        self._encoded: Callable[[AnyClassifier, int], Coded] = lru_cache(maxsize=REMEMBERED)(self._encode)

    def _read_all(self) -> dict[int, str]:
        keys = {}
        for one in (one for group in self.sample.groups() for one in group):
            if isinstance(one, Candidate):
                keys[one.index], self.labels[one.index] = key_for(one.input.as_plain()), one.label
            else:
                self.faults[one.index] = one.why
        return keys

    def settings(self) -> list[Setting]:
        """What is to be random, the model as it is first; what stages of both modes share stands once."""
        asked = ((stage.parts, seed) for seed in self.plan.draws for stage in self.stages)
        return [(ORIGINAL, 0), *dict.fromkeys(asked)]

    def pieces(self, setting: Setting, chunk: tuple[int, ...]) -> list[Piece]:
        """The predictions, then the maps of each method."""
        return [self.naming.piece(*setting, chunk, method) for method in (PREDICTION, *self.plan.company)]

    def all_pieces(self) -> Iterator[Piece]:
        """In the order of work."""
        for setting in self.settings():
            for chunk in self.chunks:
                yield from self.pieces(setting, chunk)

    def found(self, piece: Piece) -> Maps | Answers | None:
        """What the cache holds of it."""
        return load_answers(piece) if piece.method == PREDICTION else load_maps(piece)

    def done(self, pieces: Sequence[Piece]) -> dict[str, Maps | Answers]:
        """All of them by key, from the cache or made now and kept, unless an example failed that may not fail again."""
        made: dict[str, Maps | Answers] = {}
        for _, same in itertools.groupby(pieces, key=lambda piece: piece.stage):
            own = list(same)
            made |= {piece.key: there for piece in own if (there := self.found(piece)) is not None}
            made |= self._made([piece for piece in own if piece.key not in made])
        return made

    def check_untouched(self) -> None:
        """Refuses to go on where the loaded model is no longer what it was."""
        if self._twin is not None:
            with runtime.turn():
                self._twin.check_untouched()

    def original(self, chunk: tuple[int, ...]) -> Answers:
        """The predictions of the model as it is, with what its inputs look like to it."""
        if chunk not in self._originals:
            piece = self.naming.piece(ORIGINAL, 0, chunk, PREDICTION)
            found = self.done([piece])[piece.key]
            assert isinstance(found, Answers)
            self._originals[chunk] = found
        return self._originals[chunk]

    def _made(self, missing: Sequence[Piece]) -> dict[str, Maps | Answers]:
        """Of one stage and the same examples. The turn is given back after each method; those of attention take it
        together, so that they share their passes.
        """
        apart = [[piece] for piece in missing if not self._reads_attention(piece.method)]
        together = [piece for piece in missing if self._reads_attention(piece.method)]
        made: dict[str, Maps | Answers] = {}
        for group in filter(None, (*apart, together)):
            check_cancelled()
            first = group[0]
            known = None if not first.parts and first.method == PREDICTION else self.original(first.indices)
            # Lent between two chunks: what is randomized is a copy, which nobody else sees.
            with runtime.turn(lends=True), self._own_twin().randomized(first.parts, first.seed) as model:
                made |= self._answered(model, first, known) if first.method == PREDICTION else {}
                made |= self._explained(model, group, known) if known and first.method != PREDICTION else {}
        return made

    def _own_twin(self) -> Twin:
        if self._twin is None:
            self._twin = Twin(load_classifier(self.plan.kind, self.model, self.plan.dtype, runtime.device()))
        return self._twin

    def _answered(self, model: AnyClassifier, piece: Piece, known: Answers | None) -> dict[str, Maps | Answers]:
        failed = dict[int, str]()
        inputs = self._inputs(model, piece.indices if known is None else tuple(known.predictions), failed)
        said = surviving(lambda asked: _predictions(model, asked), list(inputs.values()))
        found = dict(zip(inputs, said, strict=True))
        unsaid = {index: reason(one) for index, one in found.items() if isinstance(one, ExegesisError)}
        predictions = {index: one for index, one in found.items() if isinstance(one, Prediction)}
        seen = {index: _seen(inputs[index]) for index in predictions} if known is None else {}
        made = Answers(predictions, seen, failed | unsaid, lasting=not unsaid)
        if made.lasting:
            result_store().put(piece.key, *made.packed())
        return {piece.key: made}

    def _explained(self, model: AnyClassifier, pieces: Sequence[Piece], known: Answers) -> dict[str, Maps | Answers]:
        inputs = self._inputs(model, tuple(known.predictions), {})
        targets = {index: known.predictions[index].index for index in inputs}
        if len(pieces) == 1:
            return {pieces[0].key: self._kept(pieces[0], self._maps(model, pieces[0], inputs, targets))}
        each = [[self._maps(model, piece, {index: inputs[index]}, targets) for piece in pieces] for index in inputs]
        columns = zip(*each, strict=True) if each else ([] for _ in pieces)
        return {piece.key: self._kept(piece, joined(own)) for piece, own in zip(pieces, columns, strict=True)}

    def _maps(
        self, model: AnyClassifier, piece: Piece, inputs: Mapping[int, Coded], targets: Mapping[int, int]
    ) -> Maps:
        said = dict(zip(inputs, predict_encoded(model, list(inputs.values())), strict=True))
        seed = self._chance(piece)
        items = [Item(coded, said[index], targets[index], seed) for index, coded in inputs.items()]
        found = surviving(lambda asked: self._run(model, piece.method, asked), items)
        scores = {index: np.asarray(one.scores, dtype=np.float64)
                  for index, one in zip(inputs, found, strict=True) if isinstance(one, Attribution)}  # fmt: skip
        failed = {index: reason(one)
                  for index, one in zip(inputs, found, strict=True) if isinstance(one, ExegesisError)}  # fmt: skip
        return Maps(scores, failed)

    def _kept(self, piece: Piece, made: Maps) -> Maps:
        if not made.failed:
            result_store().put(piece.key, *made.packed())
        return made

    def _run(self, model: AnyClassifier, method: str, items: list[Item]) -> list[Attribution]:
        """An ensemble's members are run on the same model, never taken from the cache."""
        known = explainer(method, self.plan.kind)
        params = known.settled(self.plan.params_of(method), self.model)
        made = known.function(Task(model, items, lambda member: self._run(model, member, items)), params)
        require_finite(model, f"scores by {method}", np.concatenate([one.scores for one in made]))
        return made

    def _chance(self, piece: Piece) -> int:
        """What a method draws with: the same at all stages, but a random order is drawn anew at each."""
        if not piece.parts or not is_baseline(piece.method, self.plan.kind):
            return self.plan.seed
        return int(key_for({"kind": "random order", "stage": [list(piece.parts), piece.seed]})[:8], 16) + self.plan.seed

    def _reads_attention(self, method: str) -> bool:
        if method == PREDICTION:
            return False
        known = explainer(method, self.plan.kind)
        return known.family == "attention" and not known.differentiable

    def _inputs(self, model: AnyClassifier, indices: Sequence[int], failed: dict[int, str]) -> dict[int, Coded]:
        """Examples as the model reads them, which does not depend on its weights. `failed`: takes the reasons."""
        found = {}
        for index in indices:
            try:
                found[index] = self._encoded(model, index)
            except ExegesisError as error:
                failed[index] = reason(error)
        return found

    def _encode(self, model: AnyClassifier, index: int) -> Coded:
        return model.encode(self.sample.source.read(index).input)


def joined(parts: Sequence[Maps]) -> Maps:
    """Maps of different examples."""
    return Maps(
        {index: scores for part in parts for index, scores in part.scores.items()},
        {index: why for part in parts for index, why in part.failed.items()},
    )


def _predictions(model: AnyClassifier, inputs: list[Coded]) -> list[Prediction]:
    said = predict_encoded(model, inputs)
    require_finite(model, "logits", [one.logits for one in said])
    return said


def _seen(coded: Coded) -> Seen:
    return Seen(coded.tokens, coded.grid, coded.truncated)
