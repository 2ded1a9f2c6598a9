"""The job kind `explain`: several methods on several examples, one cached explanation a unit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from engine.errors import UsageError, not_allowed, shown, unknown
from engine.jobs.kinds import Spec, Unit, job_kind
from engine.params import from_mapping
from engine.request import DTYPES, Example, Request

_TEXTS = {"text", "text_pair"}
_SHAPES: dict[str, tuple[type, str]] = {
    "model": (str, "a name, a folder or a hub id"),
    "methods": (list, "a list of method names"),
    "examples": (list, 'a list of {"text": ..., "text_pair"?: ...}'),
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
    if model.startswith(("/", "./", "../", "~")) or not catalog.HUB_ID.fullmatch(model):
        catalog.locate(model)
    for method in spec["methods"]:
        from_mapping(explainer(method).params, spec.get("params", {}).get(method, {}), method)
    for method in spec.get("params", {}):
        if method not in spec["methods"]:
            raise unknown("params of an explain job: method", method, spec["methods"])
    for number, example in enumerate(spec["examples"], 1):
        try:
            Example(**example).check_length()
        except UsageError as error:
            raise UsageError(f"example {number} of an explain job: {error}") from None


@job_kind("explain", title=_title, check=check)
def plan(spec: Spec) -> Iterator[Unit]:
    """`model`, `methods`: [id], `examples`: [{text, text_pair?}], `params`?: {method: {name: value}}, `target`?,
    `seed`?, `dtype`?. Method by method, so that examples which share a method follow each other.
    """
    from engine.explain import explain, explain_many, key_of

    check(spec)
    shared = {name: spec[name] for name in ("target", "seed", "dtype") if name in spec}
    for method in spec["methods"]:
        params = spec.get("params", {}).get(method, {})
        requests: dict[str, Request] = {}
        batch = partial(_together, explain_many, requests)
        for number, example in enumerate(spec["examples"]):
            request = Request(spec["model"], method, Example(**example), params, **shared)
            label = f"{method}, example {number + 1}"
            key = key_of(request)
            requests[key] = request
            yield Unit(key, label, partial(explain, request), stores_itself=True, batch=batch)


def _together(
    explain_many: Callable[[list[Request]], object], requests: Mapping[str, Request], units: Sequence[Unit]
) -> None:
    explain_many([requests[unit.key] for unit in units])


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
    _check_each("examples", spec["examples"], _is_example)
    _check_each("params", spec.get("params", {}).values(), lambda given: isinstance(given, dict))
    _check_choices(spec.get("target"), spec.get("seed", 0), spec.get("dtype", DTYPES[0]))


def _check_choices(target: object, seed: object, dtype: object) -> None:
    if target is not None and type(target) not in (int, str):
        raise not_allowed("target of an explain job", "a class index or a label", target)
    if type(seed) is not int or seed < 0:
        raise not_allowed("seed of an explain job", "a whole number of at least 0", seed)
    if dtype not in DTYPES:
        raise unknown("dtype of an explain job", dtype, DTYPES)


def _is_example(given: object) -> bool:
    if not isinstance(given, dict) or not {"text"} <= given.keys() <= _TEXTS:
        return False
    return isinstance(given["text"], str) and isinstance(given.get("text_pair"), str | None)


def _check_each(name: str, values: Iterable[object], good: Callable[[Any], bool]) -> None:
    for value in values:
        if not good(value):
            raise not_allowed(f"{name} of an explain job", _SHAPES[name][1], value)
