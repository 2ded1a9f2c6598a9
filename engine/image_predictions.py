"""Predictions of whole image data sets, found by the cached hash of each picture without reading any picture."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cache import key_for
from engine.data.examples import ImageDataset
from engine.errors import ExegesisError
from engine.predictions import cached_by_key, keys_by_digest
from engine.progress import check_cancelled
from engine.request import DTYPES, Picture
from engine.result import Prediction
from engine.store import result_store

VERSION = 1
TOGETHER = 256
"""Pictures whose hashes form one entry of the cache."""
NOT_READ = "0" * 64
"""Marks a picture that could not be read; it is tried again the next time."""


def picture_digests(data: ImageDataset) -> list[str | None]:
    """Return the hash of each picture, reading those that are not cached; None for a picture that cannot be read."""
    return [digest for places in _parts(data) for digest in _completed(data, places)]


def cached_digests(data: ImageDataset) -> list[str | None]:
    """Return the cached hash of each picture, else None. Reads no picture."""
    return [digest for places in _parts(data) for digest in _cached(data, places)]


def cached_set_predictions(model: str, data: ImageDataset, dtype: str = DTYPES[0]) -> list[Prediction | None]:
    """Return the cached prediction of each picture, else None. Runs no model."""
    digests = cached_digests(data)
    readable = [digest for digest in digests if digest is not None]
    keys = dict(zip(readable, keys_by_digest(model, readable, dtype), strict=True))
    cached = cached_by_key(list(keys.values()))
    return [None if digest is None else cached.get(keys[digest]) for digest in digests]


def _parts(data: ImageDataset) -> Iterator[range]:
    return (range(start, min(start + TOGETHER, len(data))) for start in range(0, len(data), TOGETHER))


def _completed(data: ImageDataset, places: range) -> list[str | None]:
    cached = _cached(data, places)
    if None not in cached:
        return cached
    check_cancelled()
    completed = [digest or _digest(data, place) for place, digest in zip(places, cached, strict=True)]
    if completed != cached:
        rows = [list(bytes.fromhex(digest or NOT_READ)) for digest in completed]
        result_store().put(_key(data, places), {}, {"digests": np.array(rows, dtype=np.uint8)})
    return completed


def _cached(data: ImageDataset, places: range) -> list[str | None]:
    entry = result_store().get(_key(data, places))
    if entry is None:
        return [None] * len(places)
    digests = (bytes(row).hex() for row in entry[1]["digests"])
    return [None if digest == NOT_READ else digest for digest in digests]


def _digest(data: ImageDataset, place: int) -> str | None:
    try:
        return Picture(data[place].pixels).digest
    except ExegesisError:
        return None


def _key(data: ImageDataset, places: range) -> str:
    content = {"revision": data.revision, "split": data.split, "first": places[0], "count": len(places)}
    return key_for({"kind": "picture digests", "version": VERSION, **content})
