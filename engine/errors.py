"""Errors a person can act on: one sentence that says what, what is allowed, what was got, what next."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterable, Iterator


class ExegesisError(Exception):
    """A failure told in one line. The command line exits with `exit_code`."""

    exit_code = 1


class UsageError(ExegesisError):
    """The caller named something that does not exist or gave a value that is not allowed."""

    exit_code = 2


class Cancelled(ExegesisError):
    """The work was stopped on request; what was finished is kept in the cache."""


def unknown(argument: str, got: object, known: Iterable[str]) -> UsageError:
    """The error for a name that is not known: lists the known names and the nearest one."""
    names = sorted(known)
    close = difflib.get_close_matches(str(got), names, n=1)
    hint = f" Did you mean '{close[0]}'?" if close else ""
    listed = ", ".join(names) if names else "none"
    return UsageError(f"{argument}: unknown name {excerpt(str(got))}.{hint} Known: {listed}.")


def not_allowed(argument: str, allowed: str, got: object, next_step: str = "") -> UsageError:
    """The error for a value outside what is allowed."""
    tail = f" {next_step}" if next_step else ""
    return UsageError(f"{argument}: must be {allowed}, got {excerpt(got)}.{tail}")


@contextlib.contextmanager
def panics_told(where: str) -> Iterator[None]:
    """Raise `ExegesisError` for a panic in Rust, which is no `Exception` and would end a thread."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise ExegesisError(f"{where}: broke off ({excerpt(str(error), 200)}). Use another one.") from error


def one_line(error: BaseException) -> str:
    """An error as one line, with its type unless the message is ours."""
    text = " ".join(str(error).split())
    return text if isinstance(error, ExegesisError) else f"{type(error).__name__}: {text}".rstrip(": ")


def excerpt(value: object, limit: int = 80) -> str:
    """`repr(value)` without its middle, so that an error stays one line and names the file at the end of a path."""
    text, end = repr(value).replace("\n", " "), limit // 2
    return text if len(text) <= limit else f"{text[: limit - end - 1]}…{text[-end:]}"
