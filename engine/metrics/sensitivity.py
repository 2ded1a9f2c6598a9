"""Sensitivity of a map to small changes of its input, and its complexity (both after Bhatt et al., 2020).

Texts have no neighbors, so the word embedding of each token is perturbed: every dimension by a value drawn uniformly
within `radius` times the standard deviation of the text's embeddings. Pictures are perturbed at the pixels that the
model reads: every color channel by a value drawn uniformly within `radius` times the color range, clipped to that
range. Special tokens and position embeddings are unchanged. Both neighborhoods are balls in the maximum norm, as in Yeh
et al. (2019), On the (in)fidelity and sensitivity of explanations, section 3.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from jaxtyping import Float, Int

from cache import key_for
from engine import runtime
from engine.errors import ExegesisError, not_allowed
from engine.explain import explain_many, key_of, predict_encoded, require_finite
from engine.heads.scaling import scaled_model
from engine.input_kinds import load_classifier
from engine.lazy import torch
from engine.metrics.catalog import SAMPLES
from engine.models.causal import CausalModel, EncodedPrompt, PromptBatch
from engine.models.classifier import AnyClassifier, EncodedInput, as_float64
from engine.models.label_classifier import LabelClassifier
from engine.models.text_classifier import EncodedText, TextBatch, TextClassifier
from engine.models.zero_shot import ZeroShotClassifier
from engine.progress import check_cancelled
from engine.registry import Explainer, explainer
from engine.request import Request
from engine.result import Explanation
from engine.store import result_store
from engine.task import Attribution, Task, TaskItem
from engine.vision.classifier import ImageClassifier
from engine.vision.picture import EncodedPicture

VERSION = 1
"""Increased whenever the values of sensitivities change."""
EXAMPLES_AT_ONCE = 8
UNSTABLE = "every small change of the input changes the prediction"
FLAT = "all scores are zero"
RADII = {"text": 0.1, "image": 0.02}
"""Default radius by kind of input: for texts about 6% of the length of an embedding, for pictures 5 of 255 levels."""
MOVES = 0x5E25
"""Separates these draws from those of methods with the same seed."""


def complexity(scores: Float[np.ndarray, "unit"]) -> float | None:
    """Return the complexity of a map: the entropy of `|a| / sum |a|` in nats.

    0 if only one score is not 0, log n if all have the same size; None for a zero map.

    Source: Bhatt et al. (2020), Evaluating and aggregating feature-based model explanations, complexity.
    """
    size = np.abs(scores)
    total = size.sum()
    if total == 0:
        return None
    share = size[size > 0] / total
    return float(-(share * np.log(share)).sum()) + 0.0


@dataclass(frozen=True)
class Sensitivity:
    """Sensitivity of a map. `value`: at least 0, relative to the norm of the map; None for the given `reason`.

    `kept`: number of small changes that left the prediction unchanged. `evaluations`: number of model evaluations.
    """

    value: float | None
    kept: int
    evaluations: int
    reason: str = ""


def sensitivities(
    requests: Sequence[Request],
    radius: int | float | None = None,
    samples: int = SAMPLES,
) -> list[Sensitivity]:
    """Return `max ||a(x') - a(x)|| / ||a(x)||` over neighbors x' with the same predicted class, one per request.

    `samples` neighbors are drawn by `move` within `radius`, by default that of `RADII`. The explained class remains
    that of x. The change is divided by the norm of the map, as in Captum, to compare methods with different units.
    Random methods draw anew for each neighbor, as for any other input; this variation is part of what a reader sees.
    Sources: Yeh et al. (2019), SENS_MAX, by sampling; Bhatt et al. (2020), who keep the predicted class.
    """
    if samples < 1:
        raise not_allowed("samples", "a whole number of at least 1", samples)
    if radius is not None and not radius > 0:
        raise not_allowed("radius", "a number above 0", radius)
    maps = explain_many(requests)
    queries = [_SensitivityQuery.of_map(*pair, radius, samples) for pair in zip(requests, maps, strict=True)]
    results = _load_cached(queries)
    for group in _groups([query for query in queries if query.key not in results]):
        check_cancelled()
        with runtime.turn(lends=True):
            results |= _measure(group)
    return [results[query.key] for query in queries]


@dataclass(frozen=True, eq=False)
class _SensitivityQuery:
    """A map with the neighborhood of its input, and the cache key of its sensitivity."""

    request: Request
    explanation: Explanation
    radius: float
    samples: int

    @classmethod
    def of_map(
        cls, request: Request, explanation: Explanation, radius: int | float | None, samples: int
    ) -> _SensitivityQuery:
        """Return the query of a map. `radius`: None for the default of the input's kind."""
        # By its index, so that "the predicted class" and its name share a key.
        request = dataclasses.replace(request, target=explanation.provenance.target)
        return cls(request, explanation, float(RADII[request.example.kind] if radius is None else radius), samples)

    @property
    def method(self) -> Explainer:
        return explainer(self.request.method, self.request.example.kind)

    @cached_property
    def key(self) -> str:
        return key_for(
            {
                "kind": "sensitivity",
                "version": VERSION,
                "explanation": key_of(self.request),
                "radius": self.radius,
                "samples": self.samples,
            }
        )

    @property
    def task_key(self) -> tuple[Any, ...]:
        """Key of the task; queries with the same key can form one task."""
        request = self.request
        params = tuple(sorted(request.params.items()))
        return request.model, request.dtype, request.example.kind, request.method, params, request.heads


def _groups(queries: Sequence[_SensitivityQuery]) -> Iterator[list[_SensitivityQuery]]:
    groups: dict[tuple[Any, ...], dict[str, _SensitivityQuery]] = {}
    for query in queries:
        groups.setdefault(query.task_key, {})[query.key] = query
    for group in groups.values():
        alike = list(group.values())
        for start in range(0, len(alike), EXAMPLES_AT_ONCE):
            yield alike[start : start + EXAMPLES_AT_ONCE]


def _load_cached(queries: Sequence[_SensitivityQuery]) -> dict[str, Sensitivity]:
    store = result_store()
    return {query.key: Sensitivity(**entry[0]) for query in queries if (entry := store.get(query.key)) is not None}


def _measure(queries: Sequence[_SensitivityQuery]) -> dict[str, Sensitivity]:
    """Measure maps that form one task. The caller holds the device."""
    results, request = _load_cached(queries), queries[0].request
    missing = [query for query in queries if query.key not in results]
    if not missing:
        return results
    shared = load_classifier(request.example.kind, request.model, request.dtype, runtime.device())
    with scaled_model(shared, request.heads) as running:
        model = classifier_of_neighbors(running)
        items = [_neighbors(running, model, query) for query in missing]
        attributions = _explain(request.method, request, model, [item for own in items for item in own])
        for attribution in attributions:
            require_finite(model, f"scores by {request.method} near the input", attribution.scores)
    ends = np.cumsum([len(own) for own in items])
    for query, own, end in zip(missing, items, ends, strict=True):
        results[query.key] = result = _sensitivity(query, attributions[end - len(own) : end])
        result_store().put(query.key, dataclasses.asdict(result), {})
    return results


def _neighbors(running: AnyClassifier, model: AnyClassifier, query: _SensitivityQuery) -> list[TaskItem]:
    """Return the neighbors with the input's predicted class (all for a regression head); none for a zero map."""
    explanation = query.explanation
    if not explanation.scores[explanation.features].any():
        return []
    encoded, seed = running.encode(query.request.example), query.request.seed
    near = [move(running, encoded, number, query.radius, seed) for number in range(query.samples)]
    seeds = [int(np.random.SeedSequence([seed, number]).generate_state(1)[0]) for number in range(query.samples)]
    return [
        TaskItem(coded, prediction, explanation.provenance.target, own_seed)
        for coded, prediction, own_seed in zip(near, predict_encoded(model, near), seeds, strict=True)
        if prediction.regression or prediction.index == explanation.prediction.index
    ]


def _explain(method: str, request: Request, model: AnyClassifier, items: list[TaskItem]) -> list[Attribution]:
    """Compute the maps of the neighbors; members of ensembles use their default parameters, as in any ensemble."""
    if not items:
        return []
    about = explainer(method, model.kind)
    params = about.resolve(request.params, request.model)
    plain = dataclasses.replace(request, params={})
    return about.function(Task(model, items, lambda member: _explain(member, plain, model, items)), params)


def _sensitivity(query: _SensitivityQuery, near: Sequence[Attribution]) -> Sensitivity:
    features = query.explanation.features
    own = query.explanation.scores[features]
    if not own.any():
        return Sensitivity(None, 0, 0, FLAT)
    cost = query.samples + sum(attribution.evaluations for attribution in near)
    if not near:
        return Sensitivity(None, 0, cost, UNSTABLE)
    changes = [float(np.linalg.norm(other.scores[features] - own) / np.linalg.norm(own)) for other in near]
    return Sensitivity(max(changes), len(near), cost)


@dataclass(frozen=True, eq=False)
class MovedText(EncodedText):
    """A text whose word embeddings are perturbed by `moves`."""

    moves: Float[np.ndarray, "seq d_model"]

    @cached_property
    def key(self) -> bytes:
        return super().key + self.moves.tobytes()


@dataclass(frozen=True, eq=False)
class MovedPrompt(MovedText, EncodedPrompt):
    """A prompt, with its classes, whose word embeddings are perturbed by `moves`."""


def moved(encoded: EncodedText, moves: Float[np.ndarray, "seq d_model"]) -> MovedText:
    """Return the text perturbed by `moves`, which replace those of a neighbor."""
    own = {field.name: getattr(encoded, field.name) for field in dataclasses.fields(encoded)}
    kind = MovedPrompt if isinstance(encoded, EncodedPrompt) else MovedText
    return kind(**{**own, "moves": moves})


@dataclass(frozen=True, eq=False)
class MovedBatch(TextBatch):
    """Padded examples, with the `moves` that are added to their word embeddings."""

    moves: Float[torch.Tensor, "batch seq d_model"]

    def _gathered(self, places: Int[torch.Tensor, "batch place"]) -> dict[str, Any]:
        wide = places[..., None].expand(-1, -1, self.moves.shape[-1])
        return {**super()._gathered(places), "moves": self.moves.gather(1, wide)}


@dataclass(frozen=True, eq=False)
class MovedPromptBatch(MovedBatch, PromptBatch):
    """Padded prompts, with the `moves` that are added to their word embeddings."""


class MovedTextClassifier(TextClassifier):
    """The shared model, for perturbed texts. It has its own memo."""

    def collate(self, examples: Sequence[EncodedText]) -> TextBatch:
        batch = super().collate(examples)
        # Methods that remove tokens request many rows of one text, so its moves are padded once.
        once = {id(example): cast(MovedText, example) for example in examples}
        place = {name: number for number, name in enumerate(once)}
        wide = np.zeros((len(once), batch.ids.shape[1], self.embedding.embedding_dim), dtype=np.float32)
        for number, example in enumerate(once.values()):
            wide[number, : len(example)] = example.moves
        moves = torch.from_numpy(wide).to(self.device, self.embedding.weight.dtype)
        kind = MovedPromptBatch if isinstance(batch, PromptBatch) else MovedBatch
        return kind(**vars(batch), moves=moves[[place[id(example)] for example in examples]])

    def embed(self, batch: TextBatch) -> Float[torch.Tensor, "batch seq d_model"]:
        return super().embed(batch) + cast(MovedBatch, batch).moves


class MovedCausalModel(MovedTextClassifier, CausalModel):  # type: ignore[misc] # its batches are of prompts
    """The shared causal language model, for perturbed prompts."""


class MovedZeroShotClassifier(MovedTextClassifier, ZeroShotClassifier):
    """The shared zero-shot classifier, for perturbed texts; hypotheses are not perturbed."""


def classifier_of_neighbors(model: AnyClassifier) -> AnyClassifier:
    """Return the model that reads the results of `move`; for pictures, the model itself. Errors: label prompts."""
    if not isinstance(model, TextClassifier):
        return model
    if isinstance(model, LabelClassifier):
        raise ExegesisError("sensitivity: a label's prompt beside a picture has no neighbors. Use another method.")
    own = {field.name: getattr(model, field.name) for field in dataclasses.fields(model)}
    kinds: dict[type, type[TextClassifier]] = {
        CausalModel: MovedCausalModel, ZeroShotClassifier: MovedZeroShotClassifier,
    }  # fmt: skip
    kind = next((moving for known, moving in kinds.items() if isinstance(model, known)), MovedTextClassifier)
    return kind(**{**own, "memo": {}})


def move(model: AnyClassifier, encoded: EncodedInput, number: int, radius: int | float, seed: int = 0) -> EncodedInput:
    """Return a neighbor, drawn within `radius` by its number, the seed and the input. The caller holds the device."""
    draw = np.random.default_rng([MOVES, seed, number, *encoded.ids.tolist()])
    if isinstance(encoded, EncodedPicture):
        return _move_picture(cast(ImageClassifier, model), encoded, draw, radius)
    if isinstance(encoded, EncodedText):
        return _move_text(model, encoded, draw, radius)
    raise ExegesisError(f"sensitivity: inputs of the kind {model.kind} have no neighbors. Use texts or pictures.")


def distance(encoded: EncodedInput, neighbor: EncodedInput) -> float:
    """Return the Euclidean distance between the word embeddings of a text and of its neighbor."""
    one, other = (each.moves if isinstance(each, MovedText) else 0 for each in (encoded, neighbor))
    return float(np.linalg.norm(np.subtract(one, other)))


def _move_text(model: AnyClassifier, encoded: EncodedText, draw: np.random.Generator, radius: int | float) -> MovedText:
    with torch.inference_mode():
        own = as_float64(model.embed(model.collate([encoded])))[0]
    reach = radius * own[encoded.features].std()
    moves = draw.uniform(-reach, reach, own.shape).astype(np.float32)
    moves[encoded.special] = 0
    return moved(encoded, moves)


def _move_picture(
    model: ImageClassifier, encoded: EncodedPicture, draw: np.random.Generator, radius: int | float
) -> EncodedPicture:
    read = model.preprocessing
    mean, std = (np.array(numbers)[:, None, None] for numbers in (read.mean, read.std))
    whole = 255 * read.scale
    colors = encoded.values * std + mean + draw.uniform(-radius * whole, radius * whole, encoded.values.shape)
    values = (colors.clip(0, whole) - mean) / std
    return dataclasses.replace(encoded, values=values.astype(np.float32))
