"""The jobs `explain` and `predict`: work on single examples, with one cached result per unit.

`explain` runs several methods on several given examples. `predict` predicts a whole data set, and measures how much
quick methods disagree about each example.

They are kinds of jobs rather than an `Experiment`: there is nothing to assemble, and the explanations, predictions and
comparisons that they cache are their result. Pictures are read when they are needed, never all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cache import key_for
from engine import predictions
from engine.data.datasets import dataset_names, load
from engine.data.examples import ImageDataset
from engine.data.hub import HUB_PREFIX
from engine.data.image_datasets import load_images, registered_name
from engine.data.slices import whole_name
from engine.errors import ExegesisError, UsageError, excerpt, not_allowed, unknown
from engine.explain import explain_many, key_of
from engine.input_kinds import input_kind, kind_of_model
from engine.jobs.kinds import Spec, WorkUnit, batched_units, job_kind, unreadable_key
from engine.metrics.agreement import check_methods, disagreement_keys, disagreements
from engine.models import catalog
from engine.params import from_mapping
from engine.predictions import picture_digests
from engine.registry import estimate_rows, explainer
from engine.request import DTYPES, Input, Picture, Request, read_example

TEXT_FIELDS, PICTURE_FIELDS = {"text", "text_pair"}, {"dataset", "index", "split"}
PROMPT_FIELDS = {"prompt", "target", "contrast", "chat", "of"}
_EXPLAIN_SHAPES: dict[str, tuple[type, str]] = {
    "model": (str, "a name, a folder or a hub id"),
    "methods": (list, "a list of method names"),
    "examples": (
        list,
        'a list of {"text": ..., "text_pair"?: ...}, of {"prompt": ..., "target"?: ..., "contrast"?: ...} or of '
        '{"dataset": ..., "index": ..., "split"?: ...}',
    ),
    "params": (dict, "{method: {name: value}}"),
}
_EXPLAIN_FIELDS = {"model", "methods", "examples", "params", "target", "seed", "dtype"}


def _explain_title(spec: Spec) -> str:
    methods, examples = spec.get("methods", []), spec.get("examples", [])
    return f"Explain {len(examples)} examples of {spec.get('model')} with {', '.join(map(str, methods))}"


def check_explain(spec: Spec) -> None:
    """Refuse an invalid specification. A hub's model is not looked up: it may have to be downloaded."""
    _check_explain_shape(spec)
    model = spec["model"]
    kind = kind_of_all(spec["examples"])
    if _is_here(model) and (expected := kind_of_model(model)) != kind:
        texts, got = input_kind(expected).plural, input_kind(kind).plural
        raise UsageError(f"examples of an explain job: must be {texts}, which is what {model} reads, got {got}.")
    for method in spec["methods"]:
        from_mapping(explainer(method, kind).params, spec.get("params", {}).get(method, {}), method)
    for method in spec.get("params", {}):
        if method not in spec["methods"]:
            raise unknown("params of an explain job: method", method, spec["methods"])
    Inputs(spec["examples"]).check()


@job_kind("explain", title=_explain_title, check=check_explain)
def plan_explain(spec: Spec) -> Iterator[WorkUnit]:
    """Yield one unit per method and example, method by method, so that examples which share a method are adjacent.

    Fields of `spec`: `model`, `methods`: [id], `examples`: [{text, text_pair?}], [{prompt, target?, contrast?, chat?}]
    or [{dataset, index, split?}] of pictures, `params`?: {method: {name: value}}, `target`?, `seed`?, `dtype`?.
    """
    check_explain(spec)
    inputs = Inputs(spec["examples"])
    numbers = range(len(spec["examples"]))
    keys = [_keys(spec, inputs, number) for number in numbers]
    for place, method in enumerate(spec["methods"]):

        def work(numbers: Sequence[int], method: str = method) -> object:
            return explain_many([_request(spec, method, inputs[number]) for number in numbers])

        own = explainer(method, kind_of_all(spec["examples"]))
        title, rows = f"{own.title} on {spec['model']}", estimate_rows(own, spec.get("params", {}).get(method, {}))
        labels = [f"{method}, example {number + 1}" for number in numbers]
        yield from batched_units([of[place] for of in keys], numbers, labels, work, title, rows)


def _keys(spec: Spec, inputs: Inputs, number: int) -> list[str]:
    """Return the cache key of each method on one example, which is then released: it may be a large picture."""
    try:
        example = inputs[number]
    except ExegesisError as error:
        return [unreadable_key(method, spec["examples"][number], error) for method in spec["methods"]]
    return [key_of(_request(spec, method, example)) for method in spec["methods"]]


def _request(spec: Spec, method: str, example: Input) -> Request:
    shared = {name: spec[name] for name in ("target", "seed", "dtype") if name in spec}
    return Request(spec["model"], method, example, spec.get("params", {}).get(method, {}), **shared)


class Inputs:
    """The examples of a job by number: texts in its specification, or pictures given by data set and index.

    Pictures are read one at a time: all of them would not fit into memory. Each picture set is opened once.
    """

    def __init__(self, examples: Sequence[Mapping[str, Any]]) -> None:
        self._examples = examples
        self._sets: dict[tuple[str, str | None], ImageDataset] = {}

    def check(self) -> None:
        """Refuse texts that are too long and picture sets that do not exist. Does not query the hub or open files."""
        for number, example in enumerate(self._examples, 1):
            try:
                if is_text(example):
                    read_example(example).check_length()
                elif _can_open(example["dataset"]):
                    self._set(example["dataset"], example.get("split"))
            except UsageError as error:
                raise UsageError(f"example {number} of an explain job: {error}") from None

    def __getitem__(self, number: int) -> Input:
        example = self._examples[number]
        if is_text(example):
            return read_example(example)
        return Picture(self._set(example["dataset"], example.get("split"))[example["index"]].pixels)

    def _set(self, name: str, split: str | None) -> ImageDataset:
        if (name, split) not in self._sets:
            self._sets[name, split] = load_images(name, split)
        return self._sets[name, split]


def kind_of_all(examples: Sequence[Mapping[str, Any]]) -> str:
    """Return the kind of all examples of a job, "text" or "image". Errors: they are of both kinds."""
    kinds = {"text" if is_text(example) else "image" for example in examples}
    if len(kinds) > 1:
        raise UsageError("examples of an explain job: must be texts or pictures, got both. Split them into two jobs.")
    return kinds.pop()


def _check_explain_shape(spec: Spec) -> None:
    if spec.keys() - _EXPLAIN_FIELDS or {"model", "methods", "examples"} - spec.keys():
        raise UsageError(
            f"spec of an explain job: must have model, methods and examples, and may have params, target, seed "
            f"and dtype, got {excerpt(sorted(spec))}."
        )
    if not spec["methods"] or not spec["examples"]:
        raise UsageError("spec of an explain job: methods and examples must not be empty.")
    for name, (kind, shape) in _EXPLAIN_SHAPES.items():
        if not isinstance(spec.get(name, kind()), kind):
            raise not_allowed(f"{name} of an explain job", shape, spec[name])
    _check_each("methods", spec["methods"], lambda method: isinstance(method, str))
    _check_each("examples", spec["examples"], _is_example)
    _check_each("params", spec.get("params", {}).values(), lambda params: isinstance(params, dict))
    _check_choices(spec.get("target"), spec.get("seed", 0), spec.get("dtype", DTYPES[0]))


def _check_choices(target: object, seed: object, dtype: object) -> None:
    if target is not None and type(target) not in (int, str):
        raise not_allowed("target of an explain job", "a class index or a label", target)
    if type(seed) is not int or seed < 0:
        raise not_allowed("seed of an explain job", "a whole number of at least 0", seed)
    if dtype not in DTYPES:
        raise unknown("dtype of an explain job", dtype, DTYPES)


def _check_each(name: str, values: Iterable[object], is_valid: Callable[[Any], bool]) -> None:
    for value in values:
        if not is_valid(value):
            raise not_allowed(f"{name} of an explain job", _EXPLAIN_SHAPES[name][1], value)


def _is_example(value: object) -> bool:
    """Whether a value is a text or a picture of a specification."""
    return isinstance(value, dict) and (is_text(value) or _is_picture(value))


def is_text(value: Mapping[str, object]) -> bool:
    """Whether plain values are a text, a pair of texts or a prompt."""
    first, fields = ("prompt", PROMPT_FIELDS) if "prompt" in value else ("text", TEXT_FIELDS)
    rest = [value[name] for name in value.keys() - {first, "chat"}]
    return (
        {first} <= value.keys() <= fields
        and isinstance(value[first], str)
        and all(isinstance(one, str | None) for one in rest)
        and str(value.get("chat", False)) in (str(True), str(False))
    )


def _is_picture(value: Mapping[str, object]) -> bool:
    index = value.get("index")
    return (
        {"dataset", "index"} <= value.keys() <= PICTURE_FIELDS
        and isinstance(value["dataset"], str)
        and type(index) is int
        and index >= 0
        and isinstance(value.get("split"), str | None)
    )


_PREDICT_FIELDS = {"model", "data", "split", "methods", "dtype"}


def _predict_title(spec: Spec) -> str:
    split = f" ({spec['split']})" if spec.get("split") else ""
    title = f"Predict {spec.get('data')}{split} with {spec.get('model')}"
    methods = spec.get("methods")
    return f"{title} and compare {', '.join(map(str, methods))}" if methods else title


def check_predict(spec: Spec) -> None:
    """Refuse an invalid specification. The hub is not queried: a download would be needed."""
    _check_predict_shape(spec)
    if _is_of_pictures(spec):
        _check_picture_set(spec)
        return
    if "split" in spec:
        raise UsageError("split of a predict job: applies to image models only. Leave split out.")
    name = spec["data"]
    if name not in dataset_names() and not name.startswith(HUB_PREFIX) and not Path(whole_name(name)).exists():
        load(name, limit=1)  # raises an error that lists the known ones
    if "methods" in spec:
        check_methods(spec["methods"])


@job_kind("predict", title=_predict_title, check=check_predict)
def plan_predict(spec: Spec) -> Iterator[WorkUnit]:
    """Yield one unit per example, short texts first; with methods, then a second unit that explains it by each of them.

    Pictures are in the order of their data set. Fields of `spec`: `model`, `data`: a name, a path or `hub:owner/name`,
    `methods`?: [id], `dtype`?; for pictures `split`?.
    """
    check_predict(spec)
    return _picture_units(spec) if _is_of_pictures(spec) else _text_units(spec)


def _is_of_pictures(spec: Spec) -> bool:
    """Whether the job is on pictures, by the model if it is on this machine, else by the data set and the split."""
    model = spec["model"]
    if _is_here(model):
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
    """Yield one unit per picture, in order; a picture that cannot be read fails alone, with its own error."""
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


def _check_predict_shape(spec: Spec) -> None:
    if spec.keys() - _PREDICT_FIELDS or {"model", "data"} - spec.keys():
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
    """Refuse a data set that does not exist. The hub is not queried, and files are not opened."""
    name, split = spec["data"], spec.get("split")
    if not isinstance(split, str | None):
        raise not_allowed("split of a predict job", "the name of a split", split)
    if "methods" in spec:
        raise UsageError("methods of a predict job: are compared on texts only. Leave methods out.")
    if _can_open(name):
        load_images(name, split or None, limit=1)


def _is_here(model: str) -> bool:
    """Whether a model is on this machine, by its name; otherwise it is on the hub and may have to be downloaded."""
    return model.startswith(("/", "./", "../", "~")) or not catalog.HUB_ID.fullmatch(model)


def _can_open(pictures: str) -> bool:
    """Whether a check can open a picture set: it is registered or unknown, so neither on the hub nor a file."""
    is_elsewhere = pictures.startswith(HUB_PREFIX) or Path(whole_name(pictures)).exists()
    return bool(registered_name(pictures)) or not is_elsewhere
