"""Measure whether an attack on one method also fools others: their maps of the input before and after the attack."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from jaxtyping import Float, Int

from cache import key_for, single_flight
from cache.codec import Arrays, Meta
from engine import runtime
from engine.attacks.attack import attack_key, encode_items
from engine.attacks.optimizer import order_of
from engine.attacks.plan import PIXELS, AttackRequest
from engine.attacks.result import AttackResult, normalized_sum_change, rank_change, sum_change
from engine.attacks.saliency import color_scale
from engine.errors import Cancelled
from engine.explain import explain, require_finite
from engine.explain import key_of as explanation_key
from engine.input_kinds import load_classifier
from engine.lazy import torch
from engine.models.classifier import EMBEDDING, AnyClassifier
from engine.params import Plain
from engine.progress import check_cancelled
from engine.registry import explainer
from engine.request import Request
from engine.store import result_store
from engine.task import Attribution, Task, TaskItem
from engine.vision.classifier import ImageClassifier

VERSION = 1
"""Increase it whenever the numbers change."""


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
    return key_for({"kind": "attack, transferred", "version": VERSION, "of": of})


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
