"""Who may act as the organiser: what the connection, the password and the log-in say; nothing is drawn here."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from engine.access import ADMINS, PASSWORD
from engine.study import limits
from engine.study.limits import TooManyTries, Tries

LOG = logging.getLogger(__name__)
TRUSTED = "EXEGESIS_TRUST_EMAILS"
"""Set to 1 where the provider does not say that it checked an address, and gives out none that it did not check."""
TRIES = Tries()
"""Those of all sessions. Not in Streamlit's cache: any browser may have that emptied."""
HERE = "this machine"
FORWARDED = {"forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip"}
"""Headers that a proxy adds, besides those that begin with x-forwarded."""


@dataclass(frozen=True)
class Visit:
    """A browser's connection. `address`: none for this machine. `headers`: their names in lower case."""

    address: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def from_here(visit: Visit) -> bool:
    """Whether the browser runs on this machine: no proxy between, and the address that it opened is local.

    The opened address tells a proxy that says nothing of itself, and a page elsewhere whose name was led to here.
    """
    opened = [visit.headers[name] for name in ("host", "origin") if name in visit.headers]
    return _is_local(visit.address) and not _forwarded(visit) and all(_is_local(_host(name)) for name in opened)


def source_of(visit: Visit) -> str:
    """Whose tries are counted together; of a proxy on this machine, the address that it says it serves."""
    if not _is_local(visit.address):
        return limits.source_of(visit.address)
    behind = visit.headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
    return limits.source_of(behind) if behind else HERE


def has_password() -> bool:
    """Whether the organiser has set one."""
    return bool(os.environ.get(PASSWORD))


def is_password(given: str, visit: Visit, tries: Tries) -> bool:
    """Whether that is the organiser's password; a wrong one is logged, without what was typed. Errors: `TooManyTries`.

    Digests are compared, so that the time it takes tells neither the length nor where the first wrong letter is.
    """
    source, wanted = source_of(visit), os.environ.get(PASSWORD, "")
    try:
        begun = tries.begin(source)
    except TooManyTries:
        LOG.warning("organiser: too many wrong passwords from %r", source)
        raise
    if not wanted or not hmac.compare_digest(_digest(given), _digest(wanted)):
        LOG.warning("organiser: wrong password from %r", source)
        return False
    tries.right(begun)
    return True


def is_admin(user: Mapping[str, object]) -> bool:
    """Whether who logged in with a provider is an organiser: the address is listed, and not one that nobody checked."""
    verified = user.get("email_verified", os.environ.get(TRUSTED) == "1")
    if user.get("is_logged_in") is not True or str(verified).lower() != "true":
        return False
    return str(user.get("email") or "").strip().casefold() in admins()


def admins() -> set[str]:
    """The e-mail addresses of organisers."""
    listed = os.environ.get(ADMINS, "").split(",")
    return {address.strip().casefold() for address in listed if address.strip()}


def providers(auth: Mapping[str, object]) -> dict[str, str | None]:
    """What the button of each log-in provider says, and its name for Streamlit: none is the unnamed one."""
    unnamed: dict[str, str | None] = {"Log in with an account": None} if "client_id" in auth else {}
    return unnamed | {f"Log in with {name}": name for name, value in auth.items() if isinstance(value, Mapping)}


def _forwarded(visit: Visit) -> bool:
    return any(name in FORWARDED or name.startswith("x-forwarded") for name in visit.headers)


def _is_local(address: str | None) -> bool:
    if address is None or address == "localhost":
        return True
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    inner = getattr(found, "ipv4_mapped", None)
    return (inner or found).is_loopback


def _host(name: str) -> str:
    """The machine in `localhost:8501`, `[::1]:8501` or `http://localhost:8501`."""
    try:
        return urlsplit(name if "//" in name else f"//{name}").hostname or "unknown"
    except ValueError:
        return "unknown"


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
