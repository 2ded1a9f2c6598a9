"""Predictions of many examples: cached, or computed in passes of inputs of about the same length.

Predictions of a whole image data set are looked up by the cached hash of each picture, without reading any picture.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from cache import key_for
from engine import runtime
from engine.data.examples import ImageDataset
from engine.errors import ExegesisError, unknown
from engine.explain import predict_encoded, require_finite_logits
from engine.heads.scaling import scaled_model
from engine.input_kinds import load_classifier
from engine.models import catalog
from engine.progress import CancelToken, Report, cancellable, check_cancelled, silent
from engine.request import DTYPES, PLAIN, HeadScales, Input, Picture, plain_picture
from engine.result import Prediction, unpack_prediction
from engine.store import result_store

VERSION = 1
"""Raised whenever the numbers change."""
EXAMPLES_AT_ONCE = 64
"""Number of examples that are predicted before the device is released."""
DIGESTS_VERSION = 1
"""Raised whenever the hashes of pictures change."""
DIGESTS_AT_ONCE = 256
"""Number of pictures whose hashes form one cache entry."""
NOT_READ = "0" * 64
"""Marks a picture that could not be read; it is tried again the next time."""


def predictions(
    model: str,
    examples: Sequence[Input],
    dtype: str = DTYPES[0],
    report: Report = silent,
    cancel: CancelToken | None = None,
    heads: HeadScales = PLAIN,
) -> list[Prediction]:
    """Predict the examples, in their order, with the heads of the model scaled. Each prediction is cached."""
    keys = prediction_keys(model, examples, dtype, heads)
    cached = cached_by_key(keys)
    missing = {key: example for key, example in zip(keys, examples, strict=True) if key not in cached}
    with cancellable(cancel):
        for group in _groups(missing):
            check_cancelled()
            report(len(cached), len(set(keys)), "examples")
            cached |= _answer(model, dtype, group, heads)
    return [cached[key] for key in keys]


def cached_predictions(
    model: str, examples: Sequence[Input], dtype: str = DTYPES[0], heads: HeadScales = PLAIN
) -> list[Prediction | None]:
    """Return the cached prediction of each example, else None. Runs no model."""
    keys = prediction_keys(model, examples, dtype, heads)
    cached = cached_by_key(keys)
    return [cached.get(key) for key in keys]


def prediction_keys(
    model: str, examples: Sequence[Input], dtype: str = DTYPES[0], heads: HeadScales = PLAIN
) -> list[str]:
    """Return the cache key of each example's prediction. Reads the model's files, never loads it."""
    return _keys(model, [example.as_plain() for example in examples], dtype, heads)


def keys_by_digest(model: str, digests: Sequence[str], dtype: str = DTYPES[0]) -> list[str]:
    """Return the cache keys of predictions of pictures given by their digests."""
    return _keys(model, [plain_picture(digest) for digest in digests], dtype)


def cached_by_key(keys: Sequence[str]) -> dict[str, Prediction]:
    """Return the cached predictions by their keys."""
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
    """Yield the inputs in groups, short ones first, to keep padding small."""
    order = sorted(missing, key=lambda key: missing[key].length)
    for start in range(0, len(order), EXAMPLES_AT_ONCE):
        yield {key: missing[key] for key in order[start : start + EXAMPLES_AT_ONCE]}


def _answer(model: str, dtype: str, missing: Mapping[str, Input], heads: HeadScales) -> dict[str, Prediction]:
    with runtime.turn(lends=True):
        cached = cached_by_key(list(missing))  # others may have computed some meanwhile
        rest = {key: example for key, example in missing.items() if key not in cached}
        return cached | (_predict(model, dtype, rest, heads) if rest else {})


def _predict(model: str, dtype: str, missing: Mapping[str, Input], heads: HeadScales) -> dict[str, Prediction]:
    """Predict the examples and cache the results. The caller must hold the device."""
    for example in missing.values():
        example.check_length()
    kind = next(iter(missing.values())).kind
    classifier = load_classifier(kind, model, dtype, runtime.device())
    with scaled_model(classifier, heads) as running:
        computed = predict_encoded(running, [classifier.encode(example) for example in missing.values()])
    require_finite_logits(classifier, computed)
    for key, prediction in zip(missing, computed, strict=True):
        result_store().put(key, dataclasses.asdict(prediction), {})
    return dict(zip(missing, computed, strict=True))


def picture_digests(data: ImageDataset) -> list[str | None]:
    """Return the hash of each picture, reading those that are not cached; None for a picture that cannot be read."""
    return [digest for places in _parts(data) for digest in _completed_part(data, places)]


def cached_digests(data: ImageDataset) -> list[str | None]:
    """Return the cached hash of each picture, else None. Reads no picture."""
    return [digest for places in _parts(data) for digest in _cached_part(data, places)]


def cached_set_predictions(model: str, data: ImageDataset, dtype: str = DTYPES[0]) -> list[Prediction | None]:
    """Return the cached prediction of each picture, else None. Runs no model."""
    digests = cached_digests(data)
    readable = [digest for digest in digests if digest is not None]
    keys = dict(zip(readable, keys_by_digest(model, readable, dtype), strict=True))
    cached = cached_by_key(list(keys.values()))
    return [None if digest is None else cached.get(keys[digest]) for digest in digests]


def _parts(data: ImageDataset) -> Iterator[range]:
    return (range(start, min(start + DIGESTS_AT_ONCE, len(data))) for start in range(0, len(data), DIGESTS_AT_ONCE))


def _completed_part(data: ImageDataset, places: range) -> list[str | None]:
    cached = _cached_part(data, places)
    if None not in cached:
        return cached
    check_cancelled()
    completed = [digest or _digest(data, place) for place, digest in zip(places, cached, strict=True)]
    if completed != cached:
        rows = [list(bytes.fromhex(digest or NOT_READ)) for digest in completed]
        result_store().put(_digests_key(data, places), {}, {"digests": np.array(rows, dtype=np.uint8)})
    return completed


def _cached_part(data: ImageDataset, places: range) -> list[str | None]:
    entry = result_store().get(_digests_key(data, places))
    if entry is None:
        return [None] * len(places)
    digests = (bytes(row).hex() for row in entry[1]["digests"])
    return [None if digest == NOT_READ else digest for digest in digests]


def _digest(data: ImageDataset, place: int) -> str | None:
    try:
        return Picture(data[place].pixels).digest
    except ExegesisError:
        return None


def _digests_key(data: ImageDataset, places: range) -> str:
    content = {"revision": data.revision, "split": data.split, "first": places[0], "count": len(places)}
    return key_for({"kind": "picture digests", "version": DIGESTS_VERSION, **content})
