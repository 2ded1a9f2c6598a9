"""Predictions of many examples: each is found in the cache, or made in passes of texts of about the same length."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from cache import key_for
from engine import runtime
from engine.classifiers import load_classifier
from engine.errors import unknown
from engine.explain import predict_encoded, require_finite
from engine.heads.scales import PLAIN, HeadScales
from engine.heads.scaling import scaled_model
from engine.models import catalog
from engine.progress import CancelToken, Report, cancellable, check_cancelled, silent
from engine.request import DTYPES, Example, Input, plain_picture
from engine.result import Prediction
from engine.serialization import unpack_prediction
from engine.store import result_store

VERSION = 1
"""Raised whenever the numbers change."""
EXAMPLES_AT_ONCE = 64
"""After so many the device is given to whoever waits for it."""


def predictions(
    model: str,
    examples: Sequence[Input],
    dtype: str = DTYPES[0],
    report: Report = silent,
    cancel: CancelToken | None = None,
    heads: HeadScales = PLAIN,
) -> list[Prediction]:
    """What the model, its heads so scaled, says to each example, in the order asked; each is kept once it is made."""
    keys = prediction_keys(model, examples, dtype, heads)
    found = found_predictions(keys)
    missing = {key: example for key, example in zip(keys, examples, strict=True) if key not in found}
    with cancellable(cancel):
        for group in _groups(missing):
            check_cancelled()
            report(len(found), len(set(keys)), "examples")
            found |= _answer(model, dtype, group, heads)
    return [found[key] for key in keys]


def cached_predictions(
    model: str, examples: Sequence[Input], dtype: str = DTYPES[0], heads: HeadScales = PLAIN
) -> list[Prediction | None]:
    """What can be had without running the model; None for an example whose prediction has yet to be made."""
    keys = prediction_keys(model, examples, dtype, heads)
    found = found_predictions(keys)
    return [found.get(key) for key in keys]


def prediction_keys(
    model: str, examples: Sequence[Input], dtype: str = DTYPES[0], heads: HeadScales = PLAIN
) -> list[str]:
    """The cache key of each example's prediction. Reads the model's files, never loads it."""
    return _keys(model, [example.as_plain() for example in examples], dtype, heads)


def keys_by_digest(model: str, digests: Sequence[str], dtype: str = DTYPES[0]) -> list[str]:
    """The same for pictures of which only the digests are at hand."""
    return _keys(model, [plain_picture(digest) for digest in digests], dtype)


def found_predictions(keys: Sequence[str]) -> dict[str, Prediction]:
    """Those that the cache holds, by their keys."""
    store = result_store()
    return {key: unpack_prediction(entry[0]) for key in keys if (entry := store.get(key)) is not None}


def _keys(model: str, plain: Sequence[Mapping[str, str | None]], dtype: str, heads: HeadScales = PLAIN) -> list[str]:
    if dtype not in DTYPES:
        raise unknown("dtype", dtype, DTYPES)
    shared = {
        "kind": "prediction",
        "version": VERSION,
        "revision": catalog.revision(model),
        "dtype": dtype,
        "device": runtime.device_type(),
        **heads.keyed(),
    }
    return [key_for({**shared, "example": one}) for one in plain]


def _groups(missing: Mapping[str, Input]) -> Iterator[dict[str, Input]]:
    """The short texts first, so that little of a pass is padding."""
    order = sorted(missing, key=lambda key: length(missing[key]))
    for start in range(0, len(order), EXAMPLES_AT_ONCE):
        yield {key: missing[key] for key in order[start : start + EXAMPLES_AT_ONCE]}


def length(example: Input) -> int:
    """Characters of both texts: about how long the model takes. To one model all pictures are of one length."""
    return len(example.text) + len(example.text_pair or "") if isinstance(example, Example) else 0


def _answer(model: str, dtype: str, missing: Mapping[str, Input], heads: HeadScales) -> dict[str, Prediction]:
    with runtime.turn(lends=True):
        found = found_predictions(list(missing))
        left = {key: example for key, example in missing.items() if key not in found}
        return found | (_predict(model, dtype, left, heads) if left else {})


def _predict(model: str, dtype: str, missing: Mapping[str, Input], heads: HeadScales) -> dict[str, Prediction]:
    """The caller holds the turn."""
    for example in missing.values():
        example.check_length()
    kind = next(iter(missing.values())).kind
    classifier = load_classifier(kind, model, dtype, runtime.device())
    with scaled_model(classifier, heads) as running:
        made = predict_encoded(running, [classifier.encode(example) for example in missing.values()])
    require_finite(classifier, "logits", [prediction.logits for prediction in made])
    for key, prediction in zip(missing, made, strict=True):
        result_store().put(key, dataclasses.asdict(prediction), {})
    return dict(zip(missing, made, strict=True))
