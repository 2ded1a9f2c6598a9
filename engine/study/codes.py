"""Secrets of a study: the join link's token, and the code with which a person goes on elsewhere."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

from engine.errors import UsageError

ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
"""Letters and digits that nobody mistakes for another: no 0 and o, no 1, i and l."""
GROUPS = 4
LETTERS = 4
_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,200}")
_BETWEEN = re.compile(r"[\s\-–—_.]+")


def new_code() -> str:
    """16 letters in four groups, to be typed on a phone: 31 ** 16 codes, 79 bits."""
    return "-".join(_drawn(LETTERS) for _ in range(GROUPS))


def new_pseudonym() -> str:
    """The name under which a person's votes are kept: 8 letters that say nothing of them, nor of their code."""
    return f"p-{_drawn(8)}"


def new_token() -> str:
    """What a join link holds, and what a page sends with a vote: 128 bits."""
    return secrets.token_urlsafe(16)


def is_token(given: str) -> bool:
    """Whether it may be one; what else a link or a client brings is never looked up in the database."""
    return _TOKEN.fullmatch(given) is not None


def read_code(written: str) -> str:
    """The code as `new_code` writes it, from what a person typed: capitals, spaces and missing dashes are fine."""
    letters = _BETWEEN.sub("", written).lower()
    if len(letters) != GROUPS * LETTERS or not set(letters) <= set(ALPHABET):
        raise UsageError(
            f"code: must be {GROUPS} groups of {LETTERS} letters and digits, without 0, 1, i, l and o. "
            "Copy it from where you wrote it down."
        )
    return "-".join(letters[start : start + LETTERS] for start in range(0, len(letters), LETTERS))


def code_hash(code: str, salt: str) -> str:
    """SHA-256 of the study's salt and the code, in hexadecimal: all that is stored. 79 bits need no slow hash."""
    return hashlib.sha256(f"{salt}:{read_code(code)}".encode()).hexdigest()


def is_code(written: str, salt: str, stored: str) -> bool:
    """Whether that is the code of the stored hash; takes as long for a near miss as for a far one."""
    return hmac.compare_digest(code_hash(written, salt), stored)


def _drawn(letters: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(letters))
