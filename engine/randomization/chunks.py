"""The work on one model: its private copy is randomized stage by stage, and explained by all methods each time.

What is computed and cached together is a chunk: one stage's maps of a few examples by one method, or its predictions
of them.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial

import numpy as np
from jaxtyping import Float

from cache import key_for
from cache.codec import Arrays, Meta
from engine import runtime
from engine.data.sources import SourceExample
from engine.errors import ExegesisError
from engine.experiments.sample import Sample, bisect_failures, error_line
from engine.explain import method_key, predict_encoded, require_finite
from engine.input_kinds import load_classifier
from engine.models import catalog
from engine.models.classifier import AnyClassifier, EncodedInput
from engine.models.sizes import block_count
from engine.params import as_plain, from_mapping
from engine.progress import check_cancelled
from engine.randomization.model_copy import ModelCopy
from engine.randomization.plan import RandomizationPlan
from engine.randomization.stages import ORIGINAL, is_baseline, stages_of
from engine.registry import explainer
from engine.removal_operators import keyed_params
from engine.result import Prediction, Token
from engine.serialization import unpack_prediction
from engine.store import result_store
from engine.task import Attribution, Task, TaskItem

VERSION = 1
"""Raised whenever the numbers of a map or a prediction change."""
PREDICTION = ""
"""Stands for the predictions where a method is named."""
CHUNK_SIZE = 16
"""Examples of a chunk: neighbors by length, so that little of a pass is padding. A killed run loses one chunk."""
REMEMBERED = 128
"""Inputs that are held as the model reads them: pictures are large."""

Setting = tuple[tuple[str, ...], int]
"""What is random, and the seed of it."""
Scores = Float[np.ndarray, "seq"]


@dataclass(frozen=True)
class Chunk:
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
        """Chunks that share this share a model and examples."""
        return self.parts, self.seed, self.indices


@dataclass(frozen=True)
class ChunkMaps:
    """Scores by example, special tokens included; `failed`: why an example has none."""

    scores: Mapping[int, Scores]
    failed: Mapping[int, str] = field(default_factory=dict)

    def pack(self) -> tuple[Meta, Arrays]:
        scores = np.concatenate([np.zeros(0), *self.scores.values()])
        return {"indices": list(self.scores), "lengths": [len(one) for one in self.scores.values()]}, {"scores": scores}


@dataclass(frozen=True)
class ModelInput:
    """An example as a model reads it, whatever its weights: what a map is drawn on. `grid`: None for a text."""

    tokens: tuple[Token, ...]
    grid: tuple[int, int] | None
    truncated: int

    @property
    def features(self) -> np.ndarray:
        """Positions that are ranked: all but the special ones."""
        return np.flatnonzero([not token.special for token in self.tokens])


@dataclass(frozen=True)
class ChunkPredictions:
    """Predictions by example; of the model as it is also how it reads them. `failed`: why an example has none.

    `lasting`: all that failed cannot be read, which it never can. Otherwise another try may succeed.
    """

    predictions: Mapping[int, Prediction]
    inputs: Mapping[int, ModelInput] = field(default_factory=dict)
    failed: Mapping[int, str] = field(default_factory=dict)
    lasting: bool = True

    def pack(self) -> tuple[Meta, Arrays]:
        return {
            "indices": list(self.predictions),
            "predictions": [dataclasses.asdict(one) for one in self.predictions.values()],
            "seen": [[[dataclasses.astuple(t) for t in s.tokens], s.grid, s.truncated] for s in self.inputs.values()],
            "failed": [[index, why] for index, why in self.failed.items()],
        }, {}


ChunkResult = ChunkMaps | ChunkPredictions


def find_chunk(chunk: Chunk) -> ChunkResult | None:
    """The cached result of a chunk, None where there is none."""
    entry = result_store().get(chunk.key)
    if entry is None:
        return None
    meta, arrays = entry
    if chunk.method != PREDICTION:
        parts = np.split(np.array(arrays["scores"]), np.cumsum(meta["lengths"], dtype=int)[:-1])
        return ChunkMaps(dict(zip(meta["indices"], parts, strict=False)))
    inputs = [
        ModelInput(tuple(Token(*one) for one in tokens), tuple(grid) if grid else None, truncated)
        for tokens, grid, truncated in meta["seen"]
    ]
    return ChunkPredictions(
        dict(zip(meta["indices"], map(unpack_prediction, meta["predictions"]), strict=True)),
        dict(zip(meta["indices"], inputs, strict=False)),
        dict(meta["failed"]),
    )


class ModelWork:
    """The work of one plan on one model. `faults`: why an example of the data set cannot be read.

    `batches`: the examples of a chunk, by their places in the data set.
    """

    def __init__(self, plan: RandomizationPlan, model: str, sample: Sample) -> None:
        self.plan, self.model, self.sample = plan, model, sample
        self.stages = stages_of(plan, block_count(model))
        self.labels: dict[int, str | None] = {}
        self.faults: dict[int, str] = {}
        self._keys = self._read_all()
        readable = [index for index in sample.indices if index not in self.faults]
        self.batches = [tuple(readable[at : at + CHUNK_SIZE]) for at in range(0, len(readable), CHUNK_SIZE)]
        self._copy: ModelCopy | None = None
        self._originals: dict[tuple[int, ...], ChunkPredictions] = {}
        self._encoded: Callable[[AnyClassifier, int], EncodedInput] = lru_cache(maxsize=REMEMBERED)(self._encode)

    def _read_all(self) -> dict[int, str]:
        """The keys of examples by their places in the data set."""
        keys = {}
        for one in (one for group in self.sample.groups() for one in group):
            if isinstance(one, SourceExample):
                keys[one.index], self.labels[one.index] = key_for(one.input.as_plain()), one.label
            else:
                self.faults[one.index] = one.why
        return keys

    def settings(self) -> list[Setting]:
        """The settings of the stages without repetition, the original model first."""
        settings = ((stage.parts, seed) for seed in self.plan.all_seeds for stage in self.stages)
        return [(ORIGINAL, 0), *dict.fromkeys(settings)]

    def chunk(self, setting: Setting, indices: tuple[int, ...], method: str) -> Chunk:
        """Reads the model's files, never loads it. Nothing in the key can be taken for the model as it is."""
        parts, seed = setting
        parts_of_key = {
            "kind": "randomized",
            "version": VERSION,
            "model": [self.model, catalog.revision(self.model)],
            "dtype": self.plan.dtype,
            "device": runtime.device_type(),
            "random": [list(parts), seed] if parts else None,
            "examples": [self._keys[index] for index in indices],
            "method": self._method_key(method),
        }
        return Chunk(parts, seed if parts else 0, indices, method, key_for(parts_of_key))

    def _method_key(self, method: str) -> object:
        if method == PREDICTION:
            return None
        known = explainer(method, self.plan.kind)
        params = as_plain(from_mapping(known.params, self.plan.params_of(method), method))
        return [method, method_key(known, params, self.model), keyed_params(params), self.plan.seed]

    def chunks(self, setting: Setting, indices: tuple[int, ...]) -> list[Chunk]:
        """The predictions, then the maps of each method."""
        return [self.chunk(setting, indices, method) for method in (PREDICTION, *self.plan.methods_with_baselines)]

    def all_chunks(self) -> Iterator[Chunk]:
        """All chunks in the order of work."""
        for setting in self.settings():
            for indices in self.batches:
                yield from self.chunks(setting, indices)

    def do(self, chunks: Sequence[Chunk]) -> dict[str, ChunkResult]:
        """The results of chunks by key, cached or computed; stored unless an example failed that may succeed later."""
        results: dict[str, ChunkResult] = {}
        for _, same in itertools.groupby(chunks, key=lambda chunk: chunk.stage):
            own = list(same)
            results |= {chunk.key: there for chunk in own if (there := find_chunk(chunk)) is not None}
            results |= self._compute([chunk for chunk in own if chunk.key not in results])
        return results

    def check_untouched(self) -> None:
        """Refuse to go on where the loaded model is no longer what it was."""
        if self._copy is not None:
            with runtime.turn():
                self._copy.check_untouched()

    def original(self, indices: tuple[int, ...]) -> ChunkPredictions:
        """The predictions of the model as it is, with what its inputs look like to it."""
        if indices not in self._originals:
            chunk = self.chunk((ORIGINAL, 0), indices, PREDICTION)
            result = self.do([chunk])[chunk.key]
            assert isinstance(result, ChunkPredictions)
            self._originals[indices] = result
        return self._originals[indices]

    def _compute(self, missing: Sequence[Chunk]) -> dict[str, ChunkResult]:
        """Compute chunks of one stage and the same examples. The turn is given back after each method; methods of
        attention take it together, so that they share their passes.
        """
        apart = [[chunk] for chunk in missing if not self._reads_attention(chunk.method)]
        together = [chunk for chunk in missing if self._reads_attention(chunk.method)]
        results: dict[str, ChunkResult] = {}
        for group in filter(None, (*apart, together)):
            check_cancelled()
            first = group[0]
            original = None if not first.parts and first.method == PREDICTION else self.original(first.indices)
            # Lent between two chunks: what is randomized is a copy, which nobody else sees.
            with runtime.turn(lends=True), self._own_copy().randomized(first.parts, first.seed) as model:
                if first.method == PREDICTION:
                    results |= self._predict(model, first, original)
                elif original is not None:
                    results |= self._explain(model, group, original)
        return results

    def _own_copy(self) -> ModelCopy:
        if self._copy is None:
            self._copy = ModelCopy(load_classifier(self.plan.kind, self.model, self.plan.dtype, runtime.device()))
        return self._copy

    def _predict(
        self, model: AnyClassifier, chunk: Chunk, original: ChunkPredictions | None
    ) -> dict[str, ChunkResult]:  # fmt: skip
        failed = dict[int, str]()
        indices = chunk.indices if original is None else tuple(original.predictions)
        inputs = self._inputs(model, indices, failed)
        outcomes = dict(zip(inputs, bisect_failures(partial(_predictions, model), list(inputs.values())), strict=True))
        unpredicted = {index: error_line(one) for index, one in outcomes.items() if isinstance(one, ExegesisError)}
        predictions = {index: one for index, one in outcomes.items() if isinstance(one, Prediction)}
        read = {index: _model_input(inputs[index]) for index in predictions} if original is None else {}
        result = ChunkPredictions(predictions, read, failed | unpredicted, lasting=not unpredicted)
        if result.lasting:
            result_store().put(chunk.key, *result.pack())
        return {chunk.key: result}

    def _explain(
        self, model: AnyClassifier, chunks: Sequence[Chunk], original: ChunkPredictions
    ) -> dict[str, ChunkResult]:  # fmt: skip
        inputs = self._inputs(model, tuple(original.predictions), {})
        targets = {index: original.predictions[index].index for index in inputs}
        if len(chunks) == 1:
            return {chunks[0].key: self._keep(chunks[0], self._maps(model, chunks[0], inputs, targets))}
        each = [[self._maps(model, chunk, {index: inputs[index]}, targets) for chunk in chunks] for index in inputs]
        columns = zip(*each, strict=True) if each else ([] for _ in chunks)
        return {chunk.key: self._keep(chunk, _joined(own)) for chunk, own in zip(chunks, columns, strict=True)}

    def _maps(
        self, model: AnyClassifier, chunk: Chunk, inputs: Mapping[int, EncodedInput], targets: Mapping[int, int]
    ) -> ChunkMaps:
        predictions = dict(zip(inputs, predict_encoded(model, list(inputs.values())), strict=True))
        seed = self._seed(chunk)
        items = [TaskItem(coded, predictions[index], targets[index], seed) for index, coded in inputs.items()]
        outcomes = bisect_failures(lambda some: self._run(model, chunk.method, some), items)
        scores = {index: np.asarray(one.scores, dtype=np.float64)
                  for index, one in zip(inputs, outcomes, strict=True) if isinstance(one, Attribution)}  # fmt: skip
        failed = {index: error_line(one)
                  for index, one in zip(inputs, outcomes, strict=True) if isinstance(one, ExegesisError)}  # fmt: skip
        return ChunkMaps(scores, failed)

    def _keep(self, chunk: Chunk, maps: ChunkMaps) -> ChunkMaps:
        if not maps.failed:
            result_store().put(chunk.key, *maps.pack())
        return maps

    def _run(self, model: AnyClassifier, method: str, items: list[TaskItem]) -> list[Attribution]:
        """An ensemble's members are run on the same model, never taken from the cache."""
        known = explainer(method, self.plan.kind)
        params = known.resolve(self.plan.params_of(method), self.model)
        attributions = known.function(Task(model, items, lambda member: self._run(model, member, items)), params)
        require_finite(model, f"scores by {method}", np.concatenate([one.scores for one in attributions]))
        return attributions

    def _seed(self, chunk: Chunk) -> int:
        """The seed of a method: the same at all stages, but a random order is drawn anew at each."""
        if not chunk.parts or not is_baseline(chunk.method, self.plan.kind):
            return self.plan.seed
        stage = {"kind": "random order", "stage": [list(chunk.parts), chunk.seed]}
        return int(key_for(stage)[:8], 16) + self.plan.seed

    def _reads_attention(self, method: str) -> bool:
        if method == PREDICTION:
            return False
        known = explainer(method, self.plan.kind)
        return known.family == "attention" and not known.differentiable

    def _inputs(self, model: AnyClassifier, indices: Sequence[int], failed: dict[int, str]) -> dict[int, EncodedInput]:
        """Examples as the model reads them, which does not depend on its weights. `failed`: takes the reasons."""
        inputs = {}
        for index in indices:
            try:
                inputs[index] = self._encoded(model, index)
            except ExegesisError as error:
                failed[index] = error_line(error)
        return inputs

    def _encode(self, model: AnyClassifier, index: int) -> EncodedInput:
        return model.encode(self.sample.source.read(index).input)


def _joined(parts: Sequence[ChunkMaps]) -> ChunkMaps:
    """Maps of different examples."""
    return ChunkMaps(
        {index: scores for part in parts for index, scores in part.scores.items()},
        {index: why for part in parts for index, why in part.failed.items()},
    )


def _predictions(model: AnyClassifier, inputs: list[EncodedInput]) -> list[Prediction]:
    predictions = predict_encoded(model, inputs)
    require_finite(model, "logits", [one.logits for one in predictions])
    return predictions


def _model_input(coded: EncodedInput) -> ModelInput:
    return ModelInput(coded.tokens, coded.grid, coded.truncated)
