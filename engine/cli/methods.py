"""Which methods a command was asked for, and with which parameters."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from engine.cli import values
from engine.errors import UsageError, unknown

if TYPE_CHECKING:
    from engine.params import Plain
    from engine.registry import Explainer

ALL = "all"


def methods_of(option: str, given: str, kind: str, models: Sequence[str] = ()) -> tuple[list[Explainer], bool]:
    """The methods asked for, and whether that was all of them: then those that one of `models` has not are left out,
    and it is said why."""
    from engine.registry import all_explainers, explainer

    known = all_explainers(kind)
    if not given.strip():
        raise UsageError(f"{option}: is missing. Give one or more between commas, or {ALL}. Known: {', '.join(known)}.")
    asked = values.names(option, given)
    if asked == [ALL]:
        return [method for method in known.values() if _serves(method, models)], True
    return [explainer(name, kind) for name in asked], False


def _serves(method: Explainer, models: Sequence[str]) -> bool:
    from engine.cli.guard import note

    reason = next(filter(None, map(method.why_not, models)), "")
    if reason:
        note(f"{method.id} is left out: {reason}")
    return not reason


def params_of(given: list[str] | None, methods: Sequence[Explainer]) -> dict[str, dict[str, str]]:
    """Each method's parameters: `name` goes to every method that has it, `method.name` to that one."""
    asked = values.pairs("--param", given or [], "n_steps=50")
    own = {method.id: [f.name for f in dataclasses.fields(method.params)] for method in methods}
    chosen: dict[str, dict[str, str]] = {name: {} for name in own}
    # The addressed ones come last, so that they win over the general ones.
    for key, value in sorted(asked.items(), key=lambda item: "." in item[0]):
        method, dot, parameter = key.rpartition(".")
        if dot and method not in own:
            raise unknown("--param: method", method, own)
        takers = [method] if dot else [name for name in own if parameter in own[name]]
        known = own[method] if dot else {p for parameters in own.values() for p in parameters}
        if parameter not in known:
            raise unknown(f"--param: parameter of {method or ', '.join(own)}", parameter, known)
        for name in takers:
            chosen[name][parameter] = value
    return chosen


def values_of(given: list[str] | None, methods: Sequence[Explainer]) -> dict[str, dict[str, Plain]]:
    """Those parameters as values, so that the same work has the same key wherever it was asked for."""
    from engine.params import from_mapping

    asked = params_of(given, methods)
    found: dict[str, dict[str, Plain]] = {}
    for method in methods:
        if own := asked[method.id]:
            made = from_mapping(method.params, own, method.id)
            found[method.id] = {name: getattr(made, name) for name in own}
    return found
