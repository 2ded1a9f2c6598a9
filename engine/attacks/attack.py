"""Attack examples, and measure whether an attack on one method also fools others.

Results are read from the cache; those that are missing are computed and stored.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from jaxtyping import Float, Int

from cache import key_for, single_flight
from cache.codec import Arrays, Meta
from engine import runtime
from engine.attacks.optimizer import OnStep, OptimizerResult, TopKOptimizer, group_by_length, order_of
from engine.attacks.plan import MIXED, PIXELS, AttackParams, AttackRequest, check_method, check_objective, check_place
from engine.attacks.result import (
    AttackResult,
    NearestWords,
    PictureChange,
    normalized_sum_change,
    pack,
    rank_change,
    sum_change,
    unpack,
)
from engine.attacks.saliency import SaliencyMapper, color_scale, resolve_params
from engine.errors import Cancelled, not_allowed
from engine.explain import explain, predict_encoded, require_finite, require_finite_logits
from engine.explain import key_of as explanation_key
from engine.input_kinds import input_kind, load_classifier
from engine.lazy import torch
from engine.models import catalog, sandbox
from engine.models.causal import EncodedPrompt
from engine.models.classifier import EMBEDDING, AnyClassifier, EncodedInput
from engine.models.text_classifier import EncodedText, TextClassifier
from engine.params import Plain, as_plain, from_mapping
from engine.progress import CancelToken, Report, cancellable, check_cancelled, reporting
from engine.registry import explainer
from engine.request import Input, Request
from engine.result import Provenance
from engine.store import result_store
from engine.task import Attribution, Task, TaskItem
from engine.vision.classifier import ImageClassifier
from engine.vision.picture import EncodedPicture

VERSION = 2
"""Increase it whenever the results of an attack change."""
EXAMPLES_AT_ONCE = 16
MOST_NEAREST = 3
"""Number of nearest vocabulary words listed for each perturbed embedding."""
NOTHING_MOVES = "Epsilon is 0, so the input cannot change."
NOTHING_FOUND = "No step improved on the original input, so it is returned unchanged: the map withstood this attack."
MIXED_SCALES = (
    "Mixed quantities: the map explains the logit (often in the tens), the penalty is a squared change in probability "
    "(at most 1). The penalty has little effect unless beta is much larger than alpha."
)
FLAT = "The map is zero everywhere before the attack, so its top features are chosen at random."


def attack(request: AttackRequest, on_step: OnStep | None = None) -> AttackResult:
    """Attack one example. A cached result needs no model. Errors: see `attack_many`."""
    return attack_many([request], on_step=on_step)[0]


def attack_many(
    requests: Sequence[AttackRequest],
    report: Report | None = None,
    cancel: CancelToken | None = None,
    on_step: OnStep | None = None,
) -> list[AttackResult]:
    """Attack several examples. Requests that differ only in the example run as one batch; each result is cached.

    `report` is called with (step, steps, "step"), `on_step` after each step of the running batch. Errors: `UsageError`
    for methods that are unknown, not differentiable or zero by construction, `ExegesisError` for failures, `Cancelled`.
    """
    every = [_ResolvedRequest(request) for request in requests]
    store, results = result_store(), dict[str, AttackResult]()
    for one in every:
        if (entry := store.get(one.key)) is not None:
            results[one.key] = unpack(*entry)
    with cancellable(cancel), reporting(report):
        groups: dict[str, list[_ResolvedRequest]] = {}
        for one in {one.key: one for one in every}.values():
            if one.key not in results:
                groups.setdefault(one.batch_key, []).append(one)
        for group in groups.values():
            with runtime.turn(lends=True):
                for one, result in _attack_group(group, on_step):
                    store.put(one.key, *pack(result))
                    results[one.key] = result
    return [results[one.key] for one in every]


def attack_key(request: AttackRequest) -> str:
    """Cache key of the attack. Reads the model's files without loading it."""
    return _ResolvedRequest(request).key


def check_request(method: str, kind: str, attack: Mapping[str, Plain], params: Mapping[str, Plain]) -> AttackParams:
    """Check the attack's parameters, the method and its parameters without loading a model."""
    check_method(method, kind)
    attack_params: AttackParams = from_mapping(AttackParams, attack, "attack")
    check_place(attack_params, kind)
    resolve_params(method, kind, params, attack_params)
    return attack_params


class _ResolvedRequest:
    """A request with all its parameters and its cache key."""

    def __init__(self, request: AttackRequest) -> None:
        self.request, self.kind = request, request.example.kind
        self.attack_params = check_request(request.method, self.kind, request.attack, request.params)
        self.params = resolve_params(request.method, self.kind, request.params, self.attack_params)
        if type(request.seed) is not int or request.seed < 0:
            raise not_allowed("seed", "a whole number of at least 0", request.seed)
        request.example.check_length()
        self.revision = catalog.revision(request.model)
        self.key = key_for(
            {
                "kind": "attack",
                "version": [VERSION, explainer(request.method, self.kind).keyed_version],
                "model": [request.model, self.revision],
                "dtype": request.dtype,
                "device": runtime.device_type(),
                "method": request.method,
                "params": self.params,
                "attack": self.attack,
                "example": request.example.as_plain(),
                "seed": request.seed,
            }
        )

    @property
    def attack(self) -> dict[str, Plain]:
        """All parameters of the attack, with the epsilon in use."""
        return {**as_plain(self.attack_params), "epsilon": self.attack_params.bound}

    @property
    def batch_key(self) -> str:
        """Key shared by the requests that can run as one batch."""
        request = self.request
        shared = {"model": [request.model, self.revision, request.dtype], "kind": self.kind, "method": request.method}
        return key_for({**shared, "params": self.params, "attack": self.attack})


def _attack_group(
    group: list[_ResolvedRequest], on_step: OnStep | None
) -> Iterator[tuple[_ResolvedRequest, AttackResult]]:
    """Yield the results of requests with the same batch key as they end. The caller must hold the device."""
    first = group[0]
    model = load_classifier(first.kind, first.request.model, first.request.dtype, runtime.device())
    check_objective(first.attack_params, model.regression)
    items = encode_items(model, [(one.request.example, one.request.seed) for one in group])
    for places in group_by_length([len(item.encoded) for item in items], EXAMPLES_AT_ONCE):
        check_cancelled()
        started, batch = runtime.clock(), [items[at] for at in places]
        mapper = SaliencyMapper(model, batch, first.request.method, first.params, first.attack_params)
        for best in TopKOptimizer(mapper, first.attack_params, on_step).run():
            seconds = (runtime.clock() - started) / len(places)
            one = group[places[best.item]]
            yield one, _build_result(model, one, batch[best.item], best, seconds)


def encode_items(model: AnyClassifier, examples: Sequence[tuple[Input, int]]) -> list[TaskItem]:
    """Encode examples with their predicted class, the target of the attack. The caller must hold the device."""
    encoded = [model.encode(example) for example, _ in examples]
    predictions = predict_encoded(model, encoded)
    require_finite_logits(model, predictions)
    return [
        TaskItem(e, prediction, model.target_index(None, prediction, e), seed)
        for e, prediction, (_, seed) in zip(encoded, predictions, examples, strict=True)
    ]


def _build_result(
    model: AnyClassifier, resolved: _ResolvedRequest, item: TaskItem, best: OptimizerResult, seconds: float
) -> AttackResult:
    encoded, request, pixels = item.encoded, resolved.request, resolved.attack_params.place == PIXELS
    features = encoded.features
    provenance = Provenance(
        request.model, model.revision, request.method, explainer(request.method, resolved.kind).version,
        resolved.params, item.target, item.prediction.labels[item.target], request.seed, request.dtype,
        model.device.type,
    )  # fmt: skip
    after = item.prediction if best.step is None else model.predictions(best.logits[None], [item.encoded])[0]
    return AttackResult(
        tokens=encoded.tokens,
        before=best.before,
        after=best.after,
        order_before=order_of(item, best.before[features]),
        order_after=order_of(item, best.after[features]),
        prediction=item.prediction,
        prediction_after=after,
        provenance=provenance,
        attack=resolved.attack,
        k=best.k,
        largest=np.abs(best.delta).max(1),
        length=np.linalg.norm(best.delta, axis=1),
        delta=best.delta.astype(np.float64 if request.dtype == "float64" else np.float32),
        trajectory=best.trajectory.thin([] if best.step is None else [best.step]),
        best=best.step,
        steps=best.steps,
        start=best.start,
        failed=best.failed,
        relative_epsilon=best.relative_epsilon,
        seconds=seconds,
        notes=tuple(_notes(item, resolved.attack_params, best)),
        nearest=nearest_words(model, encoded, best.delta) if isinstance(encoded, EncodedText) else (),
        picture=picture_change(model, encoded, best.delta) if pixels else None,
        grid=encoded.grid,
    )


def _notes(item: TaskItem, params: AttackParams, best: OptimizerResult) -> Iterator[str]:
    """Yield warnings about this result."""
    encoded, n = item.encoded, len(item.encoded.features)
    if encoded.truncated:
        total = len(encoded) + encoded.truncated
        where = " from its start" if isinstance(encoded, EncodedPrompt) else ""
        yield f"The text is longer than the model reads: {encoded.truncated} of its {total} tokens were cut off{where}."
    if params.top_k > n:
        yield f"top_k is {params.top_k:g}, but {_count_features(n, input_kind(encoded.kind).feature)} attacked."
    if not best.before[encoded.features].any():
        yield FLAT
    for start, where in best.broken.items():
        which = "Stopped" if params.starts == 1 else f"Start {start + 1} of {params.starts} stopped"
        yield f"{which} at {where} was not finite. The best earlier step is used."
    if params.quantity == MIXED and params.objective == "constrained":
        yield MIXED_SCALES
    if params.bound == 0:
        yield NOTHING_MOVES
    elif best.step is None and not best.failed:
        yield NOTHING_FOUND


def _count_features(n: int, noun: str) -> str:
    return f"there is only 1 {noun}: it is" if n == 1 else f"there are only {n} {noun}s: all of them are"


def describe_epsilon(params: AttackParams, relative: float | None) -> str:
    """The change that epsilon allows, relative to the norm of the embeddings; empty if that is unknown."""
    if relative is None:
        return ""
    if params.place == PIXELS:
        return f"epsilon {params.bound:.3g} is {relative:.1%} of the color range"
    return f"epsilon {params.bound:.3g} allows a change of up to {relative:.3g} times the median embedding norm"


def nearest_words(
    model: AnyClassifier, encoded: EncodedText, delta: Float[np.ndarray, "seq d_model"], most: int = MOST_NEAREST
) -> tuple[NearestWords, ...]:
    """Nearest vocabulary words of each perturbed embedding, without special tokens; empty for special tokens.

    The distance is Euclidean, because the model also depends on an embedding's norm. The original word is listed while
    it is among the nearest.
    """
    text = cast(TextClassifier, model)
    with torch.inference_mode():
        point = text.embed(text.collate([encoded]))[0] + torch.from_numpy(delta).to(text.embedding.weight)
        wide = torch.promote_types(point.dtype, torch.float32)
        table = text.embedding.weight.to(wide)[: len(text.tokenizer)]
        far = torch.cdist(point.to(wide), table)
        far[:, [id for id in text.tokenizer.all_special_ids if id < len(table)]] = torch.inf
        nearest = far.topk(min(most, len(table)), largest=False)
    named = [_words(text, ids) for ids in nearest.indices.tolist()]
    return tuple(
        () if special else tuple(zip(words, distances, strict=True))
        for special, words, distances in zip(encoded.special, named, nearest.values.tolist(), strict=True)
    )


def _words(model: TextClassifier, ids: Sequence[int]) -> list[str]:
    sandbox.check_decoding(model.tokenizer.name_or_path, ids)
    return [model.tokenizer.decode([id]).strip() or model.tokenizer.convert_ids_to_tokens(id) for id in ids]


def picture_change(model: AnyClassifier, encoded: EncodedInput, delta: Float[np.ndarray, "seq pixel"]) -> PictureChange:
    """The picture before and after. `delta`: color changes (0 to 1), one row per position."""
    reader, picture = cast(ImageClassifier, model), cast(EncodedPicture, encoded)
    difference = _unfold_patches(delta[picture.specials :], picture, reader.patch)
    after = picture.pixels + difference * 255
    return PictureChange(picture.pixels, after.round().clip(0, 255).astype(np.uint8), difference.astype(np.float32))


def _unfold_patches(
    rows: Float[np.ndarray, "patch pixel"], picture: EncodedPicture, patch: tuple[int, int]
) -> Float[np.ndarray, "height width 3"]:
    """Put patches (channel, row, column) back in place; pixels outside all patches are 0."""
    high, wide = picture.grid
    apart = rows.reshape(high, wide, 3, *patch).transpose(0, 3, 1, 4, 2)
    whole = np.zeros(picture.pixels.shape)
    whole[: high * patch[0], : wide * patch[1]] = apart.reshape(high * patch[0], wide * patch[1], 3)
    return whole


TRANSFER_VERSION = 1
"""Increase it whenever the results of a transfer change."""


@dataclass(frozen=True, eq=False)
class TransferResult:
    """Another method's maps before and after the attack, one score per token. `k`: that of the attack."""

    method: str
    before: Float[np.ndarray, "seq"]
    after: Float[np.ndarray, "seq"]
    order_before: Int[np.ndarray, "feature"]
    order_after: Int[np.ndarray, "feature"]
    features: Int[np.ndarray, "feature"]
    k: int

    @property
    def rank_change(self) -> float:
        """Share of the top k ranks of its own map that changed."""
        return rank_change(self.order_before, self.order_after, self.k)

    @property
    def top_k_sum_change(self) -> float:
        """Total drop in the scores of its own top k, in the unit of its map."""
        return sum_change(self.before[self.features], self.after[self.features], self._top)

    @property
    def top_k_sum_change_normalised(self) -> float | None:
        """Total drop for maps divided by their sums of absolute values; None if one is all zero."""
        return normalized_sum_change(self.before[self.features], self.after[self.features], self._top)

    @property
    def _top(self) -> Sequence[int]:
        return self.order_before[: self.k].tolist()


def measure_transfer(
    request: AttackRequest, attacked: AttackResult, method: str, params: Mapping[str, Plain]
) -> TransferResult:
    """Maps of `method` for the input before and after an attack, cached. The caller need not hold the device.

    The explained class is the one predicted before the attack.
    """

    def compute() -> tuple[Meta, Arrays]:
        before = explain(_request(request, method, params)).scores
        with runtime.turn():
            return {}, _maps(request, attacked, method, params, before)

    _, arrays, _ = single_flight(
        result_store(), transfer_key(request, method, params), compute, alone=(Cancelled,), check=check_cancelled
    )
    own = {name: np.array(arrays[name]) for name in ("before", "after", "order_before", "order_after")}
    return TransferResult(method, **own, features=attacked.features, k=attacked.k)


def transfer_key(request: AttackRequest, method: str, params: Mapping[str, Plain]) -> str:
    """Cache key of the transfer. Reads the model's files without loading it."""
    of = [attack_key(request), explanation_key(_request(request, method, params))]
    return key_for({"kind": "attack, transferred", "version": TRANSFER_VERSION, "of": of})


def _request(request: AttackRequest, method: str, params: Mapping[str, Plain]) -> Request:
    return Request(request.model, method, request.example, params, seed=request.seed, dtype=request.dtype)


def _maps(
    request: AttackRequest, attacked: AttackResult, method: str, params: Mapping[str, Plain], before: np.ndarray
) -> Arrays:
    kind = request.example.kind
    model = load_classifier(kind, request.model, request.dtype, runtime.device())
    (item,) = encode_items(model, [(request.example, request.seed)])
    moved = TaskItem(item.encoded, attacked.prediction_after, item.target, item.seed)
    copied = moved_model(model, item, attacked.delta, str(attacked.attack["place"]))

    def run(method: str, params: Mapping[str, Plain] = {}) -> list[Attribution]:
        spec = explainer(method, kind)
        return spec.function(Task(copied, [moved], run), spec.resolve(params, request.model))

    after = run(method, params)[0].scores
    require_finite(model, f"scores by {method} of the attacked input", after)
    features = item.encoded.features
    orders = {"order_before": order_of(item, before[features]), "order_after": order_of(item, after[features])}
    return {"before": np.array(before), "after": np.asarray(after, dtype=np.float64), **orders}


def moved_model(
    model: AnyClassifier, item: TaskItem, delta: Float[np.ndarray, "seq width"], place: str
) -> AnyClassifier:
    """A view of the shared model that adds the change to its input, so every method runs on it unchanged.

    It has its own memo. Features that a method removes are removed without the change.
    """
    copied: Any = copy.copy(model)
    copied.memo = {}
    copied.reads_parts = False
    change = torch.from_numpy(np.asarray(delta)).to(model.device, model.dtype)
    if place == PIXELS:
        change = change * color_scale(cast(ImageClassifier, model)).to(change)

    def embed(batch: Any) -> torch.Tensor:
        moved = model.points(batch, place) + change
        return model.embed_points(moved, place)

    def points(batch: Any, where: str = EMBEDDING) -> torch.Tensor:
        return embed(batch) if where == EMBEDDING else model.points(batch, where) + (change if where == place else 0)

    copied.embed, copied.points = embed, points
    return cast(AnyClassifier, copied)
