"""Options: fields of frozen dataclasses that validate input, draw widgets and enter the cache key.

The parameters of explainers and the plans of experiments (`engine.experiments.base`) consist of them.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Mapping
from typing import Any

from engine.errors import UsageError, excerpt, not_allowed, unknown

Plain = bool | int | float | str | None


@dataclasses.dataclass(frozen=True)
class NoParams:
    """Parameters of explainers without options."""


def option(
    default: Any,
    help: str = "",
    *,
    low: int | float | None = None,
    high: int | float | None = None,
    choices: tuple[Any, ...] = (),
    **more: Any,
) -> Any:
    """Return a dataclass field with its help text, bounds and choices as metadata.

    `default`: `dataclasses.MISSING` for a required field. `more`: metadata that only plans of experiments use, see
    `engine.experiments.options`.
    """
    return dataclasses.field(
        default=default,
        metadata={"help": help, "low": low, "high": high, "choices": choices, **more},
    )


QUANTITIES = LOGIT, PROBABILITY = "logit", "probability"
"""Quantities whose gradient can be taken: f or m of the explained class. For a regression head both are the score."""


@dataclasses.dataclass(frozen=True)
class QuantityParams:
    """The parameter that all gradient methods share."""

    quantity: str = option(LOGIT, "What is explained: the logit of the class, or its probability", choices=QUANTITIES)


def from_mapping(kind: type, values: Mapping[str, object], owner: str, *, flags: bool = False) -> Any:
    """Create an instance of the dataclass `kind` from plain values. Strings are converted.

    `flags`: whether errors name a field by its command-line option, `--n-steps` instead of `owner.n_steps`.
    Errors: an unknown name, with the known ones; a value out of bounds, with the bounds.
    """
    fields = {f.name: f for f in dataclasses.fields(kind)}
    for name in values:
        if name not in fields:
            raise unknown(f"parameter of {owner}", name, fields)
    hints = _hints(kind)
    arguments = {n: f"--{n.replace('_', '-')}" if flags else f"{owner}.{n}" for n in values}
    clean = {n: _convert(fields[n], hints[n], v, arguments[n]) for n, v in values.items()}
    return kind(**clean)


@functools.cache
def _hints(kind: type) -> Mapping[str, Any]:
    return typing.get_type_hints(kind)


def as_plain(params: Any) -> dict[str, Plain]:
    """Return all parameters, including defaults, as plain values, as used in cache keys and on pages."""
    return dataclasses.asdict(params)


def _convert(field: dataclasses.Field[Any], hint: Any, value: object, argument: str) -> Plain:
    choices = field.metadata.get("choices") or ()
    if value is None or (isinstance(value, str) and value.lower() == "none" and value not in choices):
        if type(None) in typing.get_args(hint):
            return None
        raise not_allowed(argument, allowed(field, hint), value)
    converted = _cast(_base_type(hint), value, argument, allowed(field, hint))
    _check_bounds(field, hint, converted, argument)
    return converted


def _base_type(hint: Any) -> type:
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return next(a for a in typing.get_args(hint) if a is not type(None))
    return hint


def _cast(kind: type, value: object, argument: str, allowed: str) -> Plain:
    if kind is bool:
        if isinstance(value, bool):
            return value
        if str(value).lower() in ("true", "false", "yes", "no", "1", "0"):
            return str(value).lower() in ("true", "yes", "1")
        raise not_allowed(argument, allowed, value)
    if isinstance(value, bool):
        raise not_allowed(argument, allowed, value)
    try:
        if kind is int:
            number = float(str(value))
            if not number.is_integer():
                raise ValueError
            return int(str(value)) if str(value).lstrip("+-").isdigit() else int(number)
        if kind is float:
            return float(str(value))
    except (ValueError, OverflowError):
        raise not_allowed(argument, allowed, value) from None
    if not isinstance(value, str):
        raise not_allowed(argument, allowed, value)
    return value


def _check_bounds(field: dataclasses.Field[Any], hint: Any, value: Plain, argument: str) -> None:
    meta = field.metadata
    if meta.get("choices") and value not in meta["choices"]:
        raise not_allowed(argument, allowed(field, hint), value)
    if isinstance(value, float) and not math.isfinite(value):
        raise not_allowed(argument, "a finite number", value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, high = meta.get("low"), meta.get("high")
        if (low is not None and value < low) or (high is not None and value > high):
            raise not_allowed(argument, allowed(field, hint), value)


def allowed(field: dataclasses.Field[Any], hint: Any) -> str:
    """Describe the allowed values of a field."""
    meta = field.metadata
    if meta.get("choices"):
        return "one of " + ", ".join(meta["choices"])
    noun = {bool: "true or false", int: "a whole number", float: "a number"}.get(_base_type(hint), "a text")
    low, high = meta.get("low"), meta.get("high")
    if low is not None and high is not None:
        return f"{noun} from {_bound(low)} to {_bound(high)}"
    if low is not None:
        return f"{noun} of at least {_bound(low)}"
    return noun if high is None else f"{noun} of at most {_bound(high)}"


def _bound(number: int | float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:g}"


def parse_fraction(argument: str, text: str) -> float:
    """Parse a number, or a fraction such as 8/255."""
    over, _, under = text.partition("/")
    try:
        return float(over) / float(under or 1)
    except (ValueError, ZeroDivisionError):
        raise not_allowed(argument, "a number, or a fraction such as 8/255", text[:40]) from None


def parse_assignments(pairs: list[str], argument: str = "dataset", example: str = "scenes:seed=7") -> dict[str, str]:
    """Parse assignments: `["seed=7"]` gives `{"seed": "7"}`. `argument`, `example`: used in error messages."""
    parsed = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        if not sign or not name:
            raise UsageError(f"{argument}: options must be name=value, got {excerpt(pair)}. Example: {example}.")
        parsed[name.strip()] = value.strip()
    return parsed
