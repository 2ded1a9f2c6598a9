"""Join links, codes, and limits on wrong attempts."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import math
import re
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from engine.errors import ExegesisError, UsageError

ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
"""Letters and digits that are hard to confuse: without 0, o, 1, i and l."""
GROUPS, GROUP_LETTERS = 4, 4
MAX_PER_SOURCE, MAX_TOGETHER, SECONDS = 5, 100, 300.0
_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,200}")
_SEPARATORS = re.compile(r"[\s\-–—_.]+")
_NETWORK_BITS = 64
"""Bits of an IPv6 address that identify the network. Its owner can choose the other bits freely."""


def new_code() -> str:
    """Draw a code of 16 letters and digits in four groups, easy to type on a phone. It has 79 bits (31 ** 16 codes)."""
    return "-".join(_random_letters(GROUP_LETTERS) for _ in range(GROUPS))


def new_pseudonym() -> str:
    """Draw the name under which a person's votes are stored: 8 letters or digits, independent of person and code."""
    return f"p-{_random_letters(8)}"


def new_token() -> str:
    """Draw a token of 128 bits, for a join link, a ballot or a vote."""
    return secrets.token_urlsafe(16)


def is_token(text: str) -> bool:
    """Whether the string has the form of a token. Nothing else is ever looked up in the database."""
    return _TOKEN.fullmatch(text) is not None


def read_code(text: str) -> str:
    """Normalize a typed code to the form of `new_code`. Capitals and separators do not matter. Errors: not a code."""
    letters = _SEPARATORS.sub("", text).lower()
    if len(letters) != GROUPS * GROUP_LETTERS or not set(letters) <= set(ALPHABET):
        raise UsageError(
            f"Code: must be {GROUPS} groups of {GROUP_LETTERS} letters and digits, without 0, 1, i, l and o. "
            "Check what you wrote down."
        )
    return "-".join(letters[start : start + GROUP_LETTERS] for start in range(0, len(letters), GROUP_LETTERS))


def hash_code(code: str, salt: str) -> str:
    """Return the hexadecimal SHA-256 of salt and code. Only this is stored; 79 random bits need no slow hash."""
    return hashlib.sha256(f"{salt}:{read_code(code)}".encode()).hexdigest()


def matches_hash(code: str, salt: str, stored: str) -> bool:
    """Whether the code has the stored hash, compared in constant time."""
    return hmac.compare_digest(hash_code(code, salt), stored)


def _random_letters(count: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(count))


class TooManyAttempts(ExegesisError):
    """There were too many wrong or simultaneous attempts, so the next one is not checked."""


def attempt_source(address: str | None) -> str:
    """Return the source that a limit counts: an IPv4 address, an IPv6 network, or `unknown` for anything else."""
    try:
        ip = ipaddress.ip_address((address or "").partition("%")[0])
    except ValueError:
        return "unknown"
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    return str(ip.ipv4_mapped or ipaddress.ip_network((ip, _NETWORK_BITS), strict=False))


@dataclass(frozen=True, eq=False)
class Attempt:
    """A started attempt, compared by identity."""

    at: float
    source: str


class AttemptLimit:
    """Limit on wrong attempts over the last `seconds`: `each` per source (an address, a study), `together` in total.

    An attempt counts from its start, so simultaneous attempts cannot evade the limit. Withdrawing a right attempt keeps
    the wrong ones: knowing one code does not erase wrong guesses at others. The clock is monotonic, so setting the time
    of day has no effect.
    """

    def __init__(
        self,
        each: int = MAX_PER_SOURCE,
        together: int = MAX_TOGETHER,
        seconds: int | float = SECONDS,
        clock: Callable[[], float] = time.monotonic,
        message: str = "Too many wrong attempts.",
    ) -> None:
        self._each, self._together, self._seconds, self._clock, self._message = each, together, seconds, clock, message
        self._attempts: deque[Attempt] = deque()
        self._lock = threading.Lock()

    def begin(self, source: str) -> Attempt:
        """Count an attempt from this source; `withdraw` takes it back. Errors: there were too many before."""
        with self._lock:
            now = self._clock()
            while self._attempts and self._attempts[0].at <= now - self._seconds:
                self._attempts.popleft()
            own = [attempt for attempt in self._attempts if attempt.source == source]
            if len(own) >= self._each:
                raise self._error(own[0], now)
            if len(self._attempts) >= self._together:
                raise self._error(self._attempts[0], now)
            self._attempts.append(Attempt(now, source))
            return self._attempts[-1]

    def withdraw(self, attempt: Attempt) -> None:
        """Remove a right attempt; wrong attempts from its source still count."""
        with self._lock:
            self._attempts = deque(other for other in self._attempts if other is not attempt)

    def _error(self, oldest: Attempt, now: float) -> TooManyAttempts:
        left = math.ceil(oldest.at + self._seconds - now)
        return TooManyAttempts(f"{self._message} Wait {left} seconds, then try again.")
