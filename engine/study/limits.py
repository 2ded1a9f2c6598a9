"""How often a password or a code may be wrong, and how many may join, before one has to wait."""

from __future__ import annotations

import ipaddress
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from engine.errors import ExegesisError

EACH = 5
TOGETHER = 100
SECONDS = 300.0


_NEIGHBOURS = 64
"""Bits of an IPv6 address that a network gives out as one: the rest is the owner's to choose."""


class TooManyTries(ExegesisError):
    """So many were wrong, or came at once, that the next one is not even looked at."""


def source_of(address: str | None) -> str:
    """What a limit counts as one source: an address, or the network of an IPv6 one; unknown ones are one together."""
    try:
        found = ipaddress.ip_address((address or "").partition("%")[0])
    except ValueError:
        return "unknown"
    if isinstance(found, ipaddress.IPv4Address):
        return str(found)
    return str(found.ipv4_mapped or ipaddress.ip_network((found, _NEIGHBOURS), strict=False))


@dataclass(frozen=True, eq=False)
class Try:
    """One that has begun: equal to itself alone."""

    at: float
    source: str


class Tries:
    """Counts wrong tries of each source (an address, a study) and of all together, over the last `seconds`.

    A try counts from when it begins, so that many at once do not slip past. One that was right is taken back, and it
    alone: who knows one code cannot wipe out, between guesses at others, that those were wrong. The clock is the
    machine's monotonic one: setting the time of day changes nothing.
    """

    def __init__(
        self,
        each: int = EACH,
        together: int = TOGETHER,
        seconds: int | float = SECONDS,
        clock: Callable[[], float] = time.monotonic,
        said: str = "Too many wrong tries.",
    ) -> None:
        self._each, self._together, self._seconds, self._clock, self._said = each, together, seconds, clock, said
        self._tried: deque[Try] = deque()
        self._lock = threading.Lock()

    def begin(self, source: str) -> Try:
        """Counts a try of that source; `right` takes it back. Errors: too many before it, with the seconds to wait."""
        with self._lock:
            now = self._clock()
            self._forget(now)
            own = [one for one in self._tried if one.source == source]
            if len(own) >= self._each:
                raise self._wait(own[0], now)
            if len(self._tried) >= self._together:
                raise self._wait(self._tried[0], now)
            self._tried.append(Try(now, source))
            return self._tried[-1]

    def right(self, known: Try) -> None:
        """That try was right and does not count; wrong ones of its source still do."""
        with self._lock:
            self._tried = deque(one for one in self._tried if one is not known)

    def _forget(self, now: float) -> None:
        while self._tried and self._tried[0].at <= now - self._seconds:
            self._tried.popleft()

    def _wait(self, oldest: Try, now: float) -> TooManyTries:
        left = math.ceil(oldest.at + self._seconds - now)
        return TooManyTries(f"{self._said} Wait {left} seconds, then try again.")
