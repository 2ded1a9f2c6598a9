"""What a participant is told when something fails: what they can act on. The rest is the organiser's, in the log."""

from __future__ import annotations

import logging

from engine.errors import ExegesisError, UsageError
from engine.study.annotators import NotKnown, NotOpen
from engine.study.database import WrongAddress
from engine.study.limits import TooManyTries

LOG = logging.getLogger(__name__)
UNREACHABLE = "The server cannot reach its store."
AGAIN = "Nothing was saved. Try again."


def told_of(error: ExegesisError, who: str, then: str = AGAIN) -> str:
    """The error's own words, unless they are not for participants: they may name the database and where it is.

    `who`: whom the log names, a pseudonym at most. `then`: what follows where the server failed.
    """
    if isinstance(error, NotOpen | NotKnown | TooManyTries | UsageError) and not isinstance(error, WrongAddress):
        return str(error)
    LOG.error("the study failed for %s", who, exc_info=error)
    return f"{UNREACHABLE} {then}".strip()
