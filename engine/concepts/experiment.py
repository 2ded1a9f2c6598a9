"""Implementation of the experiment `concepts`: scores of concepts at each layer and class, and of random vectors.

`engine.concepts.vectors` describes the test. P-values are adjusted over concepts, layers and classes (Holm, 1979).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from cache import key_for
from cache.codec import Arrays, Meta
from engine import runtime
from engine.concepts import activations
from engine.concepts.activations import Layers
from engine.concepts.plan import INCLUDED, LEAST_EXAMPLES, MOST_CONCEPTS, MOST_EXAMPLES, ConceptsPlan
from engine.concepts.vectors import check_pool, draw_sets, mean_interval, p_value, tcav_scores, train_vectors
from engine.data.labels import match_classes
from engine.data.slices import split_slice, whole_name
from engine.data.sources import ExampleSource, SourceExample, load_source
from engine.errors import ExegesisError, UsageError, not_allowed, unknown
from engine.experiments.base import ExperimentResult, Units
from engine.experiments.run import pack_fields, unpack_fields
from engine.experiments.sample import Sample, draw_sample
from engine.input_kinds import load_classifier
from engine.jobs.kinds import WorkUnit
from engine.models import catalog
from engine.models.label_prompts import base_name
from engine.predictions import VERSION as PREDICTION_VERSION
from engine.predictions import predictions
from engine.progress import Report, check_cancelled
from engine.request import Example, Input
from engine.rules.result import holm
from engine.store import result_store

VERSIONS = [1, activations.VERSION, PREDICTION_VERSION]
COLUMNS = {
    "model": str, "dataset": str, "concept": str, "layer": int, "class": str, "run": int, "random": bool,
    "score": float, "accuracy": float,
}  # fmt: skip
Result = ExperimentResult
RANDOM_SEED, SETS_SEED = 0x7CA5, 0x7CA6
"""Separate the draws of random examples and of training sets from other draws with the same seed."""
LEAST_POOL, MOST_POOL = 200, 1000
"""Limits of the number of random examples that are read."""
LEAST_CLASS = 5
"""Minimum number of examples of a class that is scored."""
LEAST_ACCURACY = 0.6
"""Held-out accuracy below which a vector does not count as separating; chance is 0.5."""
SIGNIFICANT = 0.05
PASTED = "pasted texts"


@dataclass(frozen=True, eq=False)
class ConceptScores:
    """The scores of concepts, NaN if a concept has fewer vectors or a class has too few examples.

    `sizes`: number of examples of each concept. `class_sizes`: number of scored examples of each class. `grouping`:
    whether examples are assigned to classes by "label" or "prediction". `pool`: number of random examples. `scores`,
    `accuracy`: values of each vector. `random_scores`, `random_accuracy`: values of random vectors with as many
    examples. `failed`: errors by the examples' indices.
    """

    model: str
    dataset: str
    examples: tuple[int, ...]
    concepts: tuple[str, ...]
    sizes: tuple[int, ...]
    layers: tuple[int, ...]
    classes: tuple[str, ...]
    class_sizes: tuple[int, ...]
    grouping: str
    pool: int
    scores: Float[np.ndarray, "concept layer class run"]
    accuracy: Float[np.ndarray, "concept layer run"]
    random_scores: Float[np.ndarray, "concept layer class random_run"]
    random_accuracy: Float[np.ndarray, "concept layer random_run"]
    failed: dict[int, str]
    complete: bool

    @cached_property
    def findings(self) -> tuple[ConceptFinding, ...]:
        """One finding for each concept, class and layer that has scores."""
        places = [
            (concept, label, layer)
            for concept, label, layer in np.ndindex(len(self.concepts), len(self.classes), len(self.layers))
            if np.isfinite(self.scores[concept, layer, label]).any()
        ]
        pairs = [
            (_finite(self.scores[concept, layer, label]), _finite(self.random_scores[concept, layer, label]))
            for concept, label, layer in places
        ]
        values = [p_value(own, random) for own, random in pairs]
        return tuple(
            ConceptFinding(
                self.concepts[concept], self.classes[label], self.layers[layer], *mean_interval(own), len(own),
                *mean_interval(random), float(np.nanmean(self.accuracy[concept, layer])),
                float(np.nanmean(self.random_accuracy[concept, layer])), p, float(adjusted or 0.0),
            )
            for (concept, label, layer), (own, random), p, adjusted in zip(
                places, pairs, values, holm(values), strict=True
            )
        )  # fmt: skip


@dataclass(frozen=True)
class ConceptFinding:
    """The mean score of a concept with its 95% interval, and that of random vectors.

    `accuracy`: mean accuracy of the vectors on held-out examples. `p_holm`: p-value adjusted over concepts, layers and
    classes.
    """

    concept: str
    label: str
    layer: int
    score: float
    low: float
    high: float
    runs: int
    random: float
    random_low: float
    random_high: float
    accuracy: float
    random_accuracy: float
    p: float
    p_holm: float

    @property
    def separates(self) -> bool:
        """Whether the vectors separate the concept's examples from random ones; otherwise the score is meaningless."""
        return self.accuracy >= LEAST_ACCURACY

    @property
    def significant(self) -> bool:
        """Whether the vectors separate and the concept significantly affects the class at this layer."""
        return self.separates and self.p_holm < SIGNIFICANT


ModelResult = ConceptScores


def _finite(values: Float[np.ndarray, "run"]) -> Float[np.ndarray, "run"]:
    return values[np.isfinite(values)]


def parse_texts(texts: str) -> dict[str, list[str]]:
    """Parse pasted examples by concept, without duplicates: one per line; a line "# name" begins another concept.

    Errors: two concepts with one name.
    """
    concepts: dict[str, dict[str, None]] = {}
    name = PASTED
    for line in filter(None, map(str.strip, texts.splitlines())):
        if line.startswith("#"):
            name = line.lstrip("#").strip() or PASTED
            if name in concepts:
                raise UsageError(f"texts: two concepts are called {name!r}. Give them different names.")
            concepts[name] = {}
        else:
            concepts.setdefault(name, {})[line] = None
    return {name: list(lines) for name, lines in concepts.items()}


def concept_name(dataset: str) -> str:
    """Return the name of a slice if it has one, else that of the concept, data set, file or folder."""
    part = split_slice(dataset)[1]
    return part.name if part and part.name else dataset


def concept_sources(plan: ConceptsPlan) -> dict[str, ExampleSource | list[str]]:
    """Return the concepts by name. Errors: those of reading the data sets; two concepts with one name."""
    concepts: dict[str, ExampleSource | list[str]] = dict(parse_texts(plan.texts))
    for dataset in plan.concepts:
        name = concept_name(dataset)
        if name in concepts:
            raise UsageError(f"concepts: two are called {name!r}. Give them different names.")
        concepts[name] = _load_concept(plan.kind, dataset)
    return concepts


def _load_concept(kind: str, dataset: str) -> ExampleSource:
    try:
        return load_source(kind, INCLUDED.get(dataset, dataset), None, tolerant=True)
    except ExegesisError as error:
        reason = str(error).removeprefix("dataset: ")
        included = f" Included concepts: {', '.join(INCLUDED)}." if reason.startswith("unknown name") else ""
        named = "" if Path(whole_name(dataset)).name in reason else f"{concept_name(dataset)}: "
        raise type(error)(f"concepts: {named}{reason}{included}") from None


def check(plan: ConceptsPlan) -> None:
    """Refuse too few examples of a concept, unknown classes, and models without classes."""
    if not isinstance(plan.texts, str):
        raise not_allowed("texts", "examples of a concept, one a line", plan.texts)
    if plan.texts.strip() and plan.kind != Example.kind:
        raise UsageError("texts: the models read pictures. Name a data set or a folder of pictures as a concept.")
    if not all(type(layer) is int and layer >= 0 for layer in plan.layers) or len({*plan.layers}) < len(plan.layers):
        raise not_allowed("layers", "different layers from 0", list(plan.layers))
    concepts = concept_sources(plan)
    if not 1 <= len(concepts) <= MOST_CONCEPTS:
        raise not_allowed(
            "concepts", f"1 to {MOST_CONCEPTS} concepts: data sets, slices or texts", list(concepts),
            f"Included: {', '.join(INCLUDED)}.",
        )  # fmt: skip
    for name, source in concepts.items():
        count = len(source) if isinstance(source, list) else source.count
        if count < LEAST_EXAMPLES:
            raise UsageError(
                f"concepts: {name} must have at least {LEAST_EXAMPLES} examples, got {count}. Add some; 50 are good."
            )
    for model in plan.models:
        if plan.kind == Example.kind and base_name(model) != model:
            raise UsageError(
                f"models: {model} reads a text once per label, so that a text has no activations of its own. Choose a "
                "model without labels of your own."
            )
        labels = class_labels(model)
        for label in plan.classes:
            if label not in labels:
                raise unknown("class", label, labels)


def class_labels(model: str) -> tuple[str, ...]:
    """Return the classes of a model, without loading it. Errors: it has none of its own."""
    if catalog.is_causal(model):
        raise UsageError(f"models: {model} is a language model. Concepts are tested on classifiers. Choose one.")
    try:
        labels = catalog.model_labels(model)
    except (TypeError, ValueError, LookupError) as error:
        raise ExegesisError(f"models: config.json of {model} lists no classes ({error}). Save it again.") from None
    if len(labels) < 2:
        raise UsageError(f"models: {model} predicts a score, and concepts are tested for classes. Choose a classifier.")
    return labels


def sample(plan: ConceptsPlan) -> Sample:
    """Draw the scored examples with the seed. Errors: those of reading the data set."""
    return draw_sample(plan.kind, plan.dataset, plan.split, plan.examples, plan.seed)


def units(plan: ConceptsPlan, sample: Sample) -> Units:
    """Return a unit for the activations of each concept and of random examples, and for the gradients of each class."""
    work = _Work(plan, sample)
    return Units(WorkUnit(key, label, compute, stores_itself=True, group=[label]) for label, key, compute in work.steps)


def assemble(plan: ConceptsPlan, sample: Sample, report: Report) -> ConceptScores:
    """Return the scores on one model, from cached or newly computed activations and gradients."""
    work = _Work(plan, sample)
    for done, (label, _, compute) in enumerate(work.steps):
        check_cancelled()
        report(done, len(work.steps), label)
        compute()
    return work.result()


class _Work:
    """The work of a plan on one model. Every step caches its arrays."""

    def __init__(self, plan: ConceptsPlan, sample: Sample) -> None:
        self.plan, self.sample = plan, sample
        [self.model] = plan.models
        self.labels = class_labels(self.model)
        self.classes = plan.classes or self.labels
        self.failed: dict[int, str] = {}

    @cached_property
    def concepts(self) -> dict[str, list[Input]]:
        """The examples of each concept."""
        concepts: dict[str, list[Input]] = {}
        has_pairs = self.sample.source.pairs
        for name, source in concept_sources(self.plan).items():
            if (not isinstance(source, list) and source.pairs) != has_pairs:
                own, others = ("single texts", "pairs") if has_pairs else ("pairs", "single texts")
                raise UsageError(
                    f"concepts: {name} has {own}, but {self.plan.dataset} {others}: the vectors would separate these. "
                    f"Give {others}."
                )
            if isinstance(source, list):
                concepts[name] = [Example(text) for text in source[:MOST_EXAMPLES]]
            else:
                order = np.random.default_rng([RANDOM_SEED, self.plan.seed, 1]).permutation(source.count)
                inputs = [one.input for one in _readable(source, order[:MOST_EXAMPLES].tolist())]
                # With duplicates, vectors would agree although each should have its own examples.
                concepts[name] = list({_input_key(one): one for one in inputs}.values())
            if (count := len(concepts[name])) < LEAST_EXAMPLES:
                raise UsageError(
                    f"concepts: {name} must have at least {LEAST_EXAMPLES} different examples that can be read, got "
                    f"{count}. Add some; 50 are good."
                )
        return concepts

    @cached_property
    def pool(self) -> list[Input]:
        """Random examples of the data set, without the examples of concepts."""
        source, most = self.sample.source, 6 * max(map(len, self.concepts.values()))
        order = np.random.default_rng([RANDOM_SEED, self.plan.seed, 0]).permutation(source.count).tolist()
        taken = {_input_key(one) for examples in self.concepts.values() for one in examples}
        wanted = min(MOST_POOL, max(LEAST_POOL, most))
        inputs = (one.input for one in _readable(source, order[: wanted + len(taken)]))
        pool = [one for one in inputs if _input_key(one) not in taken][:wanted]
        for examples in self.concepts.values():
            check_pool(len(examples), len(pool), self.plan.runs)
        return pool

    @cached_property
    def scored(self) -> list[SourceExample]:
        """The examples whose classes are scored."""
        read = [one for group in self.sample.groups() for one in group]
        self.failed |= {one.index: one.why for one in read if not isinstance(one, SourceExample)}
        return [one for one in read if isinstance(one, SourceExample)]

    @cached_property
    def groups(self) -> tuple[str, dict[str, list[SourceExample]]]:
        """The grouping, and the scored examples of each class: by label, or by prediction if labels do not match."""
        source = self.sample.source
        matched = match_classes(source.labels, self.labels, source.unnamed).indices if source.labels else None
        if matched is not None:
            own = [None if one.class_index is None else matched[one.class_index] for one in self.scored]
        else:
            predicted = predictions(self.model, [one.input for one in self.scored], self.plan.dtype)
            own = [one.index for one in predicted]
        groups = {
            label: [one for one, at in zip(self.scored, own, strict=True) if at == self.labels.index(label)]
            for label in self.classes
        }
        return "prediction" if matched is None else "label", groups

    @cached_property
    def steps(self) -> list[tuple[str, str, Callable[[], Layers]]]:
        """The name of each step, its cache key, and the function that returns its arrays."""
        sets = {f"concept {name}": examples for name, examples in self.concepts.items()}
        steps = [
            self._step(label, examples, None) for label, examples in {**sets, "random examples": self.pool}.items()
        ]
        for label, own in self.groups[1].items():
            if len(own) >= LEAST_CLASS:
                inputs = [one.input for one in own]
                steps.append(self._step(f"class {label}", inputs, self.labels.index(label)))
        return steps

    def _step(
        self, label: str, examples: list[Input], target: int | None
    ) -> tuple[str, str, Callable[[], Layers]]:  # fmt: skip
        key = self._key(kind="concept activations", examples=[one.as_plain() for one in examples], target=target)
        return f"{label}, {self.model}", key, partial(self._layers, key, examples, target)

    def _layers(self, key: str, examples: list[Input], target: int | None) -> Layers:
        if (entry := result_store().get(key)) is not None:
            return [entry[1][str(layer)].astype(np.float64) for layer in range(len(entry[1]))]
        with runtime.turn(lends=True):
            model = load_classifier(self.plan.kind, self.model, self.plan.dtype, runtime.device())
            for one in examples:
                one.check_length()
            encoded = [model.encode(one) for one in examples]
            layers = (
                activations.activations(model, encoded) if target is None
                else activations.gradients(model, encoded, target)
            )  # fmt: skip
        if not all(np.isfinite(layer).all() for layer in layers):
            raise ExegesisError(f"model {self.model}: activations are not finite. Choose dtype float32.")
        result_store().put(key, {}, {str(at): layer.astype(np.float32) for at, layer in enumerate(layers)})
        return [layer.astype(np.float32).astype(np.float64) for layer in layers]

    def result(self) -> ConceptScores:
        """Return the scores of all concepts, layers and classes. Errors: a layer that the model does not have."""
        layers = {label.removesuffix(f", {self.model}"): compute() for label, _, compute in self.steps}
        pool = layers["random examples"]
        for layer in self.plan.layers:
            if layer >= len(pool):
                raise not_allowed("layers", f"layers from 0 to {len(pool) - 1} of {self.model}", layer)
        chosen = self.plan.layers or tuple(range(len(pool)))
        grouping, groups = self.groups
        columns: list[tuple[np.ndarray, ...]] = []
        for place, (name, examples) in enumerate(self.concepts.items()):
            seed = [SETS_SEED, self.plan.seed, place]
            sets = draw_sets(len(examples), len(self.pool), self.plan.runs, seed)
            trained = [train_vectors(layers[f"concept {name}"][at], pool[at], sets) for at in chosen]
            columns.append(
                tuple(
                    array
                    for side in range(2)
                    for array in (
                        np.array([
                            [_scores(layers.get(f"class {label}"), at, own[side].vectors) for label in self.classes]
                            for at, own in zip(chosen, trained, strict=True)
                        ]),
                        np.array([own[side].accuracy for own in trained]),
                    )
                )
            )  # fmt: skip
        scores, accuracy, random_scores, random_accuracy = map(_stack, zip(*columns, strict=True))
        return ConceptScores(
            self.model, self.plan.dataset, tuple(one.index for one in self.scored), tuple(self.concepts),
            tuple(map(len, self.concepts.values())), chosen, self.classes, tuple(map(len, groups.values())), grouping,
            len(self.pool), scores, accuracy, random_scores, random_accuracy, self.failed, complete=not self.failed,
        )  # fmt: skip

    def _key(self, **own: object) -> str:
        return key_for(
            {
                **own,
                "version": VERSIONS,
                "model": [self.model, catalog.revision(self.model)],
                "dtype": self.plan.dtype,
                "device": runtime.device_type(),
            }
        )


def _input_key(one: Input) -> str:
    return key_for({"input": one.as_plain()})


def _readable(source: ExampleSource, places: Sequence[int]) -> Iterator[SourceExample]:
    for place in places:
        try:
            yield source.read(place)
        except ExegesisError:
            continue  # counted where the data set itself is scored


def _scores(gradients: Layers | None, layer: int, vectors: np.ndarray) -> np.ndarray:
    return np.full(len(vectors), np.nan) if gradients is None else tcav_scores(gradients[layer], vectors)


def _stack(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Stack arrays, with the last axis padded with NaN."""
    most = max(one.shape[-1] for one in arrays)
    padding = [[(0, 0)] * (one.ndim - 1) + [(0, most - one.shape[-1])] for one in arrays]
    return np.stack([np.pad(one, pad, constant_values=np.nan) for one, pad in zip(arrays, padding, strict=True)])


def result_key(plan: ConceptsPlan, sample: Sample) -> str:
    """Return the cache key: the plan, the model, and the content of the data set and of each concept."""
    [model], source = plan.models, sample.source
    sets = {name: one for name, one in concept_sources(plan).items() if not isinstance(one, list)}
    return key_for(
        {
            "kind": "concepts",
            "version": VERSIONS,
            "plan": {name: value for name, value in plan.as_plain().items() if name not in ("models", "params")},
            "model": [model, catalog.revision(model)],
            "data": [source.name, source.revision, source.count],
            "concepts": [[name, one.revision, one.count] for name, one in sets.items()],
            "device": runtime.device_type(),
        }
    )


def pack(result: ConceptScores) -> tuple[Meta, Arrays]:
    """Convert a result to a cache entry."""
    meta, arrays = pack_fields(result)
    return {name: value for name, value in meta.items() if name != "findings"}, arrays


def unpack(plan: ConceptsPlan, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> ConceptScores:
    """Read a result from a cache entry."""
    result: ConceptScores = unpack_fields(ConceptScores, meta, arrays)
    return result


def rows(found: ConceptScores) -> Iterator[dict[str, Any]]:
    """Yield a row for each vector, layer and class, of concepts and of random examples."""
    sides = ((False, found.scores, found.accuracy), (True, found.random_scores, found.random_accuracy))
    for random, scores, accuracy in sides:
        for concept, layer, label, run in np.argwhere(np.isfinite(scores)).tolist():
            yield {
                "model": found.model, "dataset": found.dataset, "concept": found.concepts[concept],
                "layer": found.layers[layer], "class": found.classes[label], "run": run, "random": random,
                "score": float(scores[concept, layer, label, run]), "accuracy": float(accuracy[concept, layer, run]),
            }  # fmt: skip


def to_json(result: ExperimentResult) -> dict[str, Any]:
    """Return the plan, and the concepts and findings of each model."""
    return {
        "plan": result.plan.as_plain(),
        "models": [
            {
                "model": one.model, "dataset": one.dataset, "grouping": one.grouping, "random_examples": one.pool,
                "concepts": dict(zip(one.concepts, one.sizes, strict=True)),
                "classes": dict(zip(one.classes, one.class_sizes, strict=True)),
                "left_out": {str(index): why for index, why in one.failed.items()},
                "findings": [
                    {**vars(own), "separates": own.separates, "significant": own.significant} for own in one.findings
                ],
            }
            for one in result.models
        ],
    }  # fmt: skip
