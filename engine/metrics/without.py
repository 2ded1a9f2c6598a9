"""The prediction without some tokens or patches: what the model answers when they are removed, by each operator."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cache import key_for
from engine import runtime
from engine.classifiers import AnyClassifier, Coded, load_classifier
from engine.errors import ExegesisError, UsageError, not_allowed
from engine.explain import explain, key_of
from engine.heads.running import under
from engine.late import torch
from engine.operators import check_operator, keyed, operators_of
from engine.progress import CancelToken, cancellable, check_cancelled
from engine.removal import removed, token_masks
from engine.request import Request
from engine.result import Prediction, Token
from engine.store import result_store

VERSION = 1
"""Raised whenever the numbers change."""
PROBE = "random"
"""Costs no model evaluation, and its explanation carries the tokens and the prediction."""


@dataclass(frozen=True)
class Without:
    """The model's answers to the whole text or picture, and to it without the tokens or patches.

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
        """m of what is left minus m of the whole: negative where the removed speak for the class."""
        return self.value - self.whole.probabilities[self.target]

    @property
    def flipped(self) -> bool:
        """Whether another class is predicted; a regression head has none."""
        return self.left.index != self.whole.index


def predictions_without(
    request: Request,
    tokens: Sequence[int],
    removals: Sequence[str] | None = None,
    cancel: CancelToken | None = None,
) -> tuple[Without, ...]:
    """The answers without the tokens at these positions, all of them together, an operator each in the order asked.

    The patches of a picture are tokens like any other. Of the request, the method and its parameters do not matter.
    Special tokens are refused. Without `removals`, every operator of the input's kind.
    """
    kind = request.example.kind
    removals = operators_of(kind) if removals is None else removals
    for removal in removals:
        check_operator(removal, kind)
    with cancellable(cancel):
        probe = explain(dataclasses.replace(request, method=PROBE, params={}))
        gone = _removable(tokens, probe.tokens)
        keys = {removal: _key(request, gone, removal) for removal in removals}
        found = _found(keys)
        answers = found if len(found) == len(keys) else found | _rest(request, gone, keys)
    return tuple(
        Without(removal, probe.prediction, answers[removal], probe.provenance.target, cached=removal in found)
        for removal in removals
    )


def _removable(chosen: Sequence[int], tokens: Sequence[Token]) -> tuple[int, ...]:
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


def _key(request: Request, gone: Sequence[int], removal: str) -> str:
    """One for all explained classes and seeds: every class is kept."""
    probe = dataclasses.replace(request, method=PROBE, params={}, target=None, seed=0)
    named = {
        "kind": "without",
        "version": VERSION,
        "of": key_of(probe),
        "tokens": list(gone),
        "removal": keyed(removal),
    }
    return key_for(named)


def _found(keys: Mapping[str, str]) -> dict[str, Prediction]:
    store, found = result_store(), {}
    for removal, key in keys.items():
        entry = store.get(key)
        if entry is not None:
            meta, arrays = entry
            logits, probabilities = (tuple(arrays[name].tolist()) for name in ("logits", "probabilities"))
            found[removal] = Prediction(tuple(meta["labels"]), logits, probabilities, meta["regression"])
    return found


def _rest(request: Request, gone: Sequence[int], keys: Mapping[str, str]) -> dict[str, Prediction]:
    """What nobody made while we waited for the turn is measured."""
    with runtime.turn():
        answers = _found(keys)
        loaded = load_classifier(request.example.kind, request.model, request.dtype, runtime.device())
        encoded = loaded.encode(request.example)
        for removal in [name for name in keys if name not in answers]:
            check_cancelled()
            with under(loaded, request.heads) as model:
                answers[removal] = left = _measured(model, encoded, gone, removal)
            numbers = {"logits": np.array(left.logits), "probabilities": np.array(left.probabilities)}
            result_store().put(keys[removal], {"labels": list(left.labels), "regression": left.regression}, numbers)
    return answers


def _measured(model: AnyClassifier, encoded: Coded, gone: Sequence[int], removal: str) -> Prediction:
    kept = ~np.isin(encoded.features, gone)
    keep = torch.from_numpy(token_masks(encoded, kept[None], len(encoded))).to(model.device)

    def compute(rows: slice) -> Prediction:
        with torch.inference_mode():
            return model.predictions(model.logits(*removed(model, model.collate([encoded]), keep, removal)))[0]

    [left] = runtime.in_chunks(compute, 1, 1)
    if not np.isfinite(left.logits).all():
        raise ExegesisError(
            f"removal {removal}: the model's answer without what is removed is not finite numbers. "
            "Use a wider precision or another removal."
        )
    return left
