"""The work on one model: randomize a private copy stage by stage, and explain it with all methods each time.

The unit of computing and caching is a chunk: the maps of a few examples by one method at one stage, or the predictions.
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
from engine.errors import ExegesisError, one_line, unknown
from engine.experiments.sample import Sample, bisect_failures
from engine.explain import method_key, predict_encoded, require_finite, require_finite_logits
from engine.input_kinds import load_classifier
from engine.models import catalog
from engine.models.classifier import AnyClassifier, EncodedInput
from engine.models.summary import block_count
from engine.params import as_plain, from_mapping
from engine.progress import check_cancelled
from engine.randomization.model_copy import ModelCopy
from engine.randomization.plan import RandomizationPlan
from engine.randomization.result import ORIGINAL, Stage, is_baseline, stages_of
from engine.registry import explainer
from engine.removal_operators import keyed_params
from engine.result import Explanation, Prediction, Provenance, Token, explained_class, unpack_prediction
from engine.store import result_store
from engine.task import Attribution, Task, TaskItem

VERSION = 1
"""Increase it whenever the values of a map or a prediction change."""
PREDICTION = ""
"""The `method` of chunks of predictions."""
CHUNK_SIZE = 16
"""Number of examples in a chunk, of similar length to save padding. A stopped run loses at most one chunk."""
REMEMBERED = 128
"""Number of encoded inputs held in memory, since pictures are large."""

Setting = tuple[tuple[str, ...], int]
"""The randomized parts and the seed."""
Scores = Float[np.ndarray, "seq"]


@dataclass(frozen=True)
class Chunk:
    """A piece of work: the maps of some examples by one method, or their predictions.

    `parts`: the randomized parts in cascade order. `seed`: seed of the randomization, 0 without one. `indices`: indices
    of the examples in the data set. `method`: method of the maps, or `PREDICTION`. `key`: cache key.
    """

    parts: tuple[str, ...]
    seed: int
    indices: tuple[int, ...]
    method: str
    key: str

    @property
    def stage(self) -> tuple[tuple[str, ...], int, tuple[int, ...]]:
        """The randomized model and the examples."""
        return self.parts, self.seed, self.indices


@dataclass(frozen=True)
class ChunkMaps:
    """Scores by example, including special tokens. `failed`: reasons why examples have no scores."""

    scores: Mapping[int, Scores]
    failed: Mapping[int, str] = field(default_factory=dict)

    def pack(self) -> tuple[Meta, Arrays]:
        scores = np.concatenate([np.zeros(0), *self.scores.values()])
        return {"indices": list(self.scores), "lengths": [len(one) for one in self.scores.values()]}, {"scores": scores}


@dataclass(frozen=True)
class ModelInput:
    """The tokens of an example, which do not depend on the model's weights. `grid`: None for a text."""

    tokens: tuple[Token, ...]
    grid: tuple[int, int] | None
    truncated: int

    @property
    def features(self) -> np.ndarray:
        """The ranked positions: all except special tokens."""
        return np.flatnonzero([not token.special for token in self.tokens])


@dataclass(frozen=True)
class ChunkPredictions:
    """Predictions by example. `inputs`: only for the original model. `failed`: reasons why examples have none.

    `lasting`: whether all failures are unreadable examples; other failures may succeed on a retry.
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
    """The cached result of a chunk, or None."""
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
    """The work of one plan on one model. `faults`: reasons why examples are unreadable. `batches`: indices by chunk."""

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
        """Read all examples and return their keys by index."""
        keys = {}
        for one in (one for group in self.sample.groups() for one in group):
            if isinstance(one, SourceExample):
                keys[one.index], self.labels[one.index] = key_for(one.input.as_plain()), one.label
            else:
                self.faults[one.index] = one.why
        return keys

    def settings(self) -> list[Setting]:
        """The distinct settings of the stages, the original model first."""
        settings = ((stage.parts, seed) for seed in self.plan.all_seeds for stage in self.stages)
        return [(ORIGINAL, 0), *dict.fromkeys(settings)]

    def chunk(self, setting: Setting, indices: tuple[int, ...], method: str) -> Chunk:
        """Return a chunk with its key. Reads the model's files without loading it."""
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
        """The chunks of one setting and batch: the predictions, then the maps of each method."""
        return [self.chunk(setting, indices, method) for method in (PREDICTION, *self.plan.methods_with_baselines)]

    def all_chunks(self) -> Iterator[Chunk]:
        """Yield all chunks in the order of work."""
        for setting in self.settings():
            for indices in self.batches:
                yield from self.chunks(setting, indices)

    def do(self, chunks: Sequence[Chunk]) -> dict[str, ChunkResult]:
        """Return the results of chunks by key, computed if not cached. Temporary failures are not stored."""
        results: dict[str, ChunkResult] = {}
        for _, same in itertools.groupby(chunks, key=lambda chunk: chunk.stage):
            own = list(same)
            results |= {chunk.key: there for chunk in own if (there := find_chunk(chunk)) is not None}
            results |= self._compute([chunk for chunk in own if chunk.key not in results])
        return results

    def check_untouched(self) -> None:
        """Raise if the loaded model has changed."""
        if self._copy is not None:
            with runtime.turn():
                self._copy.check_untouched()

    def original(self, indices: tuple[int, ...]) -> ChunkPredictions:
        """The predictions and inputs of the original model."""
        if indices not in self._originals:
            chunk = self.chunk((ORIGINAL, 0), indices, PREDICTION)
            result = self.do([chunk])[chunk.key]
            assert isinstance(result, ChunkPredictions)
            self._originals[indices] = result
        return self._originals[indices]

    def _compute(self, missing: Sequence[Chunk]) -> dict[str, ChunkResult]:
        """Compute chunks of the same stage and examples.

        The device is released after each method. Attention methods run together and share forward passes.
        """
        apart = [[chunk] for chunk in missing if not self._reads_attention(chunk.method)]
        together = [chunk for chunk in missing if self._reads_attention(chunk.method)]
        results: dict[str, ChunkResult] = {}
        for group in filter(None, (*apart, together)):
            check_cancelled()
            first = group[0]
            original = None if not first.parts and first.method == PREDICTION else self.original(first.indices)
            # The device is lent between two chunks: only a private copy is randomized.
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
        unpredicted = {index: one_line(one) for index, one in outcomes.items() if isinstance(one, ExegesisError)}
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
        targets = {
            index: model.target_index(None, original.predictions[index], coded) for index, coded in inputs.items()
        }
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
        failed = {index: one_line(one)
                  for index, one in zip(inputs, outcomes, strict=True) if isinstance(one, ExegesisError)}  # fmt: skip
        return ChunkMaps(scores, failed)

    def _keep(self, chunk: Chunk, maps: ChunkMaps) -> ChunkMaps:
        if not maps.failed:
            result_store().put(chunk.key, *maps.pack())
        return maps

    def _run(self, model: AnyClassifier, method: str, items: list[TaskItem]) -> list[Attribution]:
        """Run a method. Members of an ensemble run on the same model, without the cache."""
        known = explainer(method, self.plan.kind)
        params = known.resolve(self.plan.params_of(method), self.model)
        attributions = known.function(Task(model, items, lambda member: self._run(model, member, items)), params)
        require_finite(model, f"scores by {method}", np.concatenate([one.scores for one in attributions]))
        return attributions

    def _seed(self, chunk: Chunk) -> int:
        """The seed of the method: the same at all stages, except for baselines."""
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
        """Encode the examples. Reasons why examples cannot be encoded are added to `failed`."""
        inputs = {}
        for index in indices:
            try:
                inputs[index] = self._encoded(model, index)
            except ExegesisError as error:
                failed[index] = one_line(error)
        return inputs

    def _encode(self, model: AnyClassifier, index: int) -> EncodedInput:
        return model.encode(self.sample.source.read(index).input)


def _joined(parts: Sequence[ChunkMaps]) -> ChunkMaps:
    """Join the maps of different examples."""
    return ChunkMaps(
        {index: scores for part in parts for index, scores in part.scores.items()},
        {index: why for part in parts for index, why in part.failed.items()},
    )


def _predictions(model: AnyClassifier, inputs: list[EncodedInput]) -> list[Prediction]:
    predictions = predict_encoded(model, inputs)
    require_finite_logits(model, predictions)
    return predictions


def _model_input(coded: EncodedInput) -> ModelInput:
    return ModelInput(coded.tokens, coded.grid, coded.truncated)


@dataclass(frozen=True)
class StageMaps:
    """The results of one example at one stage. `stage`: None for the original model.

    `prediction`: prediction at this stage. `maps`: maps of the explained class by method; failed methods are missing.
    """

    stage: Stage | None
    prediction: Prediction
    maps: dict[str, Explanation]


def stage_maps(
    plan: RandomizationPlan, model: str, sample: Sample, index: int, seed: int | None = None
) -> list[StageMaps]:
    """Read the cached results of one example: the original model, then the stages in the order of `stages_of`.

    `index`: index of the example in the data set, one of `ModelRandomization.examples`. `seed`: seed of the
    randomization; None for the first one. No model is loaded. Raises for an example or a seed that is not in the plan.
    """
    reader = _Reader(plan, model, sample, index)
    seed = plan.seed if seed is None else seed
    if seed not in plan.all_seeds:
        raise unknown("seed", seed, map(str, plan.all_seeds))
    original = reader.predictions((ORIGINAL, 0))
    if original is None:
        return []
    settings = [(None, (ORIGINAL, 0)), *((stage, (stage.parts, seed)) for stage in reader.work.stages)]
    each = (reader.stage(stage, setting, original) for stage, setting in settings)
    return [one for one in each if one is not None]


class _Reader:
    """Reads the cached results of one example on one model."""

    def __init__(self, plan: RandomizationPlan, model: str, sample: Sample, index: int) -> None:
        self.plan, self.model, self.index = plan, model, index
        self.work = ModelWork(plan, model, sample)
        own = next((indices for indices in self.work.batches if index in indices), None)
        if own is None:
            raise ExegesisError(f"example {index}: is not one of the examples of this run.")
        self.indices = own

    def predictions(self, setting: Setting) -> ChunkPredictions | None:
        """The predictions of the chunk; None if there is none for the example."""
        result = find_chunk(self.work.chunk(setting, self.indices, PREDICTION))
        return result if isinstance(result, ChunkPredictions) and self.index in result.predictions else None

    def stage(self, stage: Stage | None, setting: Setting, original: ChunkPredictions) -> StageMaps | None:
        own = self.predictions(setting)
        if own is None:
            return None
        prediction, maps = own.predictions[self.index], dict[str, Explanation]()
        for method in self.plan.methods_with_baselines:
            result = find_chunk(self.work.chunk(setting, self.indices, method))
            if isinstance(result, ChunkMaps) and self.index in result.scores:
                scores = result.scores[self.index]
                note = () if stage is None else (f"Randomized model: {stage.words}, seed {setting[1]}.",)
                maps[method] = self._explanation(method, scores, prediction, original, note)
        return StageMaps(stage, prediction, maps)

    def _explanation(
        self, method: str, scores: Scores, prediction: Prediction, original: ChunkPredictions, notes: tuple[str, ...]
    ) -> Explanation:
        read = original.inputs[self.index]
        target = explained_class(self.work.sample.source.read(self.index).input, original.predictions[self.index])
        known = explainer(method, self.plan.kind)
        params = as_plain(from_mapping(known.params, self.plan.params_of(method), method))
        provenance = Provenance(
            self.model, catalog.revision(self.model), method, known.version, params, target,
            prediction.labels[target], self.plan.seed, self.plan.dtype, runtime.device_type(),
        )  # fmt: skip
        return Explanation(
            tokens=read.tokens,
            scores=scores,
            prediction=prediction,
            provenance=provenance,
            evaluations=0,
            seconds=0.0,
            notes=notes,
            truncated=read.truncated,
            cached=True,
            grid=read.grid,
        )
