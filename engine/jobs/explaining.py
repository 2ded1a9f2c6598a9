"""The job kind `explain`: several methods on several examples, one cached explanation a unit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from engine.errors import ExegesisError, UsageError, not_allowed, shown, unknown
from engine.jobs.inputs import SHAPE, Inputs, is_example, key_of_unreadable, kind_of_all
from engine.jobs.kinds import Batch, Spec, Step, Unit, job_kind
from engine.params import from_mapping
from engine.request import DTYPES, Input, Request

_SHAPES: dict[str, tuple[type, str]] = {
    "model": (str, "a name, a folder or a hub id"),
    "methods": (list, "a list of method names"),
    "examples": (list, SHAPE),
    "params": (dict, "{method: {name: value}}"),
}
_KNOWN = {"model", "methods", "examples", "params", "target", "seed", "dtype"}


def _title(spec: Spec) -> str:
    methods, examples = spec.get("methods", []), spec.get("examples", [])
    return f"Explain {len(examples)} examples of {spec.get('model')} with {', '.join(map(str, methods))}"


def check(spec: Spec) -> None:
    """Refuses what no explanation can be made of. A hub's model is not looked for: it may have to be downloaded."""
    from engine.models import catalog
    from engine.registry import explainer

    _check_shape(spec)
    model = spec["model"]
    kind = kind_of_all(spec["examples"])
    if model.startswith(("/", "./", "../", "~")) or not catalog.HUB_ID.fullmatch(model):
        _check_reads(model, catalog.is_image_model(model), kind)
    for method in spec["methods"]:
        from_mapping(explainer(method, kind).params, spec.get("params", {}).get(method, {}), method)
    for method in spec.get("params", {}):
        if method not in spec["methods"]:
            raise unknown("params of an explain job: method", method, spec["methods"])
    Inputs(spec["examples"]).check()


@job_kind("explain", title=_title, check=check)
def plan(spec: Spec) -> Iterator[Unit]:
    """`model`, `methods`: [id], `examples`: [{text, text_pair?}] or [{dataset, index, split?}] of pictures,
    `params`?: {method: {name: value}}, `target`?, `seed`?, `dtype`?. Method by method, so that examples which share a
    method follow each other.
    """
    from engine.explain import explain_many
    from engine.registry import estimate_rows, explainer

    check(spec)
    inputs = Inputs(spec["examples"])
    keys = [_keys(spec, inputs, number) for number in range(len(spec["examples"]))]
    for place, method in enumerate(spec["methods"]):

        def work(numbers: Sequence[int], method: str = method) -> object:
            return explain_many([_request(spec, method, inputs[number]) for number in numbers])

        known = explainer(method, kind_of_all(spec["examples"]))
        title, rows = f"{known.title} on {spec['model']}", estimate_rows(known, spec.get("params", {}).get(method, {}))
        batch = _together(work, {of_example[place]: number for number, of_example in enumerate(keys)})
        for number, of_example in enumerate(keys):
            label, step = f"{method}, example {number + 1}", Step(title, number + 1, len(keys), rows)
            yield Unit(of_example[place], label, partial(work, [number]), stores_itself=True, batch=batch, step=step)


def _keys(spec: Spec, inputs: Inputs, number: int) -> list[str]:
    """The key of each method on one example, which is not held any longer: it may be a large picture."""
    from engine.explain import key_of

    try:
        example = inputs[number]
    except ExegesisError as error:
        return [key_of_unreadable(method, spec["examples"][number], error) for method in spec["methods"]]
    return [key_of(_request(spec, method, example)) for method in spec["methods"]]


def _request(spec: Spec, method: str, example: Input) -> Request:
    shared = {name: spec[name] for name in ("target", "seed", "dtype") if name in spec}
    return Request(spec["model"], method, example, spec.get("params", {}).get(method, {}), **shared)


def _together(work: Callable[[Sequence[int]], object], numbers: Mapping[str, int]) -> Batch:
    return lambda units: work([numbers[unit.key] for unit in units])


def _check_shape(spec: Spec) -> None:
    if spec.keys() - _KNOWN or {"model", "methods", "examples"} - spec.keys():
        raise UsageError(
            f"spec of an explain job: must have model, methods and examples, and may have params, target, seed "
            f"and dtype, got {shown(sorted(spec))}."
        )
    if not spec["methods"] or not spec["examples"]:
        raise UsageError("spec of an explain job: methods and examples must not be empty.")
    for name, (kind, shape) in _SHAPES.items():
        if not isinstance(spec.get(name, kind()), kind):
            raise not_allowed(f"{name} of an explain job", shape, spec[name])
    _check_each("methods", spec["methods"], lambda method: isinstance(method, str))
    _check_each("examples", spec["examples"], is_example)
    _check_each("params", spec.get("params", {}).values(), lambda given: isinstance(given, dict))
    _check_choices(spec.get("target"), spec.get("seed", 0), spec.get("dtype", DTYPES[0]))


def _check_reads(model: str, pictures: bool, kind: str) -> None:
    if pictures != (kind == "image"):
        wanted, got = ("pictures", "texts") if pictures else ("texts", "pictures")
        raise UsageError(f"examples of an explain job: must be {wanted}, which is what {model} reads, got {got}.")


def _check_choices(target: object, seed: object, dtype: object) -> None:
    if target is not None and type(target) not in (int, str):
        raise not_allowed("target of an explain job", "a class index or a label", target)
    if type(seed) is not int or seed < 0:
        raise not_allowed("seed of an explain job", "a whole number of at least 0", seed)
    if dtype not in DTYPES:
        raise unknown("dtype of an explain job", dtype, DTYPES)


def _check_each(name: str, values: Iterable[object], good: Callable[[Any], bool]) -> None:
    for value in values:
        if not good(value):
            raise not_allowed(f"{name} of an explain job", _SHAPES[name][1], value)
