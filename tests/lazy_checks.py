"""Checks of types and shapes at run time, made for a function when it is first called.

`--jaxtyping-packages` has each function checked by `jaxtyping.jaxtyped`, which compiles two checkers of it while its
module is imported: for thousands of functions of which a process calls some, and with every call the shapes are
looked at, of which most functions have none. Here a function without arrays is checked by beartype alone.
"""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Callable
from typing import Any

import beartype
import jaxtyping
from beartype.roar import BeartypeException

_jaxtyped = jaxtyping.jaxtyped
_BEARTYPE = beartype.beartype(conf=beartype.BeartypeConf(violation_type=jaxtyping.TypeCheckError))
"""Its errors are those of a check with shapes."""


def install() -> None:
    """What is imported from now on is checked when it is called."""
    jaxtyping.jaxtyped = _lazily_checked


def _lazily_checked(*, typechecker: Any) -> Callable[[Any], Any]:
    """What decorates a function or, of a dataclass, its constructor. Other classes need nothing: the methods that they
    define are functions."""

    def decorate(decorated: Any) -> Any:
        if not isinstance(decorated, type):
            return _checked_from_the_first_call(decorated, typechecker)
        if dataclasses.is_dataclass(decorated) and not hasattr(decorated.__init__, "__wrapped__"):
            decorated.__init__ = _checked_from_the_first_call(decorated.__init__, typechecker)  # type: ignore[method-assign]
        return decorated

    return decorate


def _checked_from_the_first_call(function: Callable[..., Any], typechecker: Any) -> Callable[..., Any]:
    checked: Callable[..., Any] | None = None

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal checked
        if checked is None:
            checked = _check(function, typechecker)
        return checked(*args, **kwargs)

    return call


def _check(function: Callable[..., Any], typechecker: Any) -> Callable[..., Any]:
    """With shapes where a hint has some, and where that cannot be told because a name is there for mypy alone."""
    try:
        hints = typing.get_type_hints(function).values()
        if not any(map(_has_array, hints)):
            return _BEARTYPE(function)
    except (NameError, TypeError, AttributeError, BeartypeException):
        pass
    return _jaxtyped(function, typechecker=typechecker)


def _has_array(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, jaxtyping.AbstractArray):
        return True
    return any(map(_has_array, typing.get_args(hint)))
