"""The part of the job kind `predict` that is about pictures: read when their turn comes, never all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from cache import key_for
from engine.errors import UsageError, not_allowed
from engine.jobs.kinds import Batch, Spec, Unit
from engine.request import DTYPES, Picture

if TYPE_CHECKING:
    from engine.data.examples import ImageDataset


def check_picture_set(spec: Spec) -> None:
    """Refuses a set that there is not. What is on the hub, and what is inside files, is not looked for."""
    from engine.data.hub import HUB_PREFIX
    from engine.data.image_datasets import load_images, registered_name

    name, split = spec["data"], spec.get("split")
    if not isinstance(split, str | None):
        raise not_allowed("split of a predict job", "the name of a split", split)
    if "methods" in spec:
        raise UsageError("methods of a predict job: are compared on texts only. Leave methods out.")
    if registered_name(name) or not (name.startswith(HUB_PREFIX) or Path(name).exists()):
        load_images(name, split or None, limit=1)


def picture_units(spec: Spec) -> Iterator[Unit]:
    """A unit a picture, in the order of the set; one that cannot be read fails alone, with its own words."""
    from engine.data.image_datasets import load_images
    from engine.image_predictions import picture_digests
    from engine.predictions import keys_by_digest, predictions

    model, dtype = spec["model"], spec.get("dtype", DTYPES[0])
    data = load_images(spec["data"], spec.get("split") or None)
    digests = picture_digests(data)
    known = [digest for digest in digests if digest is not None]
    keys = dict(zip(known, keys_by_digest(model, known, dtype), strict=True))

    def work(places: Sequence[int]) -> object:
        return predictions(model, [Picture(data[place].pixels) for place in places], dtype)

    named = [_unreadable(data, place) if digest is None else keys[digest] for place, digest in enumerate(digests)]
    batch = _together(work, {key: place for place, key in enumerate(named)})
    for place, key in enumerate(named):
        yield Unit(key, f"prediction, picture {place}", partial(work, [place]), stores_itself=True, batch=batch)


def _together(work: Callable[[Sequence[int]], object], places: Mapping[str, int]) -> Batch:
    return lambda units: work([places[unit.key] for unit in units])


def _unreadable(data: ImageDataset, place: int) -> str:
    """A key under which nothing is ever found, so that the picture is tried again by every run."""
    return key_for({"kind": "picture that cannot be read", "revision": data.revision, "split": data.split, "at": place})
