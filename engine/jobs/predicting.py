"""The job kind `predict`: the predictions of a whole data set, and how much quick methods disagree about each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from engine.errors import UsageError, not_allowed, shown, unknown
from engine.jobs.kinds import Batch, Spec, Unit, job_kind
from engine.jobs.predicting_pictures import check_picture_set, picture_units
from engine.request import DTYPES, Example

_KNOWN = {"model", "data", "split", "methods", "dtype"}


def _title(spec: Spec) -> str:
    split = f" ({spec['split']})" if spec.get("split") else ""
    told = f"Predict {spec.get('data')}{split} with {spec.get('model')}"
    methods = spec.get("methods")
    return f"{told} and compare {', '.join(map(str, methods))}" if methods else told


def check(spec: Spec) -> None:
    """Refuses what nothing can be predicted of. What is on the hub is not looked for: it may have to be downloaded."""
    from engine.metrics.agreement import check_methods

    _check_shape(spec)
    if _of_pictures(spec):
        check_picture_set(spec)
        return
    if "split" in spec:
        raise UsageError("split of a predict job: is for models of pictures. Leave split out.")
    _check_data(spec["data"])
    if "methods" in spec:
        check_methods(spec["methods"])


@job_kind("predict", title=_title, check=check)
def plan(spec: Spec) -> Iterator[Unit]:
    """`model`, `data`: a name, a path or `hub:owner/name`, `methods`?: [id], `dtype`?; for pictures `split`?.

    A unit an example, the short texts first; with methods then another one, which explains it by each of them.
    Pictures come in the order of their set.
    """
    check(spec)
    return picture_units(spec) if _of_pictures(spec) else _text_units(spec)


def _of_pictures(spec: Spec) -> bool:
    """Told by the model, where that is at hand; of a hub's model by the data set."""
    from engine.data.image_datasets import registered_name
    from engine.models import catalog

    model = spec["model"]
    if model.startswith(("/", "./", "../", "~")) or not catalog.HUB_ID.fullmatch(model):
        return catalog.is_image_model(model)
    return registered_name(spec["data"]) is not None or "split" in spec


def _text_units(spec: Spec) -> Iterator[Unit]:
    from engine.data.datasets import load
    from engine.metrics.agreement import disagreement_keys, disagreements
    from engine.predictions import prediction_keys, predictions

    model, dtype, methods = spec["model"], spec.get("dtype", DTYPES[0]), spec.get("methods", [])
    places = sorted(enumerate(load(spec["data"]).examples), key=lambda place: place[1].example.length)
    examples = [labelled.example for _, labelled in places]
    names = [f"example {index}" for index, _ in places]
    yield from _units(
        "prediction", names, examples, prediction_keys(model, examples, dtype),
        lambda group: predictions(model, group, dtype),
    )  # fmt: skip
    if methods:
        yield from _units(
            "comparison", names, examples, disagreement_keys(model, examples, methods, dtype),
            lambda group: disagreements(model, group, methods, dtype),
        )  # fmt: skip


def _units(
    what: str,
    names: Sequence[str],
    examples: Sequence[Example],
    keys: Sequence[str],
    work: Callable[[list[Example]], object],
) -> Iterator[Unit]:
    batch = _together(work, dict(zip(keys, examples, strict=True)))
    for name, example, key in zip(names, examples, keys, strict=True):
        yield Unit(key, f"{what}, {name}", partial(work, [example]), stores_itself=True, batch=batch)


def _together(work: Callable[[list[Example]], object], examples: Mapping[str, Example]) -> Batch:
    return lambda units: work([examples[unit.key] for unit in units])


def _check_shape(spec: Spec) -> None:
    if spec.keys() - _KNOWN or {"model", "data"} - spec.keys():
        raise UsageError(
            "spec of a predict job: must have model and data, and may have methods and dtype, for pictures split, "
            f"got {shown(sorted(spec))}."
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


def _check_data(name: str) -> None:
    from engine.data.datasets import dataset_names, load

    if name not in dataset_names() and not name.startswith("hub:") and not Path(name).exists():
        load(name, limit=1)  # says what is known
