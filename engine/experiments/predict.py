"""The job `predict`: the predictions of a whole data set, and how much quick methods disagree about each.

It is a kind of job and no `Experiment`: there is nothing to assemble, and the predictions and comparisons that it
leaves in the cache are its result. Pictures are read when their turn comes, never all at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from cache import key_for
from engine import predictions
from engine.data.datasets import dataset_names, load
from engine.data.hub import HUB_PREFIX
from engine.data.image_datasets import load_images, registered_name
from engine.errors import UsageError, excerpt, not_allowed, unknown
from engine.input_kinds import kind_of_model
from engine.jobs.kinds import Spec, WorkUnit, batched_units, job_kind
from engine.metrics.agreement import check_methods, disagreement_keys, disagreements
from engine.models import catalog
from engine.predictions import picture_digests
from engine.request import DTYPES, Picture

_FIELDS = {"model", "data", "split", "methods", "dtype"}


def _title(spec: Spec) -> str:
    split = f" ({spec['split']})" if spec.get("split") else ""
    title = f"Predict {spec.get('data')}{split} with {spec.get('model')}"
    methods = spec.get("methods")
    return f"{title} and compare {', '.join(map(str, methods))}" if methods else title


def check(spec: Spec) -> None:
    """Refuse a specification that has no predictions. The hub is not queried: a download would be needed."""
    _check_shape(spec)
    if _is_of_pictures(spec):
        _check_picture_set(spec)
        return
    if "split" in spec:
        raise UsageError("split of a predict job: applies to image models only. Leave split out.")
    name = spec["data"]
    if name not in dataset_names() and not name.startswith(HUB_PREFIX) and not Path(name).exists():
        load(name, limit=1)  # raises an error that lists the known ones
    if "methods" in spec:
        check_methods(spec["methods"])


@job_kind("predict", title=_title, check=check)
def plan(spec: Spec) -> Iterator[WorkUnit]:
    """`model`, `data`: a name, a path or `hub:owner/name`, `methods`?: [id], `dtype`?; for pictures `split`?.

    A unit an example, the short texts first; with methods then another one, which explains it by each of them.
    Pictures come in the order of their set.
    """
    check(spec)
    return _picture_units(spec) if _is_of_pictures(spec) else _text_units(spec)


def _is_of_pictures(spec: Spec) -> bool:
    """Whether the job is of pictures: by the model on this machine; for a model of the hub by the data set."""
    model = spec["model"]
    if model.startswith(("/", "./", "../", "~")) or not catalog.HUB_ID.fullmatch(model):
        return kind_of_model(model) == "image"
    return registered_name(spec["data"]) is not None or "split" in spec


def _text_units(spec: Spec) -> Iterator[WorkUnit]:
    model, dtype, methods = spec["model"], spec.get("dtype", DTYPES[0]), spec.get("methods", [])
    places = sorted(enumerate(load(spec["data"]).examples), key=lambda place: place[1].example.length)
    examples = [labeled.example for _, labeled in places]
    yield from batched_units(
        predictions.prediction_keys(model, examples, dtype),
        examples,
        [f"prediction, example {index}" for index, _ in places],
        lambda group: predictions.predictions(model, group, dtype),
    )
    if methods:
        yield from batched_units(
            disagreement_keys(model, examples, methods, dtype),
            examples,
            [f"comparison, example {index}" for index, _ in places],
            lambda group: disagreements(model, group, methods, dtype),
        )


def _picture_units(spec: Spec) -> Iterator[WorkUnit]:
    """A unit a picture, in the order of the set; one that cannot be read fails alone, with its own error."""
    model, dtype = spec["model"], spec.get("dtype", DTYPES[0])
    data = load_images(spec["data"], spec.get("split") or None)
    digests = picture_digests(data)
    readable = [digest for digest in digests if digest is not None]
    keys = dict(zip(readable, predictions.keys_by_digest(model, readable, dtype), strict=True))
    # A key under which nothing is ever stored, so that every run tries to read the picture again.
    unreadable = {"kind": "picture that cannot be read", "revision": data.revision, "split": data.split}

    def work(places: Sequence[int]) -> object:
        return predictions.predictions(model, [Picture(data[place].pixels) for place in places], dtype)

    places = range(len(digests))
    yield from batched_units(
        [key_for({**unreadable, "at": place}) if (own := digests[place]) is None else keys[own] for place in places],
        places,
        [f"prediction, picture {place}" for place in places],
        work,
    )


def _check_shape(spec: Spec) -> None:
    if spec.keys() - _FIELDS or {"model", "data"} - spec.keys():
        raise UsageError(
            "spec of a predict job: must have model and data, and may have methods and dtype, for pictures split, "
            f"got {excerpt(sorted(spec))}."
        )
    shapes = (("model", "a name, a folder or a hub id"), ("data", "a data set's name, a path or hub:owner/name"))
    for name, shape in shapes:
        if not isinstance(spec[name], str):
            raise not_allowed(f"{name} of a predict job", shape, spec[name])
    methods: Any = spec.get("methods", [])
    if not isinstance(methods, list) or not all(isinstance(method, str) for method in methods):
        raise not_allowed("methods of a predict job", "a list of method names", methods)
    if spec.get("dtype", DTYPES[0]) not in DTYPES:
        raise unknown("dtype of a predict job", spec["dtype"], DTYPES)


def _check_picture_set(spec: Spec) -> None:
    """Refuse a set that does not exist. The hub and the inside of files are not opened."""
    name, split = spec["data"], spec.get("split")
    if not isinstance(split, str | None):
        raise not_allowed("split of a predict job", "the name of a split", split)
    if "methods" in spec:
        raise UsageError("methods of a predict job: are compared on texts only. Leave methods out.")
    if registered_name(name) or not (name.startswith(HUB_PREFIX) or Path(name).exists()):
        load_images(name, split or None, limit=1)
