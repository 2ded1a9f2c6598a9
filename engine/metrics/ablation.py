"""Ablation: the prediction without some tokens or patches, by each removal operator."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cache import key_for
from engine import runtime
from engine.errors import ExegesisError, UsageError, not_allowed
from engine.explain import explain, key_of
from engine.heads.scaling import scaled_model
from engine.input_kinds import check_removal, input_kind, load_classifier
from engine.lazy import torch
from engine.models.classifier import AnyClassifier, EncodedInput
from engine.progress import CancelToken, cancellable, check_cancelled
from engine.removal import removed, token_masks
from engine.removal_operators import keyed
from engine.request import Request
from engine.result import Prediction, Token
from engine.store import result_store

VERSION = 1
"""Increased whenever the values change."""
PROBE = "random"
"""Method without model evaluations, whose explanation holds the tokens and the prediction."""


@dataclass(frozen=True)
class AblatedPrediction:
    """The predictions for the whole text or picture, and for what is left without the tokens or patches.

    `target`: the explained class. Its m is a probability, from 0 to 1; for a regression head it is the score.
    """

    removal: str
    whole: Prediction
    left: Prediction
    target: int
    cached: bool = False

    @property
    def value(self) -> float:
        """m of what is left."""
        return self.left.probabilities[self.target]

    @property
    def change(self) -> float:
        """m of what is left minus m of the whole; negative if the removed features speak for the class."""
        return self.value - self.whole.probabilities[self.target]

    @property
    def flipped(self) -> bool:
        """Whether another class is predicted; never for a regression head."""
        return self.left.index != self.whole.index


def ablated_predictions(
    request: Request,
    tokens: Sequence[int],
    removals: Sequence[str] | None = None,
    cancel: CancelToken | None = None,
) -> tuple[AblatedPrediction, ...]:
    """Predict without the tokens at these positions, removed together, by each operator in the given order.

    The patches of a picture are tokens like any other. The request's method and parameters are ignored. Without
    `removals`, every operator of the input's kind. Errors: no token, an unknown position or a special token.
    """
    kind = request.example.kind
    removals = input_kind(kind).removals if removals is None else removals
    for removal in removals:
        check_removal(removal, kind)
    with cancellable(cancel):
        probe = explain(dataclasses.replace(request, method=PROBE, params={}))
        positions = _check_removable(tokens, probe.tokens)
        keys = {removal: _cache_key(request, positions, removal) for removal in removals}
        cached = _load_cached(keys)
        predictions = cached if len(cached) == len(keys) else cached | _compute_missing(request, positions, keys)
    return tuple(
        AblatedPrediction(
            removal, probe.prediction, predictions[removal], probe.provenance.target, cached=removal in cached
        )
        for removal in removals
    )


def _check_removable(chosen: Sequence[int], tokens: Sequence[Token]) -> tuple[int, ...]:
    if not chosen:
        raise UsageError("tokens: must name at least one token, got none. Choose a token or a patch.")
    for position in chosen:
        if not 0 <= position < len(tokens):
            raise not_allowed("tokens", f"positions from 0 to {len(tokens) - 1}", position)
        if tokens[position].special:
            raise UsageError(
                f"tokens: {position} is {tokens[position].text}, a special token, which is never removed. "
                "Choose others."
            )
    return tuple(sorted({int(position) for position in chosen}))


def _cache_key(request: Request, positions: Sequence[int], removal: str) -> str:
    """Return one key for all explained classes and seeds, as the result holds every class."""
    probe = dataclasses.replace(request, method=PROBE, params={}, target=None, seed=0)
    named = {
        "kind": "without",
        "version": VERSION,
        "of": key_of(probe),
        "tokens": list(positions),
        "removal": keyed(removal),
    }
    return key_for(named)


def _load_cached(keys: Mapping[str, str]) -> dict[str, Prediction]:
    store, predictions = result_store(), {}
    for removal, key in keys.items():
        entry = store.get(key)
        if entry is not None:
            meta, arrays = entry
            logits, probabilities = (tuple(arrays[name].tolist()) for name in ("logits", "probabilities"))
            predictions[removal] = Prediction(tuple(meta["labels"]), logits, probabilities, meta["regression"])
    return predictions


def _compute_missing(request: Request, positions: Sequence[int], keys: Mapping[str, str]) -> dict[str, Prediction]:
    """Compute the predictions that are still not cached once the device is free."""
    with runtime.turn():
        predictions = _load_cached(keys)
        loaded = load_classifier(request.example.kind, request.model, request.dtype, runtime.device())
        encoded = loaded.encode(request.example)
        for removal in [name for name in keys if name not in predictions]:
            check_cancelled()
            with scaled_model(loaded, request.heads) as model:
                predictions[removal] = left = _predict(model, encoded, positions, removal)
            numbers = {"logits": np.array(left.logits), "probabilities": np.array(left.probabilities)}
            result_store().put(keys[removal], {"labels": list(left.labels), "regression": left.regression}, numbers)
    return predictions


def _predict(model: AnyClassifier, encoded: EncodedInput, positions: Sequence[int], removal: str) -> Prediction:
    features = ~np.isin(encoded.features, positions)
    keep = torch.from_numpy(token_masks(encoded, features[None], len(encoded))).to(model.device)

    def compute(rows: slice) -> Prediction:
        with torch.inference_mode():
            logits = model.logits(*removed(model, model.collate([encoded]), keep, removal))
            return model.predictions(logits, [encoded])[0]

    [left] = runtime.in_chunks(compute, 1, 1)
    if not np.isfinite(left.logits).all():
        raise ExegesisError(
            f"removal {removal}: the model's prediction without the removed tokens is not a finite number. "
            "Use a wider precision or another removal."
        )
    return left
