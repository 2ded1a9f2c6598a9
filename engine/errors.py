"""Errors that users can act on: each message names the argument, what is allowed, what was given and the next step."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterable, Iterator


class ExegesisError(Exception):
    """A failure that is reported in one line. The command line exits with `exit_code`."""

    exit_code = 1


class UsageError(ExegesisError):
    """The caller named something that does not exist or gave a value that is not allowed."""

    exit_code = 2


class Cancelled(ExegesisError):
    """The work was stopped on request; what was finished is kept in the cache."""


def unknown(argument: str, got: object, known: Iterable[str]) -> UsageError:
    """Return the error for an unknown name, with the known names and the closest one."""
    names = sorted(known)
    close = difflib.get_close_matches(str(got), names, n=1)
    hint = f" Did you mean '{close[0]}'?" if close else ""
    listed = ", ".join(names) if names else "none"
    return UsageError(f"{argument}: unknown name {excerpt(str(got))}.{hint} Known: {listed}.")


def not_allowed(argument: str, allowed: str, got: object, next_step: str = "") -> UsageError:
    """Return the error for a value that is not allowed."""
    tail = f" {next_step}" if next_step else ""
    return UsageError(f"{argument}: must be {allowed}, got {excerpt(got)}.{tail}")


@contextlib.contextmanager
def panics_told(where: str) -> Iterator[None]:
    """Turn a Rust panic in the block into an `ExegesisError`: it is not an `Exception` and would end the thread."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise ExegesisError(f"{where}: broke off ({excerpt(str(error), 200)}). Use another one.") from error


def one_line(error: BaseException) -> str:
    """Return an error as one line, with its type unless it is an `ExegesisError`."""
    text = " ".join(str(error).split())
    return text if isinstance(error, ExegesisError) else f"{type(error).__name__}: {text}".rstrip(": ")


def excerpt(value: object, limit: int = 80) -> str:
    """Return `repr(value)`, shortened in the middle: an error stays on one line and shows the end of a path."""
    text, end = repr(value).replace("\n", " "), limit // 2
    return text if len(text) <= limit else f"{text[: limit - end - 1]}…{text[-end:]}"
