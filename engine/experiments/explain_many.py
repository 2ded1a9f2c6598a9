"""The job `explain`: several methods on several examples, one cached explanation a unit.

It is a kind of job and no `Experiment`: a page or a person names the examples themselves, there is nothing to assemble,
and the explanations that it leaves in the cache are its result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.data.examples import ImageDataset
from engine.data.hub import HUB_PREFIX
from engine.data.image_datasets import load_images, registered_name
from engine.errors import ExegesisError, UsageError, excerpt, not_allowed, unknown
from engine.explain import explain_many, key_of
from engine.input_kinds import input_kind, kind_of_model
from engine.jobs.kinds import Spec, WorkUnit, batched_units, job_kind, unreadable_key
from engine.models import catalog
from engine.params import from_mapping
from engine.registry import estimate_rows, explainer
from engine.request import DTYPES, Example, Input, Picture, Request

TEXT_FIELDS, PICTURE_FIELDS = {"text", "text_pair"}, {"dataset", "index", "split"}
_SHAPES: dict[str, tuple[type, str]] = {
    "model": (str, "a name, a folder or a hub id"),
    "methods": (list, "a list of method names"),
    "examples": (
        list,
        'a list of {"text": ..., "text_pair"?: ...} or of {"dataset": ..., "index": ..., "split"?: ...}',
    ),
    "params": (dict, "{method: {name: value}}"),
}
_FIELDS = {"model", "methods", "examples", "params", "target", "seed", "dtype"}


def _title(spec: Spec) -> str:
    methods, examples = spec.get("methods", []), spec.get("examples", [])
    return f"Explain {len(examples)} examples of {spec.get('model')} with {', '.join(map(str, methods))}"


def check(spec: Spec) -> None:
    """Refuse a specification that has no explanation. A hub's model is not looked up: it may have to be downloaded."""
    _check_shape(spec)
    model = spec["model"]
    kind = kind_of_all(spec["examples"])
    if model.startswith(("/", "./", "../", "~")) or not catalog.HUB_ID.fullmatch(model):
        _check_reads(model, kind)
    for method in spec["methods"]:
        from_mapping(explainer(method, kind).params, spec.get("params", {}).get(method, {}), method)
    for method in spec.get("params", {}):
        if method not in spec["methods"]:
            raise unknown("params of an explain job: method", method, spec["methods"])
    Inputs(spec["examples"]).check()


@job_kind("explain", title=_title, check=check)
def plan(spec: Spec) -> Iterator[WorkUnit]:
    """`model`, `methods`: [id], `examples`: [{text, text_pair?}] or [{dataset, index, split?}] of pictures,
    `params`?: {method: {name: value}}, `target`?, `seed`?, `dtype`?. Method by method, so that examples which share a
    method follow each other.
    """
    check(spec)
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
    """The key of each method on one example, which is then released: it may be a large picture."""
    try:
        example = inputs[number]
    except ExegesisError as error:
        return [unreadable_key(method, spec["examples"][number], error) for method in spec["methods"]]
    return [key_of(_request(spec, method, example)) for method in spec["methods"]]


def _request(spec: Spec, method: str, example: Input) -> Request:
    shared = {name: spec[name] for name in ("target", "seed", "dtype") if name in spec}
    return Request(spec["model"], method, example, spec.get("params", {}).get(method, {}), **shared)


class Inputs:
    """The examples of a job by number: texts that stand in it, or pictures that it names by data set and place.

    Pictures are read one at a time: all of them would not fit into memory. Each picture set is opened once.
    """

    def __init__(self, examples: Sequence[Mapping[str, Any]]) -> None:
        self._examples = examples
        self._sets: dict[tuple[str, str | None], ImageDataset] = {}

    def check(self) -> None:
        """Refuse texts that are too long and picture sets that do not exist; hub and files are not opened."""
        for number, example in enumerate(self._examples, 1):
            try:
                if "text" in example:
                    Example(**example).check_length()
                else:
                    self._check_set(example["dataset"], example.get("split"))
            except UsageError as error:
                raise UsageError(f"example {number} of an explain job: {error}") from None

    def __getitem__(self, number: int) -> Input:
        example = self._examples[number]
        if "text" in example:
            return Example(**example)
        return Picture(self._set(example["dataset"], example.get("split"))[example["index"]].pixels)

    def _set(self, name: str, split: str | None) -> ImageDataset:
        if (name, split) not in self._sets:
            self._sets[name, split] = load_images(name, split)
        return self._sets[name, split]

    def _check_set(self, name: str, split: str | None) -> None:
        if registered_name(name) or not (name.startswith(HUB_PREFIX) or Path(name).exists()):
            self._set(name, split)


def kind_of_all(examples: Sequence[Mapping[str, Any]]) -> str:
    """ "text" or "image"; all examples of a job are of one kind."""
    kinds = {"text" if "text" in example else "image" for example in examples}
    if len(kinds) > 1:
        raise UsageError("examples of an explain job: must be texts or pictures, got both. Split them into two jobs.")
    return kinds.pop()


def _check_shape(spec: Spec) -> None:
    if spec.keys() - _FIELDS or {"model", "methods", "examples"} - spec.keys():
        raise UsageError(
            f"spec of an explain job: must have model, methods and examples, and may have params, target, seed "
            f"and dtype, got {excerpt(sorted(spec))}."
        )
    if not spec["methods"] or not spec["examples"]:
        raise UsageError("spec of an explain job: methods and examples must not be empty.")
    for name, (kind, shape) in _SHAPES.items():
        if not isinstance(spec.get(name, kind()), kind):
            raise not_allowed(f"{name} of an explain job", shape, spec[name])
    _check_each("methods", spec["methods"], lambda method: isinstance(method, str))
    _check_each("examples", spec["examples"], _is_example)
    _check_each("params", spec.get("params", {}).values(), lambda params: isinstance(params, dict))
    _check_choices(spec.get("target"), spec.get("seed", 0), spec.get("dtype", DTYPES[0]))


def _check_reads(model: str, kind: str) -> None:
    if (expected := kind_of_model(model)) != kind:
        texts, got = input_kind(expected).plural, input_kind(kind).plural
        raise UsageError(f"examples of an explain job: must be {texts}, which is what {model} reads, got {got}.")


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
            raise not_allowed(f"{name} of an explain job", _SHAPES[name][1], value)


def _is_example(value: object) -> bool:
    """Whether it names a text or a picture."""
    return isinstance(value, dict) and (_is_text(value) or _is_picture(value))


def _is_text(value: Mapping[str, object]) -> bool:
    pair = value.get("text_pair")
    return {"text"} <= value.keys() <= TEXT_FIELDS and isinstance(value["text"], str) and isinstance(pair, str | None)


def _is_picture(value: Mapping[str, object]) -> bool:
    index = value.get("index")
    return (
        {"dataset", "index"} <= value.keys() <= PICTURE_FIELDS
        and isinstance(value["dataset"], str)
        and type(index) is int
        and index >= 0
        and isinstance(value.get("split"), str | None)
    )
