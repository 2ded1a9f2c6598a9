"""Join links and codes, and limits on wrong attempts."""

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
"""Letters and digits that are not confused with others: no 0 and o, no 1, i and l."""
GROUPS, GROUP_LETTERS = 4, 4
MAX_PER_SOURCE, MAX_TOGETHER, SECONDS = 5, 100, 300.0
_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,200}")
_SEPARATORS = re.compile(r"[\s\-–—_.]+")
_NETWORK_BITS = 64
"""Bits of an IPv6 address that identify the network: its owner chooses the rest."""


def new_code() -> str:
    """A code of 16 letters in four groups, to be typed on a phone: 31 ** 16 codes, 79 bits."""
    return "-".join(_random_letters(GROUP_LETTERS) for _ in range(GROUPS))


def new_pseudonym() -> str:
    """The name under which a person's votes are stored: 8 letters, unrelated to the person and the code."""
    return f"p-{_random_letters(8)}"


def new_token() -> str:
    """The token of a join link, or of a vote that a page sends: 128 bits."""
    return secrets.token_urlsafe(16)


def is_token(text: str) -> bool:
    """Whether the text has the form of a token; no other input is ever looked up in the database."""
    return _TOKEN.fullmatch(text) is not None


def read_code(text: str) -> str:
    """Normalize a code to the form of `new_code`; capitals, spaces and missing dashes are accepted."""
    letters = _SEPARATORS.sub("", text).lower()
    if len(letters) != GROUPS * GROUP_LETTERS or not set(letters) <= set(ALPHABET):
        raise UsageError(
            f"Code: must be {GROUPS} groups of {GROUP_LETTERS} letters and digits, without 0, 1, i, l and o. "
            "Check what you wrote down."
        )
    return "-".join(letters[start : start + GROUP_LETTERS] for start in range(0, len(letters), GROUP_LETTERS))


def hash_code(code: str, salt: str) -> str:
    """SHA-256 of the study's salt and the code, in hexadecimal: all that is stored. 79 bits need no slow hash."""
    return hashlib.sha256(f"{salt}:{read_code(code)}".encode()).hexdigest()


def matches_hash(code: str, salt: str, stored: str) -> bool:
    """Whether the code has the stored hash; compared in constant time."""
    return hmac.compare_digest(hash_code(code, salt), stored)


def _random_letters(count: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(count))


class TooManyAttempts(ExegesisError):
    """Too many attempts were wrong, or came at once; the next one is not checked."""


def attempt_source(address: str | None) -> str:
    """The source that a limit counts: an address, the network of an IPv6 address, or `unknown` for all others."""
    try:
        ip = ipaddress.ip_address((address or "").partition("%")[0])
    except ValueError:
        return "unknown"
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    return str(ip.ipv4_mapped or ipaddress.ip_network((ip, _NETWORK_BITS), strict=False))


@dataclass(frozen=True, eq=False)
class Attempt:
    """An attempt that has begun; equal to itself only."""

    at: float
    source: str


class AttemptLimit:
    """Limit of wrong attempts, by source (an address, a study) and in total, over the last `seconds`.

    An attempt counts from its start, so that simultaneous ones cannot evade the limit. Only a right attempt itself is
    withdrawn: knowing one code does not erase wrong guesses at others. The clock is monotonic: setting the time of day
    changes nothing.
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
        """Count an attempt of that source; `withdraw` takes it back. Errors: too many before it."""
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
        """Forget a right attempt; wrong ones of its source still count."""
        with self._lock:
            self._attempts = deque(other for other in self._attempts if other is not attempt)

    def _error(self, oldest: Attempt, now: float) -> TooManyAttempts:
        left = math.ceil(oldest.at + self._seconds - now)
        return TooManyAttempts(f"{self._message} Wait {left} seconds, then try again.")
